"""What is asked of a search for the package of a change, and what of it is told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import InfrastructureError
from conformance.triage.blame.blamed import Blamed
from conformance.triage.blame.mixture import Moved
from conformance.triage.blame.moves import moves_of
from conformance.triage.blame.search import Found, Guilty, Shows
from conformance.triage.questions.predicate import ByConformance
from conformance.triage.questions.question import Seen
from conformance.triage.upgrade.blaming import Asked, asked_of, culprits_of
from tests.report.upgrades import OK, OTHER, RAISED, compared
from tests.triage.blame.environments import end

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.model.case import Case
    from conformance.triage.upgrade.compared import Compared

UNLIKE: dict[str, Any] = {"error": ("KeyError", "axis")}
SMALL: dict[str, Any] = {**OK, "facts": {"flops": 10_000.0}}
LARGE: dict[str, Any] = {**OK, "facts": {"flops": 20_000.0}}
PINS = {"jax": "0.6.0", "numpy": "2.2.0"}


def changed(folder: Path, before: dict[str, Any], after: dict[str, Any]) -> Compared:
    """Return a case that changed in 0.6.1."""
    return compared(folder, "f/a", before, before, after, after)


def blamed(*culprits: str, silent: bool = False, flaky: bool = False) -> Blamed:
    """Return what a search may find."""
    moves = moves_of(tuple(PINS), {})
    units = tuple((name,) for name in culprits)
    guilty = Guilty(culprits=units, beside=(), silent=units if silent else ())
    ends = (end(PINS), end(PINS))
    return Blamed(
        ends=ends, packages={name: Moved(name, "1", "2") for name in PINS}, moves=moves,
        reasons={name: {} for name in PINS}, question=Seen(ByConformance()),
        found=Found(guilty=(guilty,), held=Shows.BEFORE), steps=(), reverse=False,
        flaky={frozenset(units): Counter([Shows.BEFORE, Shows.AFTER])} if flaky else {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        (OK, RAISED, Asked()),
        (RAISED, OTHER, Asked()),
        (RAISED, UNLIKE, Asked(when="ending")),
        (SMALL, LARGE, Asked(fact="flops")),
    ],
)
def test_the_question(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], asked: Asked
) -> None:
    """Whatever tells both sides apart; but two failures, or a figure, must be named."""
    (step,) = changed(tmp_path, before, after).steps
    assert asked_of(step) == asked


def test_an_answer(tmp_path: Path) -> None:
    """Of a search between both sides of the change."""
    one = changed(tmp_path, OK, RAISED)

    def search(case: Case, cells: tuple[Cell, Cell], **more: str) -> Blamed:
        assert (case.id, [cell.release for cell in cells]) == ("f/a", ["0.6.0", "0.6.1"])
        assert more == {"when": "", "fact": ""}
        return blamed("numpy")

    found = culprits_of(one, one.steps[0], search)
    assert (found.case, found.guilty, found.untold) == ("f/a", ((Moved("numpy", "1", "2"),),), "")


def test_what_keeps_a_search_from_an_answer(tmp_path: Path) -> None:
    """It is told; nothing else is lost by it."""
    one = changed(tmp_path, OK, RAISED)

    def fails(*_: object, **__: object) -> Blamed:
        raise InfrastructureError("the index does not answer")

    found = culprits_of(one, one.steps[0], fails)
    assert (found.guilty, found.untold) == ((), "the index does not answer")
    found = culprits_of(one, one.steps[0], lambda *_, **__: blamed("numpy", flaky=True))
    assert found.guilty == ()
    assert found.untold.startswith("flaky: with 1 of 2 moved: numpy, it does not show the same")
    found = culprits_of(one, one.steps[0], lambda *_, **__: blamed("jax", "numpy", silent=True))
    assert len(found.guilty[0]) == 2
    assert found.untold.startswith("not told apart: without jax, numpy nothing is shown")
