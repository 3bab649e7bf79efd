"""The calibration of this host: several attempts of each job, compared with each other."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.app.output_files import print_note
from conformance.app.plan import check_any_job, plan_jobs
from conformance.app.session import Session
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.calibration import Calibrator, load_calibration, update_calibration
from conformance.report.text import sanitize
from conformance.scratch import temporary_folder
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.app.context import ProjectContext
    from conformance.engine.calibration import Calibration

ATTEMPTS: Final = 5
"""Default of `--attempts`."""
LONGEST: Final = 2_000
"""Characters of the line about a flaky job, whose example quotes values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """The options of `conformance calibrate`.

    Attributes:
        select: Families, case ids, globs or paths of cases.
        matrix: Name or file of a matrix, None for the default.
        cell: Selectors of cells.
        wanted: Requirements in addition to the cells' own packages.
        attempts: Attempts of each job.
        jobs: Jobs at the same time.
    """

    select: tuple[str, ...]
    matrix: str | None
    cell: tuple[str, ...]
    wanted: tuple[str, ...]
    attempts: int
    jobs: int


class CalibratedHost(NamedTuple):
    """The result of a calibration.

    Attributes:
        calibration: The flaky jobs of this host, also those of earlier calibrations.
        compared: Jobs with at least two attempts to compare.
    """

    calibration: Calibration
    compared: int


def calibrate_host(
    context: ProjectContext, options: CalibrateOptions, say: Callable[[str], None]
) -> CalibratedHost:
    """Find the flaky jobs of this host, and add them to its calibration.

    Args:
        context: The project.
        options: Which jobs, and how many attempts of each.
        say: Receives a line after each attempt.

    Raises:
        NothingSelectedError: If there are no jobs.
        UsageError: If the calibration of this host cannot be read.
        InfrastructureError: If the disk refuses.
    """
    # An unreadable file must fail now, not after hours of attempts.
    load_calibration(context.cache)
    session = Session(context=context)
    cells, left_out = context.select_cells(options.matrix, options.cell)
    cases = context.select_cases(options.select)
    plan, preparation = plan_jobs(session, cases, cells, options.wanted, left_out)
    check_any_job(plan)
    with temporary_folder("calibrate", context.cache) as folder:
        # The executor is used without the result cache: a recalled result is no second attempt.
        executor = session.make_executor(preparation.locks, slots=options.jobs)
        calibrator = Calibrator(plan.jobs, executor, BlobStore(folder))
        say(
            f"{plural(len(plan.jobs), 'job')} in {plural(len(plan.cells), 'cell')}, "
            f"{plural(options.attempts, 'attempt')} of each"
        )
        for number in range(1, options.attempts + 1):
            start = time.monotonic()
            calibrator.attempt()
            took = f"{time.monotonic() - start:.0f} s"
            unlike = plural(len(calibrator.unstable), "job")
            say(f"attempt {number}: {took}, {unlike} unlike the first attempt so far")
    # Jobs that were not compared keep their earlier entry; compared stable jobs lose theirs.
    compared, unstable = calibrator.compared_jobs, calibrator.unstable
    calibration = update_calibration(context.cache, compared, unstable, print_note)
    say(f"{len(unstable)} of {len(compared)} jobs are not stable")
    return CalibratedHost(calibration, len(compared))


def render_calibration(calibration: Calibration) -> Iterator[str]:
    """Yield the flaky jobs of this host, a line each.

    Args:
        calibration: The calibration of the host.
    """
    for one in calibration.unstable:
        rate = f"{one.differing} of {plural(one.attempts, 'attempt')}"
        yield sanitize(f"{one.case} on {one.cell}: {rate} on {one.day}: {one.example}", LONGEST)
    if not calibration.unstable:
        yield "nothing is known that is not stable on this host"
