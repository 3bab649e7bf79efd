"""Delta debugging: the set that is found is enough and minimal, in few trials."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from math import ceil, log2
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.search.ddmin import (
    MinimalSet,
    SetResult,
    SetTest,
    Units,
    find_enough,
    minimize,
    minimize_all,
    sweep,
)
from conformance.triage.blame.mixtures import make_units

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from conformance.triage.blame.mixtures import Unit

    Moved = frozenset[Unit]
    Names = tuple[str, ...]


class Mixed:
    """A world in which some sets of packages are enough, and some mixtures are unresolved."""

    def __init__(
        self,
        units: Units[Unit],
        enough: Collection[Collection[str]],
        is_unresolved: Callable[[Moved], bool] = lambda _: False,
    ) -> None:
        self._units, self._is_unresolved = units, is_unresolved
        self._enough = [frozenset(names) for names in enough]
        self.tried: list[Moved] = []

    def test(self, ordered: tuple[Unit, ...]) -> SetResult:
        """Try a set."""
        units = frozenset(ordered)
        assert ordered == self._units.sort(units)
        assert units not in self.tried
        assert units == self._units.add_needs(units), "a mixture that cannot be installed"
        self.tried.append(units)
        return self.result(units)

    def result(self, units: Moved) -> SetResult:
        """Return the result of a set; those of both ends are always resolved."""
        if units and len(units) < len(self._units.order) and self._is_unresolved(units):
            return SetResult.UNRESOLVED
        moved = packages_in(units)
        is_enough = any(names <= moved for names in self._enough)
        return SetResult.ENOUGH if is_enough else SetResult.NOT_ENOUGH

    def search(self) -> tuple[list[MinimalSet[Unit]], SetResult]:
        """Search for all minimal sets."""
        known = {frozenset(self._units.order): SetResult.ENOUGH}
        return minimize_all(SetTest(self._units, self.test, known))


def packages_in(units: Collection[Unit]) -> set[str]:
    """Return the packages of units."""
    return {name for unit in units for name in unit}


def packages(count: int) -> list[str]:
    """Return names of packages."""
    return [f"p{number:02}" for number in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 13, 30])
def test_a_single_culprit(count: int) -> None:
    """It is found in log2(n) + 2 trials, wherever it stands."""
    for culprit in packages(count):
        world = Mixed(make_units(packages(count), {}), [[culprit]])
        found, held = world.search()
        assert [packages_in(guilty.culprits) for guilty in found] == [{culprit}]
        assert held is SetResult.NOT_ENOUGH
        assert len(world.tried) <= ceil(log2(count)) + 2


@pytest.mark.parametrize("count", [8, 28])
def test_two_culprits_that_act_together_are_both_named(count: int) -> None:
    """In one set."""
    tried = []
    for one in packages(count):
        for other in packages(count):
            world = Mixed(make_units(packages(count), {}), [{one, other}])
            found, _ = world.search()
            assert [packages_in(guilty.culprits) for guilty in found] == [{one, other}]
            tried.append(len(world.tried))
    assert max(tried) <= 2 * ceil(log2(count)) + 4


def test_two_sufficient_culprits_are_separate_sets() -> None:
    """Holding back only one of them does not help."""
    found, held = Mixed(make_units(packages(8), {}), [["p01"], ["p06"]]).search()
    assert [packages_in(guilty.culprits) for guilty in found] == [{"p01"}, {"p06"}]
    assert held is SetResult.NOT_ENOUGH


def test_units_without_suspects_are_searched_as_one() -> None:
    """Until one of them turns out to be a culprit."""
    units = make_units(packages(28), {}, suspects=["p03", "p05", "p20"])
    assert [len(group) for group in units.groups] == [1, 1, 1, 25]
    world = Mixed(units, [["p05"]])
    assert packages_in(world.search()[0][0].culprits) == {"p05"}
    assert len(world.tried) <= 4
    assert packages_in(Mixed(units, [["p27"]]).search()[0][0].culprits) == {"p27"}


def test_needed_units_are_separate_from_culprits() -> None:
    """The culprit cannot be tried without them."""
    units = make_units(packages(4), {"p03": ["p00"], "p00": ["p01"], "p01": ["p00"]})
    (guilty,), _ = Mixed(units, [["p03"]]).search()
    assert (guilty.culprits, guilty.needed) == ((("p03",),), (("p00", "p01"),))


def test_unresolved_sets_are_skipped() -> None:
    """Culprits that cannot be distinguished are named together."""
    units = make_units(packages(8), {})
    broken = frozenset({("p00",), ("p01",), ("p02",), ("p03",)})
    (guilty,), _ = Mixed(units, [["p05"]], lambda moved: moved == broken).search()
    assert (packages_in(guilty.culprits), guilty.unresolved) == ({"p05"}, ())
    (guilty,), _ = Mixed(units, [["p05"]], partial(are_apart, "p05", "p06")).search()
    assert packages_in(guilty.culprits) == {"p05", "p06"}
    assert guilty.unresolved == (("p05",), ("p06",))


def are_apart(one: str, other: str, units: Moved) -> bool:
    """Say whether only one of two packages is moved."""
    return ((one,) in units) != ((other,) in units)


@pytest.mark.parametrize(("count", "most"), [(8, 16), (17, 21), (30, 24)])
def test_units_that_need_each_other_leave_most_sets_unresolved(count: int, most: int) -> None:
    """Those are not tried one by one."""
    units = make_units(packages(count), {})
    for one in packages(count):
        for other in set(packages(count)) - {one}:
            world = Mixed(units, [{one}], partial(are_apart, one, other))
            (guilty,), _ = world.search()
            assert packages_in(guilty.culprits) == {one, other}
            assert len(world.tried) <= most


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
def test_each_set_is_enough_and_minimal(
    needs: Mapping[str, Collection[str]],
    enough: list[frozenset[str]],
    suspects: Collection[str],
    broken: list[frozenset[str]],
    together: frozenset[str],
) -> None:
    """By trial, whatever needs what, whatever is enough, and whatever is unresolved."""
    units = make_units(NAMES, needs, suspects=suspects)

    def is_unresolved(some: Moved) -> bool:
        moved = packages_in(some)
        return moved in broken or bool(moved & together) != (together <= moved)

    world = Mixed(units, enough, is_unresolved)
    found, held = world.search()
    for guilty in found:
        assert world.result(guilty.units) is SetResult.ENOUGH
        for unit in guilty.culprits:
            left = guilty.units - units.add_dependents([unit])
            assert world.result(left) is not SetResult.ENOUGH
            assert (world.result(left) is SetResult.UNRESOLVED) == (unit in guilty.unresolved)
        assert units.add_needs(guilty.culprits) == guilty.units
    culprits = [unit for guilty in found for unit in guilty.culprits]
    left = frozenset(units.order) - units.add_dependents(culprits)
    assert world.result(left) is held is not SetResult.ENOUGH


@given(needs=NEEDS, suspects=st.frozensets(st.sampled_from(NAMES)))
def test_every_head_of_the_order_is_closed(
    needs: Mapping[str, Collection[str]], suspects: Collection[str]
) -> None:
    """Each unit comes after those it needs, and every package is in one unit."""
    units = make_units(NAMES, needs, suspects=suspects)
    assert sorted(name for unit in units.order for name in unit) == NAMES
    assert tuple(unit for group in units.groups for unit in group) == units.order
    for number in range(len(units.order)):
        head = frozenset(units.order[:number])
        assert units.add_needs(head) == head
        moved = packages_in(head)
        assert all(set(needs.get(name, ())) <= moved for name in moved)


class Pipeline:
    """Passes of which the culprits are enough, and that fail without some that are required.

    Attributes:
        tried: The sets that were tried, in order.
    """

    def __init__(self, culprits: set[str], required: set[str] | None = None) -> None:
        self._culprits, self._required = culprits, required or set()
        self.tried: list[Names] = []

    def __call__(self, disabled: Names) -> SetResult:
        """Return the result of disabling some passes."""
        self.tried.append(disabled)
        if self._required & set(disabled):
            return SetResult.UNRESOLVED
        is_enough = self._culprits <= set(disabled)
        return SetResult.ENOUGH if is_enough else SetResult.NOT_ENOUGH


def culprits_of(names: Collection[str], test: Callable[[Names], SetResult]) -> Names:
    """Return a minimal set of names, where all together need not be enough."""
    tested = SetTest(Units(order=tuple(names)), test)
    found = find_enough(tested)
    return minimize(tested, found.enough, strict=True).culprits if found.enough else ()


def passes(count: int) -> list[str]:
    """Return names of passes in an order that is not the alphabet's."""
    return [f"pass-{count - n}" for n in range(count)]


def test_one_of_500_takes_11_trials() -> None:
    """Wherever it is, the trial of all 500 among them."""
    names = passes(500)
    for culprit in names:
        pipeline = Pipeline({culprit})
        assert culprits_of(names, pipeline) == (culprit,)
        assert len(pipeline.tried) <= 11


def test_two_units_that_are_enough_only_together_are_found() -> None:
    """In order."""
    names = passes(100)
    pipeline = Pipeline({names[80], names[3]})
    assert culprits_of(names, pipeline) == (names[3], names[80])
    assert len(pipeline.tried) <= 20


def test_units_that_make_a_set_unresolved_are_left_out() -> None:
    """The culprit is found past them."""
    names = passes(40)
    required = {names[2], names[20], names[21]}
    tested = SetTest(Units(order=tuple(names)), Pipeline({names[30]}, required))
    found = find_enough(tested)
    assert minimize(tested, found.enough, strict=True).culprits == (names[30],)
    assert set(found.refused) <= required


def test_a_unit_that_is_unresolved_with_others_is_tried_alone() -> None:
    """Two units that exclude each other can each be a culprit."""
    names = passes(10)

    def test(chosen: Names) -> SetResult:
        if chosen == (names[4],):
            return SetResult.ENOUGH
        return SetResult.UNRESOLVED if names[4] in chosen else SetResult.NOT_ENOUGH

    assert culprits_of(names, test) == (names[4],)


def test_units_that_undo_each_other_are_found_in_parts() -> None:
    """All units together may hide the effect of one."""
    names = passes(33)

    def test(chosen: Names) -> SetResult:
        shown = names[5] in chosen and names[25] not in chosen
        return SetResult.ENOUGH if shown else SetResult.NOT_ENOUGH

    assert culprits_of(names, test) == (names[5],)


def test_a_unit_that_matters_only_with_another_is_learned() -> None:
    """It replaces a disabled unit: both are named."""
    names = passes(30)
    pipeline = Pipeline({names[9], "late"})
    tested = SetTest(Units(order=tuple(names)), pipeline)
    found = find_enough(tested, lambda chosen: ["late"] if names[9] in chosen else [])
    assert minimize(tested, found.enough, strict=True).culprits == (names[9], "late")
    assert tested.units.order == (*names, "late")
    assert len(pipeline.tried) <= 16


def test_without_a_sufficient_set_the_answer_is_empty() -> None:
    """Neither all units together nor any unit alone is enough."""
    names = passes(20)
    pipeline = Pipeline({"elsewhere"}, {names[7]})
    found = find_enough(SetTest(Units(order=tuple(names)), pipeline))
    assert (found.enough, found.refused) == ((), (names[7],))
    assert set(found.together) == set(names) - {names[7]}
    assert all((name,) in pipeline.tried for name in names)


def test_without_units_nothing_is_tried() -> None:
    """Nothing is tried."""
    pipeline = Pipeline({"elsewhere"})
    assert culprits_of([], pipeline) == ()
    assert pipeline.tried == []


SMALL = [f"p{n}" for n in range(6)]
SUBSETS = [subset for size in range(7) for subset in combinations(SMALL, size)]
RESULTS = st.lists(st.sampled_from(SetResult), min_size=len(SUBSETS), max_size=len(SUBSETS))


@given(RESULTS)
def test_a_found_set_is_minimal_and_no_set_is_tried_twice(told: list[SetResult]) -> None:
    """For any effect of the units on each other."""
    table = dict(zip(SUBSETS, told, strict=True)) | {(): SetResult.NOT_ENOUGH}
    tried: list[Names] = []

    def test(chosen: Names) -> SetResult:
        tried.append(chosen)
        return table[chosen]

    culprits = culprits_of(SMALL, test)
    assert len(tried) == len(set(tried))
    if culprits:
        assert table[culprits] is SetResult.ENOUGH
        for name in culprits:
            rest = tuple(other for other in culprits if other != name)
            assert table[rest] is not SetResult.ENOUGH
    else:
        assert all(table[(name,)] is not SetResult.ENOUGH for name in SMALL)


@given(st.sets(st.sampled_from(passes(60)), min_size=1, max_size=4))
def test_any_set_of_culprits_is_found_whole(culprits: set[str]) -> None:
    """If no larger set undoes it."""
    assert set(culprits_of(passes(60), Pipeline(culprits))) == culprits


@given(st.lists(st.integers(0, 40), unique=True), st.sets(st.integers(0, 40)), st.booleans())
def test_a_sweep_keeps_exactly_the_necessary_units(
    items: list[int], wanted: set[int], together: bool
) -> None:
    """Nothing else is left, whether parts or single items are tried."""
    wanted &= set(items)

    def take(parts: Sequence[Sequence[int]]) -> bool:
        for part in parts:
            if not wanted & set(part):
                items[:] = [item for item in items if item not in part]
                return True
        return False

    sweep(lambda: tuple(items), take, together=together)
    assert set(items) == wanted
