"""Confirming what is unexpected: how often a job is tried, and what its attempts come to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from conformance.judge.agreement import DISAGREE
from conformance.model.outcome import Verdict
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.engine.calibration import Unstable
    from conformance.engine.job import Job
    from conformance.engine.record_judge import Judge
    from conformance.model.record import Record

ATTEMPTS: Final = 2
"""How often what is unexpected is seen before it is reported."""
RATED: Final = 5
"""How often what disagrees with itself is tried: enough to say how often it does."""


def needs_confirmation(record: Record) -> bool:
    """Say whether a judged record is unexpected, and was seen once only."""
    return record.unexpected and record.attempts < ATTEMPTS


def has_enough_attempts(settled: Record, attempts: int, unstable: Unstable | None = None) -> bool:
    """Say whether a job has been tried often enough.

    Args:
        settled: What the attempts came to.
        attempts: How many there were.
        unstable: What is known of the job on this host.
    """
    sure = settled.verdict is not Verdict.FLAKY and unstable is None
    return attempts >= (ATTEMPTS if sure else RATED)


def judge_attempts(
    judge: Judge, job: Job, attempts: Sequence[Record], unstable: Unstable | None = None
) -> Record:
    """Return what all attempts of a job come to.

    Where they disagree, or are judged differently, the job is flaky, and the record says how many
    of them came to what; where it is known not to be stable on this host, that is known.

    Args:
        judge: Judges each.
        job: The job.
        attempts: Its records, in the order they were made.
        unstable: What is known of the job on this host.

    Raises:
        CorruptBlobError: If a blob of a record is missing or changed.
    """
    judged = judge.judge(job, attempts[0], attempts[1:])
    alone = [judge.judge(job, one) for one in attempts if one.outcome.observed]
    judged = replace(judged, attempts=max(len(alone), 1))
    found = Counter(str(one.verdict) for one in alone)
    # A test may be known to fail now and then; a failure that is not known is another matter.
    may_pass = job.case.kind == "test" and {*found} <= {Verdict.MATCH, Verdict.KNOWN}
    if judged.verdict is not Verdict.FLAKY and (len(found) <= 1 or may_pass):
        return judged
    reasons = judged.reasons
    if judged.verdict is not Verdict.FLAKY:
        other = next(one for one in alone if one.verdict is not alone[0].verdict)
        reasons = (f"{DISAGREE}{_said(alone[0])}, then {_said(other)}",)
    rate = ", ".join(f"{number} {verdict}" for verdict, number in found.most_common())
    reasons = (*reasons, f"of {plural(len(alone), 'attempt')}: {rate}")
    if unstable is None:
        return replace(judged, verdict=Verdict.FLAKY, reasons=reasons)
    return replace(judged, verdict=Verdict.KNOWN, reasons=(unstable.sentence, *reasons))


def _said(record: Record) -> str:
    reason = f" ({record.reasons[0]})" if record.reasons else ""
    return f"{record.verdict}{reason}"
