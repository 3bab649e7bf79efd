"""For what a run fails: its exit status by policy. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.engine.nights import find_symptom
from conformance.engine.root_causes import find_root_causes
from conformance.model.outcome import ExitCode, Verdict
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from conformance.engine.root_causes import RootCause
    from conformance.model.record import Record
    from conformance.model.run_files import Evidence, Since

Known = tuple[str, str, str]
"""Case, verdict and cause of a job that an issue is linked to."""
NO_EVIDENCE: Final[Mapping[str, Evidence]] = {}


class FailOn(StrEnum):
    """For what a run fails."""

    UNEXPECTED = "unexpected"
    """Whatever is unexpected."""
    NEW = "new"
    """What is unexpected and was not the last night; where issues are linked, what has none."""
    NEVER = "never"
    """Nothing that is unexpected."""


class ExitDecision(NamedTuple):
    """An exit status, and why it is that one.

    Attributes:
        code: The exit status.
        reason: Why, in words; empty where all is as expected.
    """

    code: ExitCode
    reason: str = ""


def compute_exit_code(records: Iterable[Record]) -> ExitCode:
    """Return the exit status that records amount to.

    A verdict that gates is unexpected; so is a new case that no reference vouches for. A golden
    that cannot be read is a fault of the project's. Nothing but infrastructure faults, or only
    exclusions, is no success.

    Args:
        records: The records of a run.
    """
    seen = list(records)
    if any(record.unexpected for record in seen):
        return ExitCode.UNEXPECTED
    if any(record.golden_at_fault for record in seen):
        return ExitCode.USAGE
    if any(record.verdict is Verdict.INFRA for record in seen):
        return ExitCode.INFRA
    if all(record.verdict is Verdict.EXCLUDED for record in seen):
        return ExitCode.NOTHING
    return ExitCode.OK


def decide_exit(
    policy: FailOn,
    records: Sequence[Record],
    since: Since | None = None,
    known: Collection[Known] | None = None,
    evidence: Mapping[str, Evidence] = NO_EVIDENCE,
) -> ExitDecision:
    """Return the exit status of a run, and why it is that one.

    Only what is unexpected is a matter of policy. Faults of the host and of goldens count under
    any policy.

    Args:
        policy: For what the run fails.
        records: Its jobs.
        since: What changed since the last night, None where there is none: all is new then.
        known: Jobs that an issue is linked to; None where no store of issues was named.
        evidence: Results of triage by cause id, the same that `since` was made with: ids of root
            causes depend on it.
    """
    code = compute_exit_code(records)
    if code is not ExitCode.UNEXPECTED:
        return ExitDecision(code, _other_reason(code, records))
    causes = [cause for cause in find_root_causes(records, evidence) if cause.telling]
    failing = _failing(policy, causes, since, known)
    if failing:
        return ExitDecision(
            code, f"{_count_causes(len(failing))} {_why(policy, since, known, failing)}"
        )
    rest = compute_exit_code(record for record in records if not record.unexpected)
    code = ExitCode.OK if rest is ExitCode.NOTHING else rest
    return ExitDecision(code, f"{_count_causes(len(causes))} {_forgiven(policy, known, causes)}")


def _failing(
    policy: FailOn,
    causes: Sequence[RootCause],
    since: Since | None,
    known: Collection[Known] | None,
) -> list[RootCause]:
    """Return the root causes that a run fails for."""
    match policy:
        case FailOn.UNEXPECTED:
            return list(causes)
        case FailOn.NEVER:
            return []
        case FailOn.NEW:
            if known is not None:
                return [
                    one
                    for one in causes
                    if not all((r.case, *find_symptom(r)) in known for r in one.records)
                ]
            there = {one.id for one in since.still} if since is not None else set()
            return [one for one in causes if one.id not in there]


def _count_causes(causes: int) -> str:
    return plural(causes, "root cause")


def _why(
    policy: FailOn,
    since: Since | None,
    known: Collection[Known] | None,
    failing: Sequence[RootCause],
) -> str:
    one = len(failing) == 1
    if policy is FailOn.UNEXPECTED:
        return "is unexpected" if one else "are unexpected"
    if known is not None:
        return "has no linked issue" if one else "have no linked issue"
    new = "is new" if one else "are new"
    return f"{new} since the last night" if since is not None else f"{new}: no earlier run is known"


def _forgiven(policy: FailOn, known: Collection[Known] | None, causes: Sequence[RootCause]) -> str:
    one = len(causes) == 1
    if policy is FailOn.NEVER:
        return f"{'is' if one else 'are'} unexpected, and --fail-on never was given"
    if known is not None:
        return (
            f"{'is' if one else 'are'} unexpected, {'with' if one else 'each with'} a linked issue"
        )
    return f"{'is' if one else 'are'} unexpected, none of them new since the last night"


def _other_reason(code: ExitCode, records: Sequence[Record]) -> str:
    """Return why a run in which nothing is unexpected has an exit status other than 0."""
    if code is ExitCode.USAGE:
        faults = sum(record.golden_at_fault for record in records)
        return f"{plural(faults, 'job')} with a golden that cannot be used"
    if code is ExitCode.INFRA:
        faults = sum(record.verdict is Verdict.INFRA for record in records)
        return f"{plural(faults, 'job')} ended for reasons of the host"
    return "every job is excluded" if code is ExitCode.NOTHING else ""
