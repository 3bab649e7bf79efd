"""The search for changes between two ends."""

from __future__ import annotations

from math import ceil, log2
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.triage.bisect.search import Change, changes, wanted
from conformance.triage.questions.state import BAD, GOOD, Kind, State

if TYPE_CHECKING:
    from collections.abc import Sequence

RAISES = State(Kind.OTHER, "TypeError")
NOTHING = State(Kind.UNKNOWN, "no wheels")
LETTERS = {"g": GOOD, "b": BAD, "o": RAISES, "?": NOTHING}


def searched(axis: Sequence[State], width: int = 1) -> tuple[dict[int, State], int]:
    """Search an axis from its ends; return what was probed, and in how many rounds."""
    states = {0: axis[0], len(axis) - 1: axis[-1]}
    rounds = 1
    while numbers := wanted(states, width, eager=True):
        assert len(numbers) <= width
        assert not states.keys() & set(numbers)
        states.update({number: axis[number] for number in numbers})
        rounds += 1
    return states, rounds


def axis_of(text: str) -> list[State]:
    """Return an axis as letters spell it."""
    return [LETTERS[letter] for letter in text]


def found(text: str, width: int = 1) -> list[tuple[int, int]]:
    """Return the changes found on an axis."""
    return [(c.before, c.after) for c in changes(searched(axis_of(text), width)[0])]


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
    """Another failure in between makes two changes; what says nothing is stepped around."""
    assert found(axis) == pairs
    assert found(axis, 2) == pairs


def test_what_says_nothing_is_listed_with_its_change() -> None:
    """A reader sees which releases could not be asked."""
    assert changes(searched(axis_of("gg??bb"))[0]) == [Change(before=1, after=4, unknown=(2, 3))]


def test_equal_ends_have_nothing_to_search() -> None:
    """What lies between them is not asked."""
    assert searched(axis_of("gbg")) == ({0: GOOD, 2: GOOD}, 1)


def test_thirty_four_releases_take_seven_probes() -> None:
    """Both ends among them; one of thirty-three places more than five halvings can tell apart."""
    probes = [len(searched([GOOD] * n + [BAD] * (34 - n))[0]) for n in range(1, 34)]
    assert sorted(probes)[-2:] == [8, 8]
    assert sorted(probes)[-3] <= 7


def test_two_at_a_time_take_fewer_rounds() -> None:
    """And more probes; unless it is one stretch, and nobody is in a hurry."""
    assert len(wanted({0: GOOD, 30: BAD}, 2)) == 1
    axis = [GOOD] * 20 + [BAD] * 60
    one, two = searched(axis), searched(axis, 2)
    assert two[1] < one[1]
    assert changes(two[0]) == changes(one[0])


states = st.sampled_from([GOOD, BAD, RAISES, State(Kind.OTHER, "ValueError")])
axes = st.lists(st.one_of(states, st.just(NOTHING)), min_size=2, max_size=60).filter(
    lambda axis: axis[0].is_known and axis[-1].is_known
)


@given(axes, st.integers(1, 3))
def test_whatever_is_found_is_a_change_between_neighbours(axis: list[State], width: int) -> None:
    """Nothing that says something lies between; unequal ends have at least one change."""
    seen, _ = searched(axis, width)
    made = changes(seen)
    assert bool(made) or axis[0] == axis[-1]
    for change in made:
        assert axis[change.before] != axis[change.after]
        between = range(change.before + 1, change.after)
        assert all(not axis[number].is_known for number in between)
        assert change.unknown == tuple(between)


@given(st.integers(1, 200), st.integers(1, 200))
def test_one_change_takes_a_logarithm(before: int, after: int) -> None:
    """Both ends, and one halving after another."""
    seen, _ = searched([GOOD] * before + [BAD] * after)
    assert changes(seen) == [Change(before=before - 1, after=before)]
    assert len(seen) <= 2 + ceil(log2(before + after - 1))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_two_changes_are_both_found(good: int, other: int, bad: int) -> None:
    """However short the state between them is."""
    seen, _ = searched([GOOD] * good + [RAISES] * other + [BAD] * bad)
    places = [(change.before, change.after) for change in changes(seen)]
    assert places == [(good - 1, good), (good + other - 1, good + other)]
