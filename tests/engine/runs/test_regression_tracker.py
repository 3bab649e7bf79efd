"""The life of a regression: opened, fixed and reopened by the jobs that show it."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.runs.regression_tracker import (
    IssueLink,
    RegressionStatus,
    RegressionTracker,
    StateTable,
)
from tests.store.nights import BAD, FINE, WORSE

JOBS = 4
TABLE = StateTable({1: FINE, 2: BAD, 3: WORSE})
SHOWN = st.sets(st.integers(0, JOBS - 1))
NEW, FIXED, REOPENED = RegressionStatus.NEW, RegressionStatus.FIXED, RegressionStatus.REOPENED


def tracker(*runs: set[int]) -> RegressionTracker:
    """Return a tracker of four jobs of a case, of which each run shows some as bad."""
    places = np.arange(JOBS)
    made = RegressionTracker(["f/a"], np.zeros(JOBS, np.int64), list("abcd"), places)
    for run, bad in enumerate(runs, 1):
        states = np.where(np.isin(places, sorted(bad)), 2, 1)
        made.add(run, places, states, TABLE, ran=places)
    return made


def test_the_life_of_a_regression() -> None:
    """It is fixed when its last job no longer shows it, and not before."""
    made = tracker({1, 2}, {2}, set(), set(), {3})
    moves = [(e.kind, e.run, e.places) for e in made.events if e.kind != "confirmed"]
    assert moves == [(NEW, 1, ("b", "c")), (FIXED, 3, ("c",)), (REOPENED, 5, ("d",))]
    (one,) = made.list_regressions()
    assert (one.status, one.reopened, one.fixed_in) == (REOPENED, 1, None)
    assert (one.places, one.open_places) == (("b", "c", "d"), ("d",))


def test_a_job_that_does_not_run_leaves_its_regression_open() -> None:
    """As far as is known it still shows it."""
    made = tracker({1})
    none = np.zeros(JOBS, np.int64)
    made.add(2, np.arange(JOBS), none, TABLE, ran=np.arange(JOBS))
    (one,) = made.list_regressions()
    assert (one.is_open, one.last, one.status) == (True, 1, NEW)


def test_a_link_before_the_last_reopening_does_not_count() -> None:
    """Nor is one ever older than a regression that was opened once."""
    made = tracker({1}, set(), {1})
    (one,) = made.list_regressions()
    statuses = [
        made.list_regressions({one.id: IssueLink("o/r#1", run)})[0].status for run in (1, 3)
    ]
    assert statuses == [REOPENED, RegressionStatus.KNOWN]
    (once,) = tracker({1}).list_regressions({one.id: IssueLink("o/r#1", 0)})
    assert once.status is RegressionStatus.KNOWN


def test_another_verdict_of_a_job_is_another_regression() -> None:
    """The first is fixed, the second is new."""
    made = tracker({1})
    made.add(2, np.array([1]), np.array([3]), TABLE, ran=np.arange(JOBS))
    assert [(one.state, one.is_open) for one in made.list_regressions()] == [
        (WORSE, True),
        (BAD, False),
    ]


@given(runs=st.lists(SHOWN, max_size=12))
def test_a_regression_is_open_while_any_job_shows_it(runs: list[set[int]]) -> None:
    """In any sequence of runs; opening and fixing alternate."""
    made = tracker(*runs)
    seen: list[RegressionStatus] = [event.kind for event in made.events]
    moves = [kind for kind in seen if kind != RegressionStatus.CONFIRMED]
    for one in made.list_regressions():
        assert one.open_places == tuple("abcd"[job] for job in sorted(runs[-1]))
        assert one.is_open is bool(runs[-1])
        assert one.reopened == sum(kind is REOPENED for kind in moves)
    assert moves[:1] in ([], [NEW])
    assert all(a is FIXED or b is FIXED for a, b in itertools.pairwise(moves))
