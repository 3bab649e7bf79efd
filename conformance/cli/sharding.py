"""Parts of a plan, as `--shard` names them: the same on every runner that has the same checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.durations import FILE_NAME, Durations, decoded
from conformance.engine.plan import Plan
from conformance.engine.shards import shards
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import said_by

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cli.setting import Setting

UNLIMITED = 10**6


def durations_file(setting: Setting) -> Path:
    """Return where a project keeps how long jobs take."""
    return setting.project.matrices / FILE_NAME


def durations_of(setting: Setting) -> Durations:
    """Return how long jobs take, as far as the project knows."""
    file = durations_file(setting)
    try:
        return decoded(file.read_bytes(), str(file))
    except FileNotFoundError:
        return Durations()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {said_by(error)}") from None


def part_of(plan: Plan, shard: str, durations: Durations) -> Plan:
    """Return the part of a plan that a shard runs.

    Args:
        plan: The whole plan.
        shard: `I/N`, the I-th of N parts, from 1.
        durations: How long jobs take: the parts take about as long as one another.

    Returns:
        Jobs that follow one another; the parts of all I, in order, make the whole.

    Raises:
        UsageError: If it is not `I/N` with I in 1 to N.
        NothingSelectedError: If the part has no jobs.
    """
    number, _, count = shard.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count) < UNLIMITED):
        raise UsageError(f"--shard {shard}: expected I/N with 1 <= I <= N, e.g. 1/4")
    parts = shards(plan.jobs, int(count), durations.of)
    if int(number) > len(parts):
        raise NothingSelectedError(f"shard {shard} of {len(plan.jobs)} jobs has none")
    jobs = tuple(parts[int(number) - 1].jobs)
    cells = {job.planned.cell.id for job in jobs}
    return Plan(
        jobs=jobs,
        exclusions=plan.exclusions if number == "1" else (),
        cells=tuple(planned for planned in plan.cells if planned.cell.id in cells),
    )
