"""Bisection of an ordered axis."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, log2
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.search.bisection import (
    ChangePoint,
    choose_points,
    choose_untried_points,
    find_change_points,
    find_changes,
)
from conformance.search.predicates import BAD, GOOD, PointKind, PointState

if TYPE_CHECKING:
    from collections.abc import Sequence

RAISES = PointState(PointKind.OTHER, "TypeError")
NOTHING = PointState(PointKind.UNKNOWN, "no wheels")
LETTERS = {"g": GOOD, "b": BAD, "o": RAISES, "?": NOTHING}


def searched(axis: Sequence[PointState], width: int = 1) -> tuple[dict[int, PointState], int]:
    """Search an axis from its ends; return what was probed, and in how many rounds."""
    states = {0: axis[0], len(axis) - 1: axis[-1]}
    rounds = 1
    while numbers := choose_untried_points(states, width, eager=True):
        assert len(numbers) <= width
        assert not states.keys() & set(numbers)
        states.update({number: axis[number] for number in numbers})
        rounds += 1
    return states, rounds


def axis_of(text: str) -> list[PointState]:
    """Return an axis as letters spell it."""
    return [LETTERS[letter] for letter in text]


def found(text: str, width: int = 1) -> list[tuple[int, int]]:
    """Return the changes found on an axis."""
    return [(c.before, c.after) for c in find_change_points(searched(axis_of(text), width)[0])]


@pytest.mark.parametrize(
    ("axis", "pairs"),
    [
        ("gb", [(0, 1)]),
        ("gggggbbb", [(4, 5)]),
        ("gggobbbbb", [(2, 3), (3, 4)]),
        ("ggooooobb", [(1, 2), (6, 7)]),
        ("ggg??bbb", [(2, 5)]),
        ("g??????b", [(0, 7)]),
        ("gg?o?bb", [(1, 3), (3, 5)]),
    ],
)
def test_every_change_is_found(axis: str, pairs: list[tuple[int, int]]) -> None:
    """Another failure in between makes two changes; unknown points are skipped."""
    assert found(axis) == pairs
    assert found(axis, 2) == pairs


def test_unknown_points_are_listed_with_their_change() -> None:
    """A reader sees which releases could not be asked."""
    assert find_change_points(searched(axis_of("gg??bb"))[0]) == [
        ChangePoint(before=1, after=4, unknown=(2, 3))
    ]


def test_equal_ends_have_nothing_to_search() -> None:
    """Points between them are not tried."""
    assert searched(axis_of("gbg")) == ({0: GOOD, 2: GOOD}, 1)


def test_thirty_four_releases_take_seven_probes() -> None:
    """Both ends among them; one of thirty-three places more than five halvings can tell apart."""
    probes = [len(searched([GOOD] * n + [BAD] * (34 - n))[0]) for n in range(1, 34)]
    assert sorted(probes)[-2:] == [8, 8]
    assert sorted(probes)[-3] <= 7


def test_two_at_a_time_take_fewer_rounds() -> None:
    """And more probes; unless it is one stretch, and nobody is in a hurry."""
    assert len(choose_untried_points({0: GOOD, 30: BAD}, 2)) == 1
    axis = [GOOD] * 20 + [BAD] * 60
    one, two = searched(axis), searched(axis, 2)
    assert two[1] < one[1]
    assert find_change_points(two[0]) == find_change_points(one[0])


states = st.sampled_from([GOOD, BAD, RAISES, PointState(PointKind.OTHER, "ValueError")])
axes = st.lists(st.one_of(states, st.just(NOTHING)), min_size=2, max_size=60).filter(
    lambda axis: axis[0].is_known and axis[-1].is_known
)


@given(axes, st.integers(1, 3))
def test_every_change_is_between_neighbours(axis: list[PointState], width: int) -> None:
    """Nothing that says something lies between; unequal ends have at least one change."""
    seen, _ = searched(axis, width)
    made = find_change_points(seen)
    assert bool(made) or axis[0] == axis[-1]
    for change in made:
        assert axis[change.before] != axis[change.after]
        between = range(change.before + 1, change.after)
        assert all(not axis[number].is_known for number in between)
        assert change.unknown == tuple(between)


@given(st.integers(1, 200), st.integers(1, 200))
def test_one_change_takes_logarithmic_trials(before: int, after: int) -> None:
    """Both ends, and a halving after another."""
    seen, _ = searched([GOOD] * before + [BAD] * after)
    assert find_change_points(seen) == [ChangePoint(before=before - 1, after=before)]
    assert len(seen) <= 2 + ceil(log2(before + after - 1))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_two_changes_are_both_found(good: int, other: int, bad: int) -> None:
    """However short the state between them is."""
    seen, _ = searched([GOOD] * good + [RAISES] * other + [BAD] * bad)
    places = [(change.before, change.after) for change in find_change_points(seen)]
    assert places == [(good - 1, good), (good + other - 1, good + other)]


STATES = st.lists(st.integers(0, 3), min_size=2, max_size=24)
"""What is seen at each point."""


def searched_to_the_end(
    states: list[int],
    *,
    silent: frozenset[int] = frozenset(),
    coarse: tuple[int, ...] = (),
    every: bool = False,
) -> tuple[list[tuple[int, int]], set[int]]:
    """Search to the end; return what was found, and what was tried."""
    points = [n for n in range(len(states)) if n not in silent]
    seen: set[int] = set()

    def differ(before: int, after: int) -> bool:
        assert before < after
        assert {before, after} <= seen, "only what was tried is asked about"
        return states[before] != states[after]

    while wanted := choose_points(points, seen, differ, coarse=coarse, every=every):
        assert not seen.intersection(wanted), "nothing is tried twice"
        seen.update(wanted)
    return find_changes(seen, differ) if len(points) > 1 else [], seen


def all_changes(states: list[int], silent: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
    """Return what every point shows."""
    points = [n for n in range(len(states)) if n not in silent]
    return [(a, b) for a, b in pairwise(points) if states[a] != states[b]]


@given(STATES)
def test_changes_are_exactly_those_of_the_axis(states: list[int]) -> None:
    """Each between two neighbours."""
    found, _ = searched_to_the_end(states)
    assert set(found) <= set(all_changes(states))
    assert bool(found) == (states[0] != states[-1])


@given(STATES, st.frozensets(st.integers(1, 22)))
def test_a_thorough_search_misses_nothing(states: list[int], silent: frozenset[int]) -> None:
    """Not even changes that are undone; unknown points are skipped."""
    silent -= {0, len(states) - 1}
    found, _ = searched_to_the_end(states, silent=silent, every=True)
    assert found == all_changes(states, silent)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=23), st.sets(st.integers(0, 23)))
def test_all_changes_of_a_monotonic_axis_are_found(steps: list[int], coarse: set[int]) -> None:
    """Any number of them, in any order of trials."""
    states = [sum(steps[:n]) for n in range(len(steps) + 1)]
    found, _ = searched_to_the_end(states, coarse=tuple(coarse))
    assert found == all_changes(states)


def test_one_change_of_23_releases_costs_seven_trials() -> None:
    """Both ends and five more."""
    for first in range(1, 23):
        _, seen = searched_to_the_end([0] * first + [1] * (23 - first))
        assert len(seen) <= 7


def test_equal_ends_cost_two_trials() -> None:
    """Changes between them that are undone are not searched."""
    assert searched_to_the_end([0, 1, 1, 0]) == ([], {0, 3})


def test_an_undone_change_is_seen_at_a_coarse_point() -> None:
    """If both ends differ, the axis may have several changes."""
    states = [0, 1, 1, 1, 1, 2, 1, 1]
    assert searched_to_the_end(states)[0] == [(0, 1)]
    assert searched_to_the_end(states, coarse=(5,))[0] == [(0, 1), (4, 5), (5, 6)]


def test_a_gradual_change_is_at_the_first_point_that_differs_from_the_start() -> None:
    """No neighbours differ, but both ends do."""
    points, figures = range(6), (100, 104, 108, 112, 116, 120)
    seen: set[int] = set()

    def differ(before: int, after: int) -> bool:
        return figures[after] > 1.1 * figures[before]

    while wanted := choose_points(points, seen, differ):
        seen.update(wanted)
    assert find_changes(seen, differ) == [(2, 3)]


def test_a_single_point_has_no_change() -> None:
    """One point alone."""
    assert searched_to_the_end([5]) == ([], set())
