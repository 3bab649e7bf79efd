"""Measurements of jobs: how two costs of a phase are compared."""

from __future__ import annotations

from math import exp

import pytest

from conformance.bench.measured import Clock, Taken, compare_taken


def taken(best: float, *turns: float) -> Taken:
    """Return a cost whose processor time is this, with that of each turn."""
    by_turn = tuple(Taken(wall=2 * seconds, cpu=seconds) for seconds in turns)
    return Taken(wall=2 * best, cpu=best, turns=by_turn)


def compare(before: Taken | None, after: Taken | None, clock: Clock = Clock.CPU) -> float | None:
    """Return the ratio of two costs."""
    found = compare_taken(before, after, clock)
    return None if found is None else exp(found)


def test_jobs_that_ran_alone_are_compared_by_their_fastest_pass() -> None:
    """There is nothing else that both of them had."""
    assert compare(taken(0.010), taken(0.012)) == pytest.approx(1.2)
    assert compare(taken(0.010), None) is None
    assert compare(taken(0.010), taken(0.0)) is None
    assert compare(taken(0.010), taken(0.012), Clock.INSTRUCTIONS) is None


def test_jobs_that_took_turns_are_compared_turn_by_turn() -> None:
    """The host became faster for both; the fastest passes of both say something else."""
    before = taken(0.005, 0.020, 0.020, 0.010, 0.010)
    after = taken(0.011, 0.022, 0.022, 0.011, 0.011)
    for clock in (Clock.CPU, Clock.WALL):
        assert compare(before, after, clock) == pytest.approx(1.1)


def test_interrupted_turns_do_not_count() -> None:
    """Other load slows one of two jobs, and these turns are the slowest ones."""
    before = taken(0.010, 0.010, 0.010, 0.010, 0.030, 0.050)
    after = taken(0.011, 0.011, 0.011, 0.011, 0.011, 0.011)
    assert compare(before, after) == pytest.approx(1.1)


def test_a_turn_in_which_the_clock_did_not_move_says_nothing() -> None:
    """As one that only one of the jobs had."""
    assert compare(taken(0.010, 0.0, 0.010), taken(0.012, 0.012, 0.013)) == pytest.approx(1.3)
    assert compare(taken(0.010, 0.010), taken(0.012)) == pytest.approx(1.2)
