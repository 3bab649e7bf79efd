"""The verdict on a test of a suite."""

from __future__ import annotations

import pytest

from conformance.judge.tests import judge_test
from conformance.model.observation import Observation
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo


def seen(outcome: Outcome, message: str = "no") -> Observation:
    """Return what came of a test."""
    error = ErrorInfo(type="ValueError", message=message, signature=f"ValueError: {message}")
    ended_well = outcome is Outcome.OK
    return Observation(outcome=outcome, stage=Stage.EXECUTE, error=None if ended_well else error)


@pytest.mark.parametrize(
    ("outcome", "verdict", "conformance"),
    [
        (Outcome.OK, Verdict.MATCH, Conformance.CONFORMS),
        (Outcome.RAISED, Verdict.REGRESSED, Conformance.DEVIATES),
        (Outcome.CRASHED, Verdict.CRASHED, Conformance.DEVIATES),
        (Outcome.OUT_OF_MEMORY, Verdict.CRASHED, Conformance.DEVIATES),
        (Outcome.TIMED_OUT, Verdict.TIMED_OUT, Conformance.DEVIATES),
        (Outcome.UNSUPPORTED, Verdict.EXCLUDED, Conformance.UNKNOWN),
        (Outcome.INFRA, Verdict.INFRA, Conformance.UNKNOWN),
        (Outcome.NOT_RUN, Verdict.INFRA, Conformance.UNKNOWN),
    ],
)
def test_outcomes(outcome: Outcome, verdict: Verdict, conformance: Conformance) -> None:
    """Passing is right, whatever else was seen of JAX deviates, the rest says nothing."""
    judgement = judge_test(seen(outcome), declared=False)
    assert (judgement.verdict, judgement.conformance) == (verdict, conformance)
    assert bool(judgement.reasons) is (outcome is not Outcome.OK)


def test_what_is_declared() -> None:
    """A failure that the test declares is known, and deviates."""
    judgement = judge_test(seen(Outcome.RAISED), declared=True)
    assert (judgement.verdict, judgement.conformance) == (Verdict.KNOWN, Conformance.DEVIATES)


@pytest.mark.parametrize(
    ("again", "flaky"),
    [
        (seen(Outcome.OK), True),
        (seen(Outcome.RAISED, "otherwise"), True),
        (seen(Outcome.RAISED), False),
        (seen(Outcome.INFRA), False),
    ],
)
def test_attempts(again: Observation, flaky: bool) -> None:
    """What does not do the same twice is flaky; an attempt that says nothing does not count."""
    judgement = judge_test(seen(Outcome.RAISED), declared=False, attempts=[again])
    assert judgement.verdict is (Verdict.FLAKY if flaky else Verdict.REGRESSED)
