"""The verdict on a test of a suite."""

from __future__ import annotations

import pytest

from conformance.judge.suite_verdict import judge_test
from conformance.model.case import Deviation
from conformance.model.observation import Observation
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo

DECLARED = Deviation(
    releases=">=0.5", error="ValueError", match="^no", reason="arrays are immutable"
)
SOMETIMES = Deviation(error="ValueError", match="^no", reason="by the example", may_pass=True)


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
def test_each_outcome_has_a_verdict(
    outcome: Outcome, verdict: Verdict, conformance: Conformance
) -> None:
    """A pass conforms, failures deviate, and inconclusive outcomes are not judged."""
    judgement = judge_test(seen(outcome), declared=False)
    assert (judgement.verdict, judgement.conformance) == (verdict, conformance)
    assert bool(judgement.reasons) is (outcome is not Outcome.OK)


@pytest.mark.parametrize("deviations", [(), (DECLARED,), (SOMETIMES,)])
def test_a_failure_declared_by_the_test_is_known(deviations: tuple[Deviation, ...]) -> None:
    """It deviates, regardless of other declarations."""
    judgement = judge_test(seen(Outcome.RAISED, "x"), declared=True, deviations=deviations)
    assert (judgement.verdict, judgement.conformance) == (Verdict.KNOWN, Conformance.DEVIATES)


@pytest.mark.parametrize(
    ("observation", "verdict", "reason"),
    [
        (seen(Outcome.RAISED, "no 3"), Verdict.KNOWN, "deviation jax>=0.5: arrays are immutable"),
        (
            seen(Outcome.OK),
            Verdict.FIXED,
            ("deviation jax>=0.5 is fixed: the test passes; the deviation may end at this release"),
        ),
        (
            seen(Outcome.RAISED, "other\nlines"),
            Verdict.REGRESSED,
            (
                "not as the deviation jax>=0.5 declares: raised ValueError at execute: other; "
                "declared raised ValueError matching '^no'"
            ),
        ),
        (
            seen(Outcome.CRASHED),
            Verdict.CRASHED,
            (
                "not as the deviation jax>=0.5 declares: crashed ValueError at execute: no; "
                "declared raised ValueError matching '^no'"
            ),
        ),
    ],
)
def test_a_known_failure_is_known_fixed_or_changed(
    observation: Observation, verdict: Verdict, reason: str
) -> None:
    """As declared it is known, passing it is fixed, and another failure is described."""
    judgement = judge_test(observation, declared=False, deviations=(DECLARED,))
    assert (judgement.verdict, judgement.reasons) == (verdict, (reason,))


def test_a_skipped_test_with_a_deviation_has_a_note() -> None:
    """A skip is no failure, and does not end the deviation."""
    judgement = judge_test(seen(Outcome.UNSUPPORTED), declared=False, deviations=(DECLARED,))
    assert judgement.verdict is Verdict.EXCLUDED
    assert judgement.reasons == ("no", "so its deviation jax>=0.5 is not seen")


def test_an_intermittent_failure_may_pass() -> None:
    """Its attempts may disagree."""
    passed, failed, other = (
        seen(Outcome.OK), seen(Outcome.RAISED), seen(Outcome.RAISED, "otherwise"),
    )  # fmt: skip

    def verdict(first: Observation, *attempts: Observation) -> Verdict:
        return judge_test(first, declared=False, deviations=(SOMETIMES,), attempts=attempts).verdict

    assert verdict(passed) is verdict(passed, failed) is Verdict.MATCH
    assert verdict(failed) is verdict(failed, passed) is Verdict.KNOWN
    assert verdict(other) is Verdict.REGRESSED
    assert verdict(passed, other) is Verdict.FLAKY


@pytest.mark.parametrize(
    ("again", "flaky"),
    [
        (seen(Outcome.OK), True),
        (seen(Outcome.RAISED, "otherwise"), True),
        (seen(Outcome.RAISED), False),
        (seen(Outcome.INFRA), False),
    ],
)
def test_disagreeing_attempts_are_flaky(again: Observation, flaky: bool) -> None:
    """Inconclusive attempts are ignored."""
    judgement = judge_test(seen(Outcome.RAISED), declared=False, attempts=[again])
    assert judgement.verdict is (Verdict.FLAKY if flaky else Verdict.REGRESSED)
