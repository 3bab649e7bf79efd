"""Verdicts by date over many runs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.runs.digests import Digest
from conformance.engine.runs.regression_tracker import Regression, RegressionStatus
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.report.history import (
    NOTHING,
    carry_forward,
    encode_run_lengths,
    make_history,
    select_runs,
)
from tests.report.nights import FINE, A, B, night, nights, state

STATES = (
    state(FINE),
    state(Verdict.KNOWN),
    state(Verdict.REGRESSED, "out 3 of 8 elements differ"),
    state(Verdict.REGRESSED, "out 5 of 8 elements differ"),
    state(Verdict.CHANGED, "facts differ"),
    state(Verdict.INFRA, outcome=Outcome.INFRA),
    state(Verdict.EXCLUDED, outcome=Outcome.UNSUPPORTED),
)
JOBS = st.dictionaries(
    st.tuples(st.sampled_from(["f/a", "f/b", "g/c"]), st.sampled_from([A, B])),
    st.sampled_from(STATES),
    min_size=1,
)


@st.composite
def some_nights(draw: st.DrawFn) -> list[Digest]:
    """Return up to eight runs, a night each; some ran hardly anything."""
    return [night(number, jobs) for number, jobs in enumerate(draw(st.lists(JOBS, max_size=8)))]


def test_verdicts_are_told_by_date_as_long_as_they_last() -> None:
    """Run-length encoded; a run without the job is a hole."""
    made = make_history(nights(FINE, FINE, None, Verdict.REGRESSED, FINE))
    assert made.verdicts("f/a", A) == [
        (Verdict.MATCH, 2), (None, 1), (Verdict.REGRESSED, 1), (Verdict.MATCH, 1),
    ]  # fmt: skip


def test_a_run_has_its_counts_and_its_exit_status() -> None:
    """Counts in the order of the verdicts, the day, and whether it ended."""
    jobs = {("f/a", A): Verdict.REGRESSED, ("f/a", B): FINE, ("f/b", A): FINE}
    killed = night(4, jobs, finished="", exit=None)
    (run,) = make_history([killed]).runs
    assert run.counts == {Verdict.MATCH: 2, Verdict.REGRESSED: 1}
    assert (run.jobs, run.unexpected, run.date, run.finished) == (3, 1, "2026-05-05", "")


def test_runs_are_ordered_by_when_they_began_then_by_name() -> None:
    """Whatever their zone; of two that began within a second the name says; unknown comes first."""
    jobs = {("f/a", A): FINE}
    times = {
        "c": "2026-05-01T02:00:00+02:00", "b": "2026-05-01T01:00:00+00:00",
        "a": "2026-05-01T01:00:00+00:00", "d": "yesterday", "e": "2026-05-01T00:30:00",
    }  # fmt: skip
    made = make_history(
        [night(0, jobs, run=run, started=started) for run, started in times.items()]
    )
    assert [run.id for run in made.runs] == ["d", "c", "e", "a", "b"]
    assert made.runs[0].date == "an unknown date"


def test_runs_are_ordered_even_if_a_clock_stepped_back() -> None:
    """A run that ended before it began, and one that began before its elder."""
    jobs = {("f/a", A): FINE}
    back = {"started": "2026-05-02T03:00:00+00:00", "finished": "2026-05-01T03:00:00+00:00"}
    made = make_history([night(4, jobs), night(5, jobs, **back)])
    assert [run.id for run in made.runs] == ["run-05", "run-04"]


def test_a_run_given_twice_counts_once() -> None:
    """E.g. named itself and with its folder."""
    one = night(0, {("f/a", A): FINE})
    assert len(make_history([one, one]).runs) == 1


@given(st.lists(st.integers(0, NOTHING)))
def test_run_lengths_decode_to_the_same_values(values: list[int]) -> None:
    """And neighbours are never equal."""
    lengths = encode_run_lengths(values)
    assert [value for value, length in lengths for _ in range(length)] == values
    assert all(a[0] != b[0] for a, b in pairwise(lengths))


@given(st.lists(st.integers(NOTHING - 2, NOTHING)))
def test_only_gaps_between_two_ranks_are_filled(ranks: list[int]) -> None:
    """With what was seen before."""
    seen = [place for place, rank in enumerate(ranks) if rank != NOTHING]
    filled = carry_forward(ranks)
    assert all(filled[place] == ranks[place] for place in seen)
    known = {place for place, rank in enumerate(filled) if rank != NOTHING}
    assert known == (set(range(seen[0], seen[-1] + 1)) if seen else set())


@given(some_nights(), st.data())
def test_the_order_of_reading_does_not_matter(runs: list[Digest], data: st.DataObject) -> None:
    """Runs are ordered by when they began."""
    shuffled = data.draw(st.permutations(runs))
    one, other = make_history(runs), make_history(shuffled)
    assert (one.runs, one.regressions, one.events) == (other.runs, other.regressions, other.events)
    assert one.ranks.tolist() == other.ranks.tolist()


@given(some_nights(), st.integers(0, 8))
def test_the_history_of_a_prefix_is_a_prefix(runs: list[Digest], length: int) -> None:
    """What later runs say changes nothing about what happened before."""
    part, whole = make_history(runs[:length]), make_history(runs)
    assert whole.runs[:length] == part.runs
    assert [event for event in whole.events if event.run < length] == list(part.events)
    for case in part.cases:
        for place, cell in enumerate(part.cells):
            told = whole.of_case(case)[:length, whole.cells.index(cell)]
            assert told.tolist() == part.of_case(case)[:, place].tolist()


@given(some_nights())
def test_a_job_that_never_ran_says_nothing(runs: list[Digest]) -> None:
    """Neither does a run without it, nor a job that ended for reasons of the host."""
    made = make_history(runs)
    ran = {
        (case, cell)
        for run in runs
        for row, case in enumerate(run.cases)
        for column, cell in enumerate(run.cells)
        if run.table[row, column]
    }
    for case in made.cases:
        for cell in made.cells:
            verdicts = made.verdicts(case, cell)
            assert ((case, cell) in ran) == any(verdict is not None for verdict, _ in verdicts)
    for regression in made.regressions:
        assert {(regression.case, cell) for cell in regression.places} <= ran


@given(some_nights())
def test_a_regression_is_open_until_all_of_its_jobs_ran_again(runs: list[Digest]) -> None:
    """Told a second way: by the last word of each job."""
    last = {}
    for run in runs:
        for row, case in enumerate(run.cases):
            for column, cell in enumerate(run.cells):
                if number := run.table[row, column]:
                    said = run.states[number - 1]
                    if said.is_conclusive:
                        last[case, cell] = said
    expected = {
        (case, said.verdict, said.cause, cell)
        for (case, cell), said in last.items()
        if said.unexpected
    }
    causes = {said.reason: said.cause for said in STATES}
    found = {
        (one.case, one.state.verdict, causes[one.state.reason], cell)
        for one in make_history(runs).regressions
        for cell in one.open_places
    }
    assert found == expected


def test_cells_are_ordered_by_track_and_release() -> None:
    """Not by their names: 0.10 comes after 0.9."""
    places = ("0.10.2-py311-tpu.v5e.2x2", "0.10.2-py311-cpu8", "0.9.2-py311-cpu8")
    jobs = {("f/a", f"jax{place}"): state(FINE) for place in places}
    assert make_history([night(0, jobs)]).cells == tuple(
        f"jax{place}" for place in reversed(places)
    )


def test_a_nightly_is_one_cell_from_day_to_day() -> None:
    """What one night showed is fixed by the next, though its cell is called otherwise."""
    days = ["jax0.13.0.dev20260501-py312-cpu8", "jax0.13.0.dev20260502-py312-cpu8"]
    bad = state(Verdict.REGRESSED, "out differs")
    told = make_history([
        night(0, {("f/a", days[0]): bad, ("f/a", A): FINE}),
        night(1, {("f/a", days[1]): FINE, ("f/a", A): FINE}),
    ])  # fmt: skip
    assert told.cells == (A, "nightly-cpu8")
    (regression,) = told.regressions
    assert (regression.first, regression.fixed_in) == (0, 1)
    assert told.verdicts("f/a", "nightly-cpu8") == [(Verdict.REGRESSED, 1), (FINE, 1)]


def run(name: str, matrix: str = "nightly", part: str = "") -> Digest:
    """Return a run that began on the day it is named after."""
    return Digest(run=name, started=f"2026-05-{name}T00:00:00+00:00", matrix=matrix, part=part)


@pytest.mark.parametrize(
    ("runs", "chosen"),
    [
        ([], []),
        ([run("01")], ["01"]),
        ([run("02"), run("01")], ["02"]),
        ([run("01", "releases"), run("02"), run("03")], ["01", "03"]),
        ([run("01"), run("02", part="shard_map_while")], ["01", "02"]),
        ([run("01"), run("02", part="f/a"), run("03")], ["03"]),
        ([run("01", ""), run("02", "")], ["02"]),
    ],
    ids=["none", "one", "two nights", "two matrices", "a part last", "a part between", "cells"],
)
def test_the_newest_run_and_the_newest_of_each_matrix_are_selected(
    runs: list[Digest], chosen: list[str]
) -> None:
    """What ran a part of a matrix stands for it in no report but its own."""
    assert [digest.run for digest in select_runs(runs)] == chosen


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


def test_a_regression_is_fixed_by_the_first_run_without_it() -> None:
    """Not by one in which its job did not run, or ended for reasons of the host."""
    runs = nights(BAD, None, INFRA, state(Verdict.EXCLUDED, outcome=Outcome.UNSUPPORTED), FINE)
    assert alone(runs[:-1]).is_open
    found = alone(runs)
    assert (found.status, found.last, found.fixed_in) == (RegressionStatus.FIXED, 0, 4)
    assert kinds(runs) == [("new", 0), ("fixed", 4)]


def test_a_fixed_regression_reopens() -> None:
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


def test_a_regression_replaced_by_another_is_fixed() -> None:
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


def test_other_cases_and_verdicts_are_other_regressions() -> None:
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


def test_open_regressions_come_first() -> None:
    """Those that began last, then those that ended last."""
    runs = [
        night(0, {("f/a", A): BAD, ("f/b", A): BAD, ("f/c", A): BAD, ("f/d", A): FINE}),
        night(1, {("f/a", A): FINE, ("f/d", A): BAD}),
        night(2, {("f/c", A): FINE}),
    ]
    assert [one.case for one in make_history(runs).regressions] == ["f/d", "f/b", "f/c", "f/a"]
