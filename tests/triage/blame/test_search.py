"""The search for guilty packages: what it finds is enough and minimal, in few environments."""

from __future__ import annotations

from functools import partial
from math import ceil, log2
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.triage.blame.moves import moves_of
from conformance.triage.blame.search import Shows, search

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from conformance.triage.blame.moves import Moves, Unit

    Units = frozenset[Unit]


class World:
    """Environments in which some sets of packages are enough, and some mixtures say nothing."""

    def __init__(
        self,
        moves: Moves,
        enough: Collection[Collection[str]],
        silent: Callable[[Units], bool] = lambda _: False,
    ) -> None:
        self._moves, self._silent = moves, silent
        self._enough = [frozenset(names) for names in enough]
        self.asked: list[Units] = []

    def ask(self, units: Units) -> Shows:
        """Say what a mixture shows."""
        assert units not in self.asked
        assert units == self._moves.closed(units), "a mixture that is not admitted"
        self.asked.append(units)
        return self.shown(units)

    def shown(self, units: Units) -> Shows:
        """Say what a mixture shows; both ends always say something."""
        if units and len(units) < len(self._moves.units) and self._silent(units):
            return Shows.UNKNOWN
        moved = {name for unit in units for name in unit}
        return Shows.AFTER if any(names <= moved for names in self._enough) else Shows.BEFORE


def names(units: Collection[Unit]) -> set[str]:
    """Return the packages of units."""
    return {name for unit in units for name in unit}


def packages(count: int) -> list[str]:
    """Return names of packages."""
    return [f"p{number:02}" for number in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 13, 30])
def test_a_single_culprit(count: int) -> None:
    """It is found in log2(n) + 2 environments beside the ends, wherever it stands."""
    for culprit in packages(count):
        moves = moves_of(packages(count), {})
        world = World(moves, [[culprit]])
        found = search(moves, world.ask)
        assert [names(guilty.culprits) for guilty in found.guilty] == [{culprit}]
        assert found.held is Shows.BEFORE
        assert len(world.asked) <= ceil(log2(count)) + 2


@pytest.mark.parametrize("count", [8, 28])
def test_two_that_act_together(count: int) -> None:
    """Both are named."""
    asked = []
    for one in packages(count):
        for other in packages(count):
            moves = moves_of(packages(count), {})
            world = World(moves, [{one, other}])
            found = search(moves, world.ask)
            assert [names(guilty.culprits) for guilty in found.guilty] == [{one, other}]
            asked.append(len(world.asked))
    assert max(asked) <= 2 * ceil(log2(count)) + 4


def test_two_that_each_suffice() -> None:
    """Both are named, apart from each other: to hold one of them back does not help."""
    moves = moves_of(packages(8), {})
    found = search(moves, World(moves, [["p01"], ["p06"]]).ask)
    assert [names(guilty.culprits) for guilty in found.guilty] == [{"p01"}, {"p06"}]
    assert found.held is Shows.BEFORE


def test_what_nobody_suspects_is_searched_as_one() -> None:
    """Until it is seen that it is at fault all the same."""
    moves = moves_of(packages(28), {}, suspects=["p03", "p05", "p20"])
    assert [len(group) for group in moves.groups] == [1, 1, 1, 25]
    world = World(moves, [["p05"]])
    assert names(search(moves, world.ask).guilty[0].culprits) == {"p05"}
    assert len(world.asked) <= 4
    assert names(search(moves, World(moves, [["p27"]]).ask).guilty[0].culprits) == {"p27"}


def test_what_a_culprit_cannot_be_without() -> None:
    """It is told apart from the culprit, for it alone is not enough."""
    moves = moves_of(packages(4), {"p03": ["p00"], "p00": ["p01"], "p01": ["p00"]})
    (guilty,) = search(moves, World(moves, [["p03"]]).ask).guilty
    assert (guilty.culprits, guilty.beside) == ((("p03",),), (("p00", "p01"),))


def test_a_mixture_that_says_nothing() -> None:
    """The search goes around it; what cannot be told apart is named together, and said so."""
    moves = moves_of(packages(8), {})
    broken = frozenset({("p00",), ("p01",), ("p02",), ("p03",)})
    world = World(moves, [["p05"]], lambda units: units == broken)
    (guilty,) = search(moves, world.ask).guilty
    assert (names(guilty.culprits), guilty.silent) == ({"p05"}, ())
    (guilty,) = search(moves, World(moves, [["p05"]], partial(apart, "p05", "p06")).ask).guilty
    assert names(guilty.culprits) == {"p05", "p06"}
    assert guilty.silent == (("p05",), ("p06",))


def apart(one: str, other: str, units: Units) -> bool:
    """Say whether only one of two packages is moved."""
    return ((one,) in units) != ((other,) in units)


@pytest.mark.parametrize(("count", "most"), [(8, 16), (17, 21), (30, 24)])
def test_two_that_only_go_with_each_other(count: int, most: int) -> None:
    """Most mixtures say nothing then; they are not tried one by one."""
    moves = moves_of(packages(count), {})
    for one in packages(count):
        for other in set(packages(count)) - {one}:
            world = World(moves, [{one}], partial(apart, one, other))
            (guilty,) = search(moves, world.ask).guilty
            assert names(guilty.culprits) == {one, other}
            assert len(world.asked) <= most


NAMES = packages(9)
NEEDS = st.dictionaries(st.sampled_from(NAMES), st.frozensets(st.sampled_from(NAMES), max_size=2))
SETS = st.lists(
    st.frozensets(st.sampled_from(NAMES), min_size=1, max_size=3), min_size=1, max_size=3
)


@given(
    needs=NEEDS,
    enough=SETS,
    suspects=st.frozensets(st.sampled_from(NAMES)),
    broken=st.lists(st.frozensets(st.sampled_from(NAMES)), max_size=12),
    together=st.frozensets(st.sampled_from(NAMES), max_size=2),
)
def test_what_is_found_is_enough_and_minimal(
    needs: Mapping[str, Collection[str]],
    enough: list[frozenset[str]],
    suspects: Collection[str],
    broken: list[frozenset[str]],
    together: frozenset[str],
) -> None:
    """By trial, whatever needs what, whatever is enough, and whatever says nothing."""
    moves = moves_of(NAMES, needs, suspects=suspects)

    def silent(units: Units) -> bool:
        moved = names(units)
        return moved in broken or bool(moved & together) != (together <= moved)

    world = World(moves, enough, silent)
    found = search(moves, world.ask)
    for guilty in found.guilty:
        assert world.shown(guilty.units) is Shows.AFTER
        for unit in guilty.culprits:
            left = guilty.units - moves.dependents([unit])
            assert world.shown(left) is not Shows.AFTER
            assert (world.shown(left) is Shows.UNKNOWN) == (unit in guilty.silent)
        assert moves.closed(guilty.culprits) == guilty.units
    culprits = [unit for guilty in found.guilty for unit in guilty.culprits]
    left = frozenset(moves.units) - moves.dependents(culprits)
    assert world.shown(left) is found.held is not Shows.AFTER


@given(needs=NEEDS, suspects=st.frozensets(st.sampled_from(NAMES)))
def test_every_head_of_the_order_is_admitted(
    needs: Mapping[str, Collection[str]], suspects: Collection[str]
) -> None:
    """Each unit comes after those it needs, and every package is in one unit."""
    moves = moves_of(NAMES, needs, suspects=suspects)
    assert sorted(name for unit in moves.units for name in unit) == NAMES
    assert tuple(unit for group in moves.groups for unit in group) == moves.units
    for number in range(len(moves.units)):
        head = frozenset(moves.units[:number])
        assert moves.closed(head) == head
        moved = names(head)
        assert all(set(needs.get(name, ())) <= moved for name in moved)
