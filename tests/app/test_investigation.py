"""Investigation of a root cause: an obstacle to one step leaves the other steps intact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from conformance.app.investigation import Investigation
from conformance.cells.cell import Cell
from conformance.engine.job import PlannedCell
from conformance.errors import InfrastructureError, UsageError
from conformance.model.case import Case
from conformance.model.outcome import Outcome, Verdict
from conformance.model.run_files import Culprit
from conformance.search.axes import PackageMove
from conformance.triage.commits.commit_search import CommitVerdict
from conformance.triage.commits.render import PackageCulprit
from conformance.triage.layers.answer import Layer, LayerAnswer
from conformance.triage.layers.render import describe_layer
from tests.engine.records import record

if TYPE_CHECKING:
    from conformance.triage.commits.commit_search import CommitFinding

CASE = Case(id="f/a", family="f", topic="t", name="a", kind="program", file=Path("t.py"), line=1)
CELL = Cell(release="0.6.2", python="3.11")
RIGHT = record("f/a", "x", Verdict.MATCH)
WRONG = record("f/a", "x", Verdict.REGRESSED, "out differs")


def planned(**versions: str) -> PlannedCell:
    """Return a cell with some packages."""
    return PlannedCell(cell=CELL, versions=versions, lock_hash="", cell_hash="")


class FakeServices:
    """Services in which a case became wrong between two points."""

    layers = False
    is_full = False
    culprit: Any = None
    jax_location = ""

    def __init__(self, *versions: dict[str, str], right: str = "0.5.0") -> None:
        self.points = [planned(**one) for one in versions]
        self.right = right

    def find_good_releases(self, *_: Any) -> list[str]:
        """Return candidate good releases."""
        return ["0.6.1", "0.6.0", "0.5.0"]

    def try_release(self, case: Case, cell: Cell, release: str) -> Any:
        """Return a record: right at the good release, else wrong."""
        del case, cell
        return RIGHT if release == self.right else WRONG

    def bisect(self, *_: Any) -> Any:
        """Return the first of both points as the last good one."""
        answer = SimpleNamespace(
            labels=["0.5.0", "0.6.0"], points=self.points, last_good=0, first_bad=1,
            is_confirmed=True, flaky={}, predicate=SimpleNamespace(about="deviates"),
        )  # fmt: skip
        return SimpleNamespace(answer=answer)

    def find_layer(self, *_: Any) -> str:
        """Return the compiler, or raise an error of the disk."""
        if self.is_full:
            raise InfrastructureError("disk full")
        return describe_layer(LayerAnswer(layer=Layer.COMPILER, reason="it is bad there"))

    def find_commit(self, *_: Any) -> Any:
        """Return jaxlib, or raise an error of the network."""
        if self.culprit is None:
            raise InfrastructureError("no clone")
        return self.culprit

    def blame(self, *_: Any) -> Any:
        """Raise an error of the network."""
        raise InfrastructureError("no network")

    def reproduce(self, cause: str, *_: Any) -> tuple[str, str]:
        """Return the path and the command of a reproduction."""
        return f"repro/{cause}.py", f"uv run repro/{cause}.py"


def investigate(world: Any, *, blame: bool = True) -> Any:
    """Return the evidence of an investigation."""
    return Investigation(world, "c", WRONG, CASE, CELL, blame).collect()


def test_layer_is_kept_where_the_commit_cannot_be_had() -> None:
    """Each part of the evidence is separate."""
    world = FakeServices({"jax": "1"}, {"jax": "1.1"})
    world.layers, world.jax_location = True, "https://example.org/jax"
    one = investigate(world)
    assert one.layer == "compiler (it is bad there)"
    assert one.commits == ()
    assert "no commit: no clone" in one.unresolved
    assert one.unfinished


def test_layer_is_found_where_no_commit_of_jax_explains_the_change() -> None:
    """Then the compiler may be at fault, and one of its passes."""
    world = FakeServices({"jax": "1"}, {"jax": "1.1"})
    world.jax_location = "https://example.org/jax"
    finding = SimpleNamespace(
        remarks=(), candidates=(), verdict=CommitVerdict.ENVIRONMENT, is_confirmed=True,
        cells=SimpleNamespace(bases=[SimpleNamespace(label=name) for name in ("0.5.0", "0.6.0")]),
    )  # fmt: skip
    moves = (PackageMove("jaxlib", "1", "1.1"),)
    world.culprit = PackageCulprit("jax", cast("CommitFinding", finding), "", moves=moves)
    one = investigate(world)
    assert one.layer == "compiler (it is bad there)"
    assert one.commits == ()
    assert "culprit: jaxlib 1 -> 1.1" in one.remarks


def test_first_bad_release_is_kept_where_the_layer_cannot_be_had() -> None:
    """The search for it has ended."""
    world = FakeServices({"jax": "1"}, {"jax": "1.1"})
    world.layers = world.is_full = True
    one = investigate(world)
    assert (one.first_bad, one.layer) == ("0.6.0", "")
    assert "no layer: disk full" in one.unresolved


def test_only_package_that_differs_is_the_culprit() -> None:
    """No search is needed."""
    one = investigate(FakeServices({"jax": "1", "numpy": "2"}, {"jax": "1.1", "numpy": "2"}))
    assert (one.good, one.last_good, one.first_bad) == ("0.5.0", "0.5.0", "0.6.0")
    assert one.culprits == (Culprit(package="jax", before="1", after="1.1"),)
    assert (one.repro, one.unresolved, one.unfinished) == ("repro/c.py", (), False)


def test_infrastructure_error_in_blame_leaves_the_investigation_unfinished() -> None:
    """The first bad release is still reported."""
    one = investigate(FakeServices({"jax": "1", "numpy": "2"}, {"jax": "1.1", "numpy": "2.1"}))
    assert (one.last_good, one.culprits) == ("0.5.0", ())
    assert (one.unresolved, one.unfinished) == (("no culprit: no network",), True)


def test_without_blame_several_packages_are_not_separated() -> None:
    """A note reports it."""
    one = investigate(
        FakeServices({"jax": "1", "numpy": "2"}, {"jax": "1.1", "numpy": "2.1"}), blame=False
    )
    assert one.unresolved == ("2 packages differ, and were not separated",)
    assert not one.unfinished


def test_without_a_good_release_nothing_is_searched() -> None:
    """A note lists the releases that were tried."""
    one = investigate(FakeServices(right="none"))
    assert (one.good, one.first_bad, one.repro) == ("", "", "repro/c.py")
    tried = ", ".join(f"{release} (out differs)" for release in ("0.6.1", "0.6.0", "0.5.0"))
    assert one.unresolved == (f"nothing is known where it is right; tried {tried}",)


@pytest.mark.parametrize(
    ("error", "unfinished"), [(UsageError("no"), False), (InfrastructureError("no"), True)]
)
def test_failed_reproduction_does_not_end_the_investigation(
    error: Exception, unfinished: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result of the search is reported."""

    def refused(*_: Any) -> tuple[str, str]:
        raise error

    world = FakeServices({"jax": "1"}, {"jax": "2"})
    monkeypatch.setattr(world, "reproduce", refused)
    one = investigate(world)
    assert (one.unresolved, one.unfinished) == (("no reproduction: no",), unfinished)
    assert one.first_bad == "0.6.0"


def test_release_that_cannot_be_installed_leaves_the_investigation_unfinished() -> None:
    """The next candidate is tried."""

    class Lost(FakeServices):
        def try_release(self, case: Case, cell: Cell, release: str) -> Any:
            if release == "0.6.1":
                return replace(WRONG, outcome=Outcome.INFRA, verdict=Verdict.INFRA)
            return super().try_release(case, cell, release)

    one = investigate(Lost({"jax": "1"}, {"jax": "2"}))
    assert (one.good, one.unfinished) == ("0.5.0", False)
    assert investigate(Lost({"jax": "1"}, {"jax": "2"}, right="none")).unfinished
