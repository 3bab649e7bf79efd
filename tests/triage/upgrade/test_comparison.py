"""The predicate and the answer of a search for the package behind a change."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import InfrastructureError
from conformance.search.axes import PackageMove
from conformance.search.ddmin import MinimalSet, SetResult
from conformance.search.endpoints import PredicateOptions
from conformance.search.point_predicates import RepeatedPredicate
from conformance.search.predicates import BAD, GOOD, ConformancePredicate
from conformance.triage.blame.blame import BlameAnswer
from conformance.triage.blame.mixtures import Mixtures
from conformance.triage.upgrade.comparison import (
    choose_predicate_options,
    search_culprits,
)
from tests.report.upgrades import OK, OTHER, RAISED, compared
from tests.triage.blame.environments import end

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.model.case import Case
    from conformance.triage.upgrade.comparison import ComparedCase

UNLIKE: dict[str, Any] = {"error": ("KeyError", "axis")}
SMALL: dict[str, Any] = {**OK, "facts": {"flops": 10_000.0}}
LARGE: dict[str, Any] = {**OK, "facts": {"flops": 20_000.0}}
PINS = {"jax": "0.6.0", "numpy": "1"}
NEW_PINS = {"jax": "0.6.1", "numpy": "2"}


def changed(folder: Path, before: dict[str, Any], after: dict[str, Any]) -> ComparedCase:
    """Return a case that changed in 0.6.1."""
    return compared(folder, "f/a", before, before, after, after)


def blamed(*culprits: str, unresolved: bool = False, flaky: bool = False) -> BlameAnswer:
    """Return an answer of a blame."""
    units = tuple((name,) for name in culprits)
    mixtures = Mixtures(ends=(end(PINS), end(NEW_PINS)), locks={}, provide=lambda cell, _: cell)
    return BlameAnswer(
        mixtures=mixtures, predicate=RepeatedPredicate(ConformancePredicate()), steps=(),
        reverse=False,
        guilty=(MinimalSet(culprits=units, unresolved=units if unresolved else ()),),
        without_culprits=SetResult.NOT_ENOUGH,
        flaky={frozenset(units): Counter([GOOD, BAD])} if flaky else {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        (OK, RAISED, PredicateOptions()),
        (RAISED, OTHER, PredicateOptions()),
        (RAISED, UNLIKE, PredicateOptions(when="ending")),
        (SMALL, LARGE, PredicateOptions(fact="flops")),
    ],
)
def test_the_predicate_follows_from_the_effect(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], asked: PredicateOptions
) -> None:
    """Whatever tells both sides apart; but two failures, or a figure, must be named."""
    (step,) = changed(tmp_path, before, after).steps
    assert choose_predicate_options(step) == asked


def test_culprits_are_searched_between_both_sides(tmp_path: Path) -> None:
    """Of a search between both sides of the change."""
    one = changed(tmp_path, OK, RAISED)

    def search(case: Case, cells: tuple[Cell, Cell], predicate: PredicateOptions) -> BlameAnswer:
        assert (case.id, [cell.release for cell in cells]) == ("f/a", ["0.6.0", "0.6.1"])
        assert predicate == PredicateOptions()
        return blamed("numpy")

    found = search_culprits(one, one.steps[0], search)
    numpy = PackageMove("numpy", "1", "2")
    assert (found.case, found.guilty, found.doubts) == ("f/a", ((numpy,),), "")


def test_an_error_of_the_search_is_a_doubt(tmp_path: Path) -> None:
    """The rest of the upgrade is unaffected."""
    one = changed(tmp_path, OK, RAISED)

    def fails(*_: object, **__: object) -> BlameAnswer:
        raise InfrastructureError("the index does not answer")

    found = search_culprits(one, one.steps[0], fails)
    assert (found.guilty, found.doubts) == ((), "the index does not answer")
    found = search_culprits(one, one.steps[0], lambda *_, **__: blamed("numpy", flaky=True))
    assert found.guilty == ()
    assert found.doubts.startswith("flaky: with 1 of 2 moved: numpy, it does not show the same")
    found = search_culprits(
        one, one.steps[0], lambda *_, **__: blamed("jax", "numpy", unresolved=True)
    )
    assert len(found.guilty[0]) == 2
    assert found.doubts.startswith("not separated: without jax, numpy nothing is shown")
