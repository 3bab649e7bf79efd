"""The verdict: every way in which outcome, conformance, golden and deviations may meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.judge.verdict import Judgement, judge
from conformance.model.golden import GoldenEntry, RecordedError
from conformance.model.observation import ExpectedError, Observation
from conformance.model.outcome import Conformance, Outcome, Verdict
from tests.builders import case, deviation, ended, f32, f64, ok, raised

if TYPE_CHECKING:
    from conformance.model.case import Case

PLAIN = case()
DECLARED = case(deviations=(deviation("<0.6", error="ValueError"),))
WRONG_VALUE = case(deviations=(deviation("<0.6", outcome="ok"),))
DRIFT = 1.000001

SEEN = ok(f32(1))
RIGHT = ok(f32(1), reference=f64(1))
WRONG = ok(f32(2), reference=f64(1))
RAISED = raised("ValueError", "bad shape at 0x7f931dda19e0")
CRASHED = ended(Outcome.CRASHED)
TIMED_OUT = ended(Outcome.TIMED_OUT)
NO_MEMORY = ended(Outcome.OUT_OF_MEMORY)


def _value(*numbers: float, exact: bool = True) -> GoldenEntry:
    return GoldenEntry(span="0.5.0..0.5.3", value=f32(*numbers), exact=exact)


def _error(
    type_: str = "ValueError",
    message: str = "bad shape at <address>",
    outcome: Outcome = Outcome.RAISED,
    **more: Any,
) -> GoldenEntry:
    error = RecordedError(outcome=outcome, stage="lower", type=type_, message=message)
    return GoldenEntry(span="0.5.0..0.5.3", error=error, **more)


TAINTED = GoldenEntry(span="", tainted=True)


def _judge(what: Case, seen: Observation, golden: GoldenEntry | None = None) -> Judgement:
    return judge(what, "0.5.3", "cpu", {"jax": "0.5.3"}, seen, golden)


@pytest.mark.parametrize(
    ("seen", "golden", "verdict"),
    [
        (SEEN, None, Verdict.NEW),
        (SEEN, TAINTED, Verdict.NEW),
        (SEEN, _value(1), Verdict.MATCH),
        (SEEN, _value(1, exact=False), Verdict.MATCH),
        (SEEN, _value(DRIFT), Verdict.DRIFTED),
        (SEEN, _value(2), Verdict.CHANGED),
        (SEEN, _error(), Verdict.FIXED),
        (RIGHT, None, Verdict.NEW),
        (RIGHT, _value(1), Verdict.MATCH),
        (RIGHT, _value(2), Verdict.CHANGED),
        (RIGHT, _error(), Verdict.FIXED),
        (WRONG, None, Verdict.REGRESSED),
        (WRONG, _value(2), Verdict.REGRESSED),
        (RAISED, None, Verdict.NEW),
        (RAISED, _error(), Verdict.MATCH),
        (RAISED, _error("TypeError"), Verdict.CHANGED),
        (RAISED, _error(message="other"), Verdict.CHANGED),
        (RAISED, _error(outcome=Outcome.CRASHED), Verdict.CHANGED),
        (RAISED, _value(1), Verdict.REGRESSED),
        (CRASHED, None, Verdict.CRASHED),
        (CRASHED, _error("", "", Outcome.CRASHED), Verdict.CRASHED),
        (NO_MEMORY, _value(1), Verdict.CRASHED),
        (TIMED_OUT, _error("", "", Outcome.TIMED_OUT), Verdict.TIMED_OUT),
    ],
)
def test_without_deviations(
    seen: Observation, golden: GoldenEntry | None, verdict: Verdict
) -> None:
    """Reference first, then the golden decides; crashes and hangs are never a match."""
    assert _judge(PLAIN, seen, golden).verdict is verdict


@pytest.mark.parametrize(
    ("seen", "golden", "verdict"),
    [
        (RAISED, None, Verdict.KNOWN),
        (RAISED, TAINTED, Verdict.KNOWN),
        (RAISED, _error(), Verdict.KNOWN),
        (RAISED, _error(message="other"), Verdict.CHANGED),
        (RAISED, _value(1), Verdict.CHANGED),
        (RIGHT, None, Verdict.FIXED),
        (RIGHT, _error(), Verdict.FIXED),
        (RIGHT, _value(1), Verdict.STALE),
        (RIGHT, _value(DRIFT), Verdict.STALE),
        (RIGHT, _value(1, exact=False), Verdict.FIXED),
        (RIGHT, _value(3), Verdict.FIXED),
        (SEEN, None, Verdict.FIXED),
        (SEEN, _value(1), Verdict.STALE),
        (WRONG, None, Verdict.REGRESSED),
        (WRONG, _value(2), Verdict.CHANGED),
        (WRONG, _error(), Verdict.REGRESSED),
        (raised("KeyError"), _error("KeyError", "bad shape"), Verdict.CHANGED),
        (raised("KeyError"), _error(), Verdict.REGRESSED),
        (CRASHED, _error("", "", Outcome.CRASHED), Verdict.CRASHED),
        (TIMED_OUT, None, Verdict.TIMED_OUT),
    ],
)
def test_under_a_declared_error(
    seen: Observation, golden: GoldenEntry | None, verdict: Verdict
) -> None:
    """Shown is known; conforming asks for the declaration to end; anything else gates."""
    assert _judge(DECLARED, seen, golden).verdict is verdict


@pytest.mark.parametrize(
    ("seen", "golden", "verdict"),
    [
        (WRONG, None, Verdict.KNOWN),
        (WRONG, _value(2), Verdict.KNOWN),
        (WRONG, _value(3), Verdict.CHANGED),
        (RIGHT, None, Verdict.FIXED),
        (RIGHT, _value(1), Verdict.STALE),
        (RAISED, None, Verdict.REGRESSED),
        (SEEN, _value(1), Verdict.MATCH),  # no reference applied: neither shown nor refuted
    ],
)
def test_under_a_declared_wrong_value(
    seen: Observation, golden: GoldenEntry | None, verdict: Verdict
) -> None:
    """A deviation in value is shown by deviating, and refuted only by conforming."""
    assert _judge(WRONG_VALUE, seen, golden).verdict is verdict


@pytest.mark.parametrize(
    ("seen", "golden", "verdict"),
    [
        (raised("TypeError", "no"), None, Verdict.NEW),
        (raised("TypeError", "no"), _error("TypeError", "no"), Verdict.MATCH),
        (raised("TypeError", "no"), _value(1), Verdict.CHANGED),
        (raised("KeyError", "no"), _error("KeyError", "no"), Verdict.REGRESSED),
        (ok(f32(1)), _value(1), Verdict.REGRESSED),
    ],
)
def test_when_an_error_is_expected(
    seen: Observation, golden: GoldenEntry | None, verdict: Verdict
) -> None:
    """Raising as expected conforms, even where the golden has a value."""
    expected = Observation(
        outcome=seen.outcome,
        stage=seen.stage,
        error=seen.error,
        value=seen.value,
        reference=ExpectedError(type="TypeError"),
    )
    assert _judge(PLAIN, expected, golden).verdict is verdict


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Outcome.INFRA, Verdict.INFRA),
        (Outcome.NOT_RUN, Verdict.INFRA),
        (Outcome.UNSUPPORTED, Verdict.EXCLUDED),
    ],
)
def test_inconclusive_outcomes_never_gate(outcome: Outcome, verdict: Verdict) -> None:
    """Goldens and deviations are irrelevant to them."""
    judged = _judge(DECLARED, ended(outcome), _value(1))
    assert (judged.verdict, judged.conformance) == (verdict, Conformance.UNKNOWN)
    assert not judged.verdict.gates


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_verdict_and_a_reason_unless_it_matches(outcome: Outcome) -> None:
    """No outcome falls through, and a gating verdict has a reason."""
    for golden in (None, TAINTED, _value(1), _error()):
        for what in (PLAIN, DECLARED, WRONG_VALUE):
            judged = _judge(what, ended(outcome), golden)
            assert judged.reasons or judged.verdict is Verdict.MATCH


@pytest.mark.parametrize(
    ("other", "flaky"),
    [
        (ok(f32(1)), False),
        (ok(f32(DRIFT)), False),
        (ok(f32(2)), True),
        (ok(), True),
        (RAISED, True),
        (CRASHED, True),
        (ended(Outcome.INFRA), False),
    ],
)
def test_attempts_that_disagree_are_flaky(other: Observation, flaky: bool) -> None:
    """Outcome and value beyond tolerance count; attempts that saw nothing do not."""
    judged = judge(PLAIN, "0.5.3", "cpu", {}, SEEN, _value(1), attempts=[SEEN, other])
    assert (judged.verdict is Verdict.FLAKY) is flaky
    assert judged.verdict in {Verdict.FLAKY, Verdict.MATCH}


def test_attempts_that_fail_alike_are_not_flaky() -> None:
    """Addresses differ from attempt to attempt; messages that mean another thing do."""
    again, other = raised("ValueError", "bad shape at 0x7f0000000000"), raised("ValueError", "no")
    assert judge(PLAIN, "0.5.3", "cpu", {}, RAISED, None, attempts=[again]).verdict is Verdict.NEW
    judged = judge(PLAIN, "0.5.3", "cpu", {}, RAISED, None, attempts=[other])
    assert judged.reasons[0].startswith("attempts disagree: raised ValueError at trace: no, then")


def test_a_deviation_of_another_release_does_not_apply() -> None:
    """From 0.6 on the declared error is a regression."""
    judged = judge(DECLARED, "0.6.0", "cpu", {}, RAISED, _value(1, exact=False))
    assert (judged.verdict, judged.conformance) == (Verdict.REGRESSED, Conformance.DEVIATES)


@pytest.mark.parametrize(
    ("releases", "release", "exact", "verdict"),
    [
        (">=0.6", "0.6.0.dev20250301", False, Verdict.KNOWN),
        (">=0.6", "0.6.0", False, Verdict.KNOWN),
        (">=0.5", "0.6.0.dev20250301", False, Verdict.CHANGED),
        ("", "0.6.0.dev20250301", False, Verdict.CHANGED),
        (">=0.6", "0.6.0", True, Verdict.CHANGED),
    ],
)
def test_a_golden_older_than_a_deviation_does_not_contradict_it(
    releases: str, release: str, exact: bool, verdict: Verdict
) -> None:
    """Of a nightly there is never one; what it is declared to show is known all the same."""
    declared = case(deviations=(deviation(releases, error="ValueError"),))
    golden = _value(1, exact=exact)  # of 0.5.0 to 0.5.3
    assert judge(declared, release, "cpu", {}, RAISED, golden).verdict is verdict


def test_a_change_names_both_values_and_the_command() -> None:
    """Where, got, expected, what to do."""
    (reason,) = _judge(PLAIN, SEEN, _value(2)).reasons
    assert reason.startswith(
        "out 1 of 1 elements differ, worst at [0]: 1.0 against golden 2.0, 8388608 ulp"
    )
    assert reason.endswith("; if intended: conformance accept family/name")


def test_a_value_unlike_its_reference_and_its_golden_is_reported_once() -> None:
    """With both labels; where they expect other numbers, each has its own sentence."""
    wrong = ok(f32(3), reference=f64(1))
    (reason,) = _judge(PLAIN, wrong, _value(1)).reasons
    assert "3.0 against reference and golden 1.0, " in reason
    of_reference, of_golden = _judge(PLAIN, wrong, _value(2)).reasons
    assert "3.0 against reference 1.0, " in of_reference
    assert "3.0 against golden 2.0, " in of_golden


def test_a_changed_outcome_names_both_outcomes() -> None:
    """The span of the golden shows the releases of the other outcome."""
    (reason,) = _judge(PLAIN, raised("TypeError", "no"), _error()).reasons
    assert reason == (
        "raised TypeError at trace: no, golden raised ValueError: bad shape at <address> "
        "(0.5.0..0.5.3); if intended: conformance accept family/name"
    )


@pytest.mark.parametrize(("golden", "word"), [(None, "fixed"), (_value(1), "stale")])
def test_the_reason_locates_an_ended_deviation(golden: GoldenEntry | None, word: str) -> None:
    """It names range, issue, file and line."""
    (reason,) = _judge(DECLARED, RIGHT, golden).reasons
    assert reason == (
        f"deviation jax<0.6 (jax-ml/jax#1) is {word}: ok at execute, as it should; "
        "end its range <0.6 in cases/family/topic.py:7"
    )


@pytest.mark.parametrize("golden", [None, _value(1)])
def test_a_broken_case_is_not_offered_for_acceptance(golden: GoldenEntry | None) -> None:
    """The advice is to fix the case."""
    reasons = _judge(PLAIN, raised("CaseError", "captured nothing"), golden).reasons
    assert "conformance accept" not in " ".join(reasons)
    assert reasons[-1].endswith("the case itself is wrong: fix it")


def test_a_tainted_golden_is_no_difference() -> None:
    """The advice is to convert or replace it."""
    (reason,) = _judge(PLAIN, SEEN, TAINTED).reasons
    assert reason == (
        "golden is tainted: convert it with conformance accept --migrate, or replace it with "
        "conformance accept family/name"
    )


def test_a_golden_without_a_value_agrees_with_success_only() -> None:
    """As on compile-only platforms."""
    golden = GoldenEntry(span="0.8.0")
    assert _judge(PLAIN, ok(), golden).verdict is Verdict.MATCH
    assert _judge(PLAIN, RAISED, golden).verdict is Verdict.REGRESSED


def test_the_tolerance_of_the_case_holds_for_its_golden() -> None:
    """Rtol 0 makes drift a change; a wide rtol makes a change drift."""
    assert _judge(case(rtol=0), SEEN, _value(DRIFT)).verdict is Verdict.CHANGED
    assert _judge(case(rtol=1), SEEN, _value(1.5)).verdict is Verdict.DRIFTED
