"""Points of a search, looked up when it is their turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cells.cell import Cell
from conformance.engine.job import PlannedCell
from conformance.engine.preparation import Preparation
from conformance.errors import InfrastructureError, UsageError
from conformance.model.run import Exclusion
from conformance.search.axes import AxisPoint
from conformance.search.points import Points

if TYPE_CHECKING:
    from collections.abc import Iterable

NIGHTS = tuple(f"0.8.3.dev2025112{day}" for day in range(5))
RELEASES = ("0.8.0", "0.8.1", "0.8.2")


class World:
    """Looks cells up: what is unavailable is excluded, what fails cannot be had now."""

    def __init__(self, *, unavailable: str = "", failing: str = "", silent: bool = False) -> None:
        self.unavailable = unavailable
        self.failing = failing
        self.silent = silent
        self.asked: list[str] = []

    def prepare(self, cells: Iterable[Cell]) -> Preparation:
        """Look cells up."""
        planned, left_out = [], []
        for cell in cells:
            self.asked.append(cell.release)
            if cell.release == self.unavailable:
                left_out.append(Exclusion(case="", cell=cell.id, reason="no wheels"))
                continue
            failure = "not found" if cell.release == self.failing else ""
            planned.append(
                PlannedCell(
                    cell=cell, versions={"jax": cell.release}, lock_hash="1", cell_hash="1",
                    failure=failure,
                )
            )  # fmt: skip
        return Preparation(cells=tuple(planned), exclusions=tuple(left_out), locks={})

    def check(self) -> None:
        """Ask the index."""
        if self.silent:
            raise InfrastructureError("package index: refused")

    def points(self, *releases: str) -> Points:
        """Return points of some releases."""
        cells = [Cell(release=release, python="3.11") for release in releases]
        made = [AxisPoint(label=cell.release, cell=cell) for cell in cells]
        return Points(made, self.prepare, self.check)


def test_nights_between_the_ends_are_looked_up_when_asked_for() -> None:
    """Once each; ends and releases at once."""
    world = World()
    points = world.points(*RELEASES, *NIGHTS)
    assert world.asked == [*RELEASES, NIGHTS[-1]]
    assert points.labels == (*RELEASES, *NIGHTS)
    assert [points[5].release for _ in range(3)] == [NIGHTS[2]] * 3
    assert world.asked == [*RELEASES, NIGHTS[-1], NIGHTS[2]]
    assert [points[number].release for number in (4, 5)] == list(NIGHTS[1:3])


def test_a_release_that_cannot_be_had_is_no_point() -> None:
    """It is listed."""
    points = World(unavailable="0.8.1").points(*RELEASES)
    assert points.labels == ("0.8.0", "0.8.2")
    assert [entry.cell for entry in points.exclusions] == ["jax0.8.1-py311-cpu8"]


@pytest.mark.parametrize("how", ["unavailable", "failing"])
def test_a_night_that_cannot_be_had_says_why(how: str) -> None:
    """As a point that cannot be tried, where the index answers for the others."""
    points = World(**{how: NIGHTS[2]}).points(*NIGHTS)  # type: ignore[arg-type]
    assert len(points) == len(NIGHTS)
    assert points[2].missing or points[2].failure
    assert [entry.cell for entry in points.exclusions] == [points[2].cell.id]
    assert not points[3].missing


def test_an_index_that_stops_answering_ends_the_search() -> None:
    """Which can go on another time."""
    points = World(failing=NIGHTS[2], silent=True).points(*NIGHTS)
    with pytest.raises(InfrastructureError, match="refused; the same command goes on where it was"):
        points[2]


@pytest.mark.parametrize("end", [NIGHTS[0], NIGHTS[-1]])
def test_an_end_that_cannot_be_had(end: str) -> None:
    """By nature, or now."""
    with pytest.raises(UsageError, match=f"^{end}: cannot be an end: no wheels"):
        World(unavailable=end).points(*NIGHTS)
    with pytest.raises(InfrastructureError, match=f"^{end}: not found; the same command goes on"):
        World(failing=end).points(*NIGHTS)
