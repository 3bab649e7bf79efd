"""The life of a regression: opened, fixed, reopened, by the jobs that show it."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.following import Followed, Move
from tests.store.nights import BAD

JOBS = st.sets(st.integers(1, 4))


def followed() -> Followed:
    """Return a regression that no job shows yet."""
    return Followed(id="0123", case="f/a", state=BAD, first=1)


def test_the_life_of_a_regression() -> None:
    """It is fixed when its last job no longer shows it, and not before."""
    one = followed()
    assert one.move(1, (), (1, 2)) is Move.OPENED
    assert one.move(2, (1,), ()) is None
    assert one.move(3, (2,), ()) is Move.FIXED
    assert one.fixed_in == 3
    assert one.move(5, (), (3,)) is Move.REOPENED
    again = replace(one)
    assert again.fixed_in is None
    assert (again.opened_in, again.reopened, again.ever) == (5, 1, {1, 2, 3})


@given(runs=st.lists(JOBS, max_size=12))
def test_it_is_open_while_any_job_shows_it(runs: list[set[int]]) -> None:
    """Whatever the runs show; fixed and opened take turns."""
    one = followed()
    moves = []
    before: set[int] = set()
    for run, shows in enumerate(runs, 1):
        move = one.move(run, before - shows, shows - before)
        before = shows
        assert one.open == shows
        assert (one.fixed_in is None) == (bool(shows) or not one.ever)
        moves += [move] if move else []
    assert moves[:1] in ([], [Move.OPENED])
    assert all(a is Move.FIXED or b is Move.FIXED for a, b in itertools.pairwise(moves))
    assert one.reopened == moves.count(Move.REOPENED)
