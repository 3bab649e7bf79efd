"""What was unexpected, by root cause: since when, until when, where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.engine.regression_tracker import Regression, RegressionStatus
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.report.history import make_history
from tests.report.nights import FINE, A, B, night, nights, state

if TYPE_CHECKING:
    from conformance.engine.digests import Digest

BAD = state(Verdict.REGRESSED, "out 3 of 8 elements differ, worst at [2]: 0.5 against 0.25, 3 ulp")
AS_BAD = state(Verdict.REGRESSED, "out 5 of 8 elements differ, worst at [7]: 1e-3 against 2, 9 ulp")
OTHER = state(Verdict.REGRESSED, "out dtype float64, golden float32")
INFRA = state(Verdict.INFRA, outcome=Outcome.INFRA)


def alone(runs: list[Digest]) -> Regression:
    """Return the only regression of some runs."""
    (found,) = make_history(runs).regressions
    return found


def kinds(runs: list[Digest]) -> list[tuple[str, int]]:
    """Return what happened, with the place of the run."""
    return [(event.kind.value, event.run) for event in make_history(runs).events]


def test_a_regression_is_open_from_the_first_run_that_shows_it() -> None:
    """The last one that does is told too."""
    found = alone(nights(FINE, BAD, BAD))
    assert (found.state, found.first, found.last, found.is_open) == (BAD, 1, 2, True)
    assert (found.places, found.open_places) == ((A,), (A,))
    assert make_history(nights(FINE, BAD)).releases == {A: "0.5.3"}
    assert found.fixed_in is None


def test_it_is_fixed_by_the_first_run_that_shows_it_gone() -> None:
    """Not by one in which its job did not run, or ended for reasons of the host."""
    runs = nights(BAD, None, INFRA, state(Verdict.EXCLUDED, outcome=Outcome.UNSUPPORTED), FINE)
    assert alone(runs[:-1]).is_open
    found = alone(runs)
    assert (found.status, found.last, found.fixed_in) == (RegressionStatus.FIXED, 0, 4)
    assert kinds(runs) == [("new", 0), ("fixed", 4)]


def test_it_comes_back() -> None:
    """As often as it does."""
    found = alone(runs := nights(BAD, FINE, BAD, FINE, BAD))
    assert (found.status, found.reopened, found.fixed_in) == (RegressionStatus.REOPENED, 2, None)
    assert kinds(runs)[-1] == ("reopened", 4)
    ended = alone(nights(BAD, FINE, BAD, FINE))
    assert (ended.status, ended.reopened) == (RegressionStatus.FIXED, 1)


def test_numbers_of_a_reason_do_not_make_another_regression() -> None:
    """They differ from run to run; what is shown is what was seen first."""
    found = alone(nights(BAD, AS_BAD))
    assert found.state.reason == BAD.reason
    assert len(make_history(nights(BAD, OTHER)).regressions) == 2


def test_one_that_turns_into_another_is_fixed() -> None:
    """Whatever came in its place is open."""
    made = make_history(nights(BAD, OTHER))
    assert [(one.state, one.is_open) for one in made.regressions] == [(OTHER, True), (BAD, False)]


def test_the_cells_of_one_cause_are_one_regression() -> None:
    """It is open until the last of them is mended."""
    runs = [
        night(0, {("f/a", A): BAD, ("f/a", B): AS_BAD}),
        night(1, {("f/a", A): FINE}),
        night(2, {("f/a", A): FINE, ("f/a", B): BAD}),
        night(3, {("f/a", B): FINE}),
    ]
    found = alone(runs[:2])
    assert (found.is_open, found.places, found.open_places) == (True, (A, B), (B,))
    assert (alone(runs).fixed_in, alone(runs).last) == (3, 2)
    assert [event.places for event in make_history(runs).events] == [(A, B), (B,)]


def test_cases_and_verdicts_set_regressions_apart() -> None:
    """Even where the reason is the same."""
    changed = state(Verdict.CHANGED, BAD.reason)
    runs = [night(0, {("f/a", A): BAD, ("f/a", B): changed, ("g/b", A): BAD})]
    assert len(make_history(runs).regressions) == 3


def test_what_is_new_is_unexpected_unless_it_conforms() -> None:
    """As a run's exit status has it."""
    unvouched: dict[str, Any] = {"conformance": Conformance.UNKNOWN}
    assert (
        alone(nights(state(Verdict.NEW, "no golden yet", **unvouched))).state.verdict is Verdict.NEW
    )
    assert make_history(nights(state(Verdict.NEW))).regressions == ()


def test_ids_depend_on_nothing_but_the_cause() -> None:
    """So that links and feeds hold, whatever else there is."""
    assert alone(nights(FINE, BAD)).id == alone(nights(AS_BAD, cell=B)).id
    assert alone(nights(BAD)).id != alone(nights(BAD, case="f/b")).id


def test_open_ones_come_first() -> None:
    """Those that began last, then those that ended last."""
    runs = [
        night(0, {("f/a", A): BAD, ("f/b", A): BAD, ("f/c", A): BAD, ("f/d", A): FINE}),
        night(1, {("f/a", A): FINE, ("f/d", A): BAD}),
        night(2, {("f/c", A): FINE}),
    ]
    assert [one.case for one in make_history(runs).regressions] == ["f/d", "f/b", "f/c", "f/a"]
