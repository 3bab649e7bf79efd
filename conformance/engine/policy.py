"""For what a run fails: its exit status by policy. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from conformance.engine.causes import root_causes
from conformance.engine.nights import shown_by
from conformance.engine.runner import exit_code, unexpected
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from conformance.model.record import Record
    from conformance.model.since import Since


class FailOn(StrEnum):
    """For what a run fails."""

    UNEXPECTED = "unexpected"
    """Whatever is unexpected."""
    NEW = "new"
    """What is unexpected and was not the last night; where issues are linked, what has none."""
    NEVER = "never"
    """Nothing that is unexpected."""


def exit_by(
    policy: FailOn,
    records: Sequence[Record],
    since: Since | None,
    known: Collection[tuple[str, str, str]] | None = None,
) -> ExitCode:
    """Return the exit status of a run.

    Only what is unexpected is a matter of policy: faults of the host and of goldens are told
    whatever it is.

    Args:
        policy: For what the run fails.
        records: Its jobs.
        since: What changed since the last night, None where there is none: all is new then.
        known: Case, verdict and cause of what an issue is linked to; None where none can be.
    """
    code = exit_code(records)
    if code is not ExitCode.UNEXPECTED or policy is FailOn.UNEXPECTED:
        return code
    if policy is FailOn.NEW and _any_new(records, since, known):
        return code
    rest = exit_code(record for record in records if not unexpected(record))
    return ExitCode.OK if rest is ExitCode.NOTHING else rest


def _any_new(
    records: Sequence[Record],
    since: Since | None,
    known: Collection[tuple[str, str, str]] | None,
) -> bool:
    there = {one.id for one in since.still} if since is not None else set()
    for cause in root_causes(records):
        if not cause.telling:
            continue
        if known is not None and all(_is_known(record, known) for record in cause.records):
            continue
        if known is not None or cause.id not in there:
            return True
    return False


def _is_known(record: Record, known: Collection[tuple[str, str, str]]) -> bool:
    return (record.case, *shown_by(record)) in known
