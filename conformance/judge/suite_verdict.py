"""The verdict on a test of a pytest suite: the test itself is the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.judge.agreement import find_disagreement
from conformance.judge.conformance import describe_deviation, describe_outcome, matches_deviation
from conformance.judge.tolerance import Tolerance
from conformance.judge.verdict import Judgement, judge_failure, make_unjudged
from conformance.model.outcome import Conformance, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.model.case import Deviation
    from conformance.model.observation import Observation

XFAIL: Final = "xfail"
"""Artifact of a test that failed as it declares: the declared reason."""
WARNINGS: Final = "warnings"
"""Artifact of a test that warned: a JSON list of warnings with their counts."""


def judge_test(
    observation: Observation,
    *,
    declared: bool,
    deviations: Sequence[Deviation] = (),
    attempts: Sequence[Observation] = (),
) -> Judgement:
    """Judge a test: it has no golden, a pass conforms, and a failure deviates.

    Args:
        observation: Observation of the test.
        declared: True for a test that failed by its own `xfail` mark.
        deviations: Known failures of the test that cover the cell.
        attempts: Observations of other attempts; inconclusive outcomes are ignored.

    Returns:
        Conformance, verdict and reasons.
    """
    if observation.outcome in {Outcome.INFRA, Outcome.NOT_RUN}:
        return make_unjudged(Verdict.INFRA, observation)
    # A skip neither passes nor fails, so it must not end a known failure.
    if observation.outcome is Outcome.UNSUPPORTED:
        return _judge_unsupported(observation, deviations)
    passed = observation.outcome is Outcome.OK
    conformance = Conformance.CONFORMS if passed else Conformance.DEVIATES
    # Before the verdict on one attempt: a pass among failures must not count as fixed.
    if flaky := _find_disagreement(observation, attempts, deviations):
        return Judgement(conformance=conformance, verdict=Verdict.FLAKY, reasons=(flaky,))
    if passed:
        verdict, reasons = _judge_pass(deviations)
    elif declared:
        verdict, reasons = Verdict.KNOWN, (describe_outcome(observation),)
    else:
        verdict, reasons = _judge_failure(observation, deviations)
    return Judgement(conformance=conformance, verdict=verdict, reasons=reasons)


def _judge_unsupported(observation: Observation, deviations: Sequence[Deviation]) -> Judgement:
    """Return the judgement of a test that is not run in the cell, though it may have deviations."""
    judgement = make_unjudged(Verdict.EXCLUDED, observation)
    if not deviations:
        return judgement
    note = f"so its {describe_deviation(deviations[0])} is not seen"
    return Judgement(
        conformance=judgement.conformance, verdict=judgement.verdict,
        reasons=(*judgement.reasons, note),
    )  # fmt: skip


def _find_disagreement(
    observation: Observation, attempts: Sequence[Observation], deviations: Sequence[Deviation]
) -> str:
    """Return how attempts disagree, empty if they agree, or are known to disagree."""
    seen = [attempt for attempt in attempts if attempt.outcome.observed]
    intermittent = [deviation for deviation in deviations if deviation.may_pass]
    # Every attempt must be a declared result; a third, undeclared result is news.
    if intermittent and all(
        _is_declared_result(attempt, intermittent) for attempt in (observation, *seen)
    ):
        return ""
    found = (find_disagreement(attempt, observation, Tolerance()) for attempt in seen)
    return next(filter(None, found), "")


def _is_declared_result(observation: Observation, intermittent: Sequence[Deviation]) -> bool:
    """Say whether an observation is a pass or a declared intermittent failure."""
    return (
        observation.outcome is Outcome.OK or _match_deviation(observation, intermittent) is not None
    )


def _match_deviation(observation: Observation, deviations: Sequence[Deviation]) -> Deviation | None:
    """Return the first deviation that a failure matches, if any."""
    return next(
        (d for d in deviations if matches_deviation(d, observation, Conformance.DEVIATES)), None
    )


def _judge_pass(deviations: Sequence[Deviation]) -> tuple[Verdict, tuple[str, ...]]:
    fixed = [deviation for deviation in deviations if not deviation.may_pass]
    if not fixed:
        return Verdict.MATCH, ()
    return Verdict.FIXED, tuple(
        f"{describe_deviation(deviation)} is fixed: the test passes; "
        "the deviation may end at this release"
        for deviation in fixed
    )


def _judge_failure(
    observation: Observation, deviations: Sequence[Deviation]
) -> tuple[Verdict, tuple[str, ...]]:
    if known := _match_deviation(observation, deviations):
        return Verdict.KNOWN, (
            f"{describe_deviation(known)}: {known.reason or describe_outcome(observation)}",
        )
    if not deviations:
        return judge_failure(observation), (describe_outcome(observation),)
    declared = deviations[0]
    other = f"not as the {describe_deviation(declared)} declares: {describe_outcome(observation)}"
    return judge_failure(observation), (f"{other}; declared {_spell(declared)}",)


def _spell(deviation: Deviation) -> str:
    words = f"{deviation.outcome} {deviation.error}".rstrip()
    return f"{words} matching {deviation.match!r}" if deviation.match else words
