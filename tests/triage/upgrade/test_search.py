"""Laws of the search for every change between two points."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from conformance.triage.upgrade.search import changes, next_points

STATES = st.lists(st.integers(0, 3), min_size=2, max_size=24)
"""What is seen at each point."""


def searched(
    states: list[int],
    *,
    silent: frozenset[int] = frozenset(),
    coarse: tuple[int, ...] = (),
    thorough: bool = False,
) -> tuple[list[tuple[int, int]], set[int]]:
    """Search to the end; return what was found, and what was tried."""
    points = [n for n in range(len(states)) if n not in silent]
    seen: set[int] = set()

    def differ(before: int, after: int) -> bool:
        assert before < after
        assert {before, after} <= seen, "only what was tried is asked about"
        return states[before] != states[after]

    while wanted := next_points(points, seen, differ, coarse=coarse, thorough=thorough):
        assert not seen.intersection(wanted), "nothing is tried twice"
        seen.update(wanted)
    return changes(points, seen, differ) if len(points) > 1 else [], seen


def all_changes(states: list[int], silent: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
    """Return what every point shows."""
    points = [n for n in range(len(states)) if n not in silent]
    return [(a, b) for a, b in pairwise(points) if states[a] != states[b]]


@given(STATES)
def test_what_is_found_is_there(states: list[int]) -> None:
    """Each change between two neighbours, and no other."""
    found, _ = searched(states)
    assert set(found) <= set(all_changes(states))
    assert bool(found) == (states[0] != states[-1])


@given(STATES, st.frozensets(st.integers(1, 22)))
def test_a_thorough_search_misses_nothing(states: list[int], silent: frozenset[int]) -> None:
    """Also what changes and changes back; around points that say nothing."""
    silent -= {0, len(states) - 1}
    found, _ = searched(states, silent=silent, thorough=True)
    assert found == all_changes(states, silent)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=23), st.sets(st.integers(0, 23)))
def test_what_never_comes_back_is_found_whole(steps: list[int], coarse: set[int]) -> None:
    """However often it changes, and whatever is tried first."""
    states = [sum(steps[:n]) for n in range(len(steps) + 1)]
    found, _ = searched(states, coarse=tuple(coarse))
    assert found == all_changes(states)


def test_one_change_costs_its_logarithm() -> None:
    """Of 23 releases both ends and five more."""
    for first in range(1, 23):
        _, seen = searched([0] * first + [1] * (23 - first))
        assert len(seen) <= 7


def test_ends_that_are_alike_cost_two() -> None:
    """What changed in between and back is not looked for."""
    assert searched([0, 1, 1, 0]) == ([], {0, 3})


def test_a_detour_of_what_changed_is_seen_at_a_coarse_point() -> None:
    """Both ends differ: then it may have changed more than once."""
    states = [0, 1, 1, 1, 1, 2, 1, 1]
    assert searched(states)[0] == [(0, 1)]
    assert searched(states, coarse=(5,))[0] == [(0, 1), (4, 5), (5, 6)]


def test_what_changes_little_by_little_is_where_it_is_first_seen_to_differ() -> None:
    """No neighbours differ, and both ends do."""
    points, figures = range(6), (100, 104, 108, 112, 116, 120)
    seen: set[int] = set()

    def differ(before: int, after: int) -> bool:
        return figures[after] > 1.1 * figures[before]

    while wanted := next_points(points, seen, differ):
        seen.update(wanted)
    assert changes(points, seen, differ) == [(2, 3)]


def test_nothing_to_compare() -> None:
    """One point alone."""
    assert searched([5]) == ([], set())
