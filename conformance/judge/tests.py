"""The verdict on a test of a pytest suite, which says itself what is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.judge.agreement import disagreement
from conformance.judge.conformance import ending
from conformance.judge.tolerance import Tolerance
from conformance.judge.verdict import Judgement, abnormal, unjudged
from conformance.model.outcome import Conformance, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.model.observation import Observation

XFAIL: Final = "xfail"
"""Artifact of a test that failed as it declares: the reason that it gives."""


def judge_test(
    observation: Observation, *, declared: bool, attempts: Sequence[Observation] = ()
) -> Judgement:
    """Judge a test: it has no golden, passing is right, and a failure deviates.

    Args:
        observation: What came of it.
        declared: Whether it failed as it declares.
        attempts: What came of other attempts; those that say nothing about JAX are ignored.

    Returns:
        Conformance, verdict and reasons.
    """
    if observation.outcome in {Outcome.INFRA, Outcome.NOT_RUN}:
        return unjudged(Verdict.INFRA, observation)
    if observation.outcome is Outcome.UNSUPPORTED:
        return unjudged(Verdict.EXCLUDED, observation)
    passed = observation.outcome is Outcome.OK
    conformance = Conformance.CONFORMS if passed else Conformance.DEVIATES
    told = (
        disagreement(attempt, observation, Tolerance())
        for attempt in attempts
        if attempt.outcome.observed
    )
    if flaky := next(filter(None, told), ""):
        return Judgement(conformance=conformance, verdict=Verdict.FLAKY, reasons=(flaky,))
    if passed:
        return Judgement(conformance=conformance, verdict=Verdict.MATCH)
    verdict = Verdict.KNOWN if declared else abnormal(observation)
    return Judgement(conformance=conformance, verdict=verdict, reasons=(ending(observation),))
