"""The exit status of a run, by its policy. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.engine.runs.nights import find_symptom
from conformance.engine.runs.root_causes import find_root_causes
from conformance.model.outcome import ExitCode, Verdict
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from conformance.engine.runs.root_causes import RootCause
    from conformance.model.record import Record
    from conformance.model.run_files import Evidence, Since

LinkedJob = tuple[str, str, str]
"""Case, verdict and normalised cause of a job with a linked issue."""
NO_EVIDENCE: Final[Mapping[str, Evidence]] = {}


class FailOn(StrEnum):
    """The results for which a run fails."""

    UNEXPECTED = "unexpected"
    """Every unexpected result."""
    NEW = "new"
    """Unexpected results that are new since the previous run, or have no issue in the store."""
    NEVER = "never"
    """No unexpected result."""


class ExitDecision(NamedTuple):
    """An exit status with its reason.

    Attributes:
        code: The exit status.
        reason: The reason as text, empty if every result is expected.
    """

    code: ExitCode
    reason: str = ""


def compute_exit_code(records: Iterable[Record]) -> ExitCode:
    """Return the exit status of records without a policy.

    Verdicts that gate are unexpected, and so is a new case that deviates from its reference. An
    unreadable golden is a fault of the project. Infrastructure faults or exclusions alone are no
    success.

    Args:
        records: The records of a run.
    """
    every = list(records)
    # In the order of what a user must see first: a regression is not hidden by a failed host.
    if any(record.unexpected for record in every):
        return ExitCode.UNEXPECTED
    # Before INFRA, because such a record is `infra` too, and a rerun does not help.
    if any(record.golden_at_fault for record in every):
        return ExitCode.USAGE
    if any(record.verdict is Verdict.INFRA for record in every):
        return ExitCode.INFRA
    if all(record.verdict is Verdict.EXCLUDED for record in every):
        return ExitCode.NOTHING
    return ExitCode.OK


def decide_exit(
    policy: FailOn,
    records: Sequence[Record],
    since: Since | None = None,
    known: Collection[LinkedJob] | None = None,
    evidence: Mapping[str, Evidence] = NO_EVIDENCE,
) -> ExitDecision:
    """Return the exit status of a run with its reason.

    The policy is about unexpected results. Faults of the host and of goldens always count.

    Args:
        policy: Results for which the run fails.
        records: Records of the run.
        since: Changes since the previous run; None without one, and every result is new then.
        known: Jobs with a linked issue, None without a store of issues.
        evidence: Results of triage by cause id, the same that `since` was made with: ids of root
            causes depend on it.
    """
    code = compute_exit_code(records)
    if code is not ExitCode.UNEXPECTED:
        return ExitDecision(code, _explain_other(code, records))
    causes = [cause for cause in find_root_causes(records, evidence) if cause.is_about_jax]
    failing = _select_failing(policy, causes, since, known)
    if failing:
        return ExitDecision(code, _explain_failure(policy, since, known, len(failing)))
    # The policy forgives unexpected jobs only; if there were no others, jobs did run.
    rest = compute_exit_code(record for record in records if not record.unexpected)
    code = ExitCode.OK if rest is ExitCode.NOTHING else rest
    return ExitDecision(code, _explain_success(policy, known, len(causes)))


def _select_failing(
    policy: FailOn,
    causes: Sequence[RootCause],
    since: Since | None,
    known: Collection[LinkedJob] | None,
) -> list[RootCause]:
    """Return the root causes that a run fails for."""
    match policy:
        case FailOn.UNEXPECTED:
            return list(causes)
        case FailOn.NEVER:
            return []
        case FailOn.NEW:
            # By job, not by cause: a linked issue may explain only some jobs of a cause.
            if known is not None:
                return [
                    cause
                    for cause in causes
                    if not all((r.case, *find_symptom(r)) in known for r in cause.records)
                ]
            # Without an earlier night every cause is new: a run must not pass for lack of history.
            open_ids = {cause.id for cause in since.still} if since is not None else set()
            return [cause for cause in causes if cause.id not in open_ids]


def _explain_failure(
    policy: FailOn, since: Since | None, known: Collection[LinkedJob] | None, count: int
) -> str:
    """Return why a run fails for some root causes."""
    causes, are, have = _inflect(count)
    if policy is FailOn.UNEXPECTED:
        return f"{causes} {are} unexpected"
    if known is not None:
        return f"{causes} {have} no linked issue"
    reference = " since the previous run" if since is not None else ": no earlier run is known"
    return f"{causes} {are} new{reference}"


def _explain_success(policy: FailOn, known: Collection[LinkedJob] | None, count: int) -> str:
    """Return why a run does not fail although it has root causes."""
    causes, are, _ = _inflect(count)
    if policy is FailOn.NEVER:
        return f"{causes} {are} unexpected, and --fail-on never was given"
    if known is not None:
        each = "with" if count == 1 else "each with"
        return f"{causes} {are} unexpected, {each} a linked issue"
    return f"{causes} {are} unexpected, none of them new since the previous run"


def _inflect(count: int) -> tuple[str, str, str]:
    verbs = ("is", "has") if count == 1 else ("are", "have")
    return plural(count, "root cause"), *verbs


def _explain_other(code: ExitCode, records: Sequence[Record]) -> str:
    """Return why a run in which nothing is unexpected has an exit status other than 0."""
    if code is ExitCode.USAGE:
        faults = sum(record.golden_at_fault for record in records)
        return f"{plural(faults, 'job')} with a golden that cannot be used"
    if code is ExitCode.INFRA:
        faults = sum(record.verdict is Verdict.INFRA for record in records)
        return f"{plural(faults, 'job')} ended for reasons of the host"
    return "every job is excluded" if code is ExitCode.NOTHING else ""
