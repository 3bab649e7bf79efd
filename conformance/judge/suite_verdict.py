"""The verdict on a test of a pytest suite: the test itself decides between right and wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.judge.agreement import find_disagreement
from conformance.judge.conformance import describe_deviation, describe_ending, matches_deviation
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
FALSIFYING: Final = "falsifying"
"""Artifact of a test for which Hypothesis found a failing example."""


def judge_test(
    observation: Observation,
    *,
    declared: bool,
    deviations: Sequence[Deviation] = (),
    attempts: Sequence[Observation] = (),
) -> Judgement:
    """Judge a test: it has no golden, passing is right, and a failure deviates.

    Args:
        observation: Observation of the test.
        declared: Whether it failed as it declares.
        deviations: Its known failures that cover the cell.
        attempts: Observations of other attempts; those that say nothing about JAX are ignored.

    Returns:
        Conformance, verdict and reasons.
    """
    if observation.outcome in {Outcome.INFRA, Outcome.NOT_RUN}:
        return make_unjudged(Verdict.INFRA, observation)
    if observation.outcome is Outcome.UNSUPPORTED:
        return _judge_unsupported(observation, deviations)
    passed = observation.outcome is Outcome.OK
    conformance = Conformance.CONFORMS if passed else Conformance.DEVIATES
    if flaky := _find_disagreement(observation, attempts, deviations):
        return Judgement(conformance=conformance, verdict=Verdict.FLAKY, reasons=(flaky,))
    if passed:
        verdict, reasons = _judge_pass(deviations)
    elif declared:
        verdict, reasons = Verdict.KNOWN, (describe_ending(observation),)
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
    sometimes = [one for one in deviations if one.may_pass]
    if sometimes and all(_is_sometimes(one, sometimes) for one in (observation, *seen)):
        return ""
    found = (find_disagreement(attempt, observation, Tolerance()) for attempt in seen)
    return next(filter(None, found), "")


def _is_sometimes(observation: Observation, sometimes: Sequence[Deviation]) -> bool:
    """Say whether a test passed, or failed as it is known to fail sometimes."""
    return observation.outcome is Outcome.OK or _find_shown(observation, sometimes) is not None


def _find_shown(observation: Observation, deviations: Sequence[Deviation]) -> Deviation | None:
    """Return the deviation that a failure shows, None if it shows none."""
    return next(
        (d for d in deviations if matches_deviation(d, observation, Conformance.DEVIATES)), None
    )


def _judge_pass(deviations: Sequence[Deviation]) -> tuple[Verdict, tuple[str, ...]]:
    gone = [one for one in deviations if not one.may_pass]
    if not gone:
        return Verdict.MATCH, ()
    return Verdict.FIXED, tuple(
        f"{describe_deviation(one)} is fixed: the test passes; "
        "the deviation may end at this release"
        for one in gone
    )


def _judge_failure(
    observation: Observation, deviations: Sequence[Deviation]
) -> tuple[Verdict, tuple[str, ...]]:
    if known := _find_shown(observation, deviations):
        return Verdict.KNOWN, (
            f"{describe_deviation(known)}: {known.reason or describe_ending(observation)}",
        )
    if not deviations:
        return judge_failure(observation), (describe_ending(observation),)
    declared = deviations[0]
    other = f"not as the {describe_deviation(declared)} declares: {describe_ending(observation)}"
    return judge_failure(observation), (f"{other}; declared {_spell(declared)}",)


def _spell(deviation: Deviation) -> str:
    words = f"{deviation.outcome} {deviation.error}".rstrip()
    return f"{words} matching {deviation.match!r}" if deviation.match else words
