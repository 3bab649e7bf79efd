"""The axes of a search, their cells, and packages that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cells.cell import Cell
from conformance.engine.job import PlannedCell
from conformance.engine.workers.preparation import Preparation
from conformance.errors import InfrastructureError, UsageError
from conformance.model.run import Exclusion
from conformance.search.axes import (
    AxisCells,
    AxisPoint,
    make_option_points,
    make_package_points,
    select_versions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

CELL = Cell(release="0.6.2", python="3.11", devices=1)
VERSIONS = ("1.26.4", "2.0.0", "2.0.1", "2.1.0", "2.10.0", "2.2.0")
NIGHTS = tuple(f"0.8.3.dev2025112{day}" for day in range(5))
RELEASES = ("0.8.0", "0.8.1", "0.8.2")


def test_each_version_of_a_package_has_a_cell() -> None:
    """Its pin replaces an earlier pin of the package."""
    pinned = Cell(release="0.6.2", python="3.11", pins=("numpy==1.26.0", "scipy==1.14.1"))
    points = make_package_points(pinned, "numpy", ["1.26.4", "2.0.0"])
    assert [point.label for point in points] == ["1.26.4", "2.0.0"]
    assert [point.cell.pins for point in points] == [
        ("numpy==1.26.4", "scipy==1.14.1"),
        ("numpy==2.0.0", "scipy==1.14.1"),
    ]


@pytest.mark.parametrize(
    ("axis", "last"),
    [
        ("config:jax_enable_x64", "jax0.6.2-py311-cpu1-cfg.jax_enable_x64=true"),
        ("xla:xla_cpu_enable_fast_math", "jax0.6.2-py311-cpu1-xla.xla_cpu_enable_fast_math=true"),
        ("xla:--xla_cpu_enable_fast_math", "jax0.6.2-py311-cpu1-xla.xla_cpu_enable_fast_math=true"),
    ],
)
def test_each_value_of_an_option_has_a_cell(axis: str, last: str) -> None:
    """Of jax or of XLA, in the given order."""
    points = make_option_points(CELL, axis, ["false", "true"])
    assert [point.label for point in points] == ["false", "true"]
    assert points[-1].cell.id == last


def test_versions_between_two_ends_are_selected() -> None:
    """Sorted as versions, both ends included, in any spelling."""
    assert select_versions("numpy", VERSIONS, ("2.0", "2.2.0")) == [
        "2.0.0",
        "2.0.1",
        "2.1.0",
        "2.2.0",
    ]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (
            ("2.0.0", "2.0.7"),
            "numpy 2.0.7: no such version with wheels, expected e.g. 2.0.1",
        ),
        (("two", "2.0.0"), "numpy: invalid version: 'two'"),
    ],
)
def test_an_unknown_end_is_an_error(ends: tuple[str, str], said: str) -> None:
    """The message suggests near versions."""
    with pytest.raises(UsageError) as error:
        select_versions("numpy", VERSIONS, ends)
    assert str(error.value).startswith(said)


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

    def points(self, *releases: str) -> AxisCells:
        """Return points of some releases."""
        cells = [Cell(release=release, python="3.11") for release in releases]
        made = [AxisPoint(label=cell.release, cell=cell) for cell in cells]
        return AxisCells(made, self.prepare, self.check)


def test_nightlies_are_resolved_when_first_tried() -> None:
    """Once each; ends and releases are resolved at once."""
    world = World()
    points = world.points(*RELEASES, *NIGHTS)
    assert world.asked == [*RELEASES, NIGHTS[-1]]
    assert points.labels == (*RELEASES, *NIGHTS)
    assert [points[5].release for _ in range(3)] == [NIGHTS[2]] * 3
    assert world.asked == [*RELEASES, NIGHTS[-1], NIGHTS[2]]
    assert [points[number].release for number in (4, 5)] == list(NIGHTS[1:3])


def test_a_release_that_cannot_be_installed_is_no_point() -> None:
    """It is listed among the exclusions."""
    points = World(unavailable="0.8.1").points(*RELEASES)
    assert points.labels == ("0.8.0", "0.8.2")
    assert [entry.cell for entry in points.exclusions] == ["jax0.8.1-py311-cpu8"]


@pytest.mark.parametrize("how", ["unavailable", "failing"])
def test_a_nightly_that_cannot_be_installed_has_a_reason(how: str) -> None:
    """If the index answers for other nightlies."""
    points = World(**{how: NIGHTS[2]}).points(*NIGHTS)  # type: ignore[arg-type]
    assert len(points) == len(NIGHTS)
    assert points[2].missing or points[2].failure
    assert [entry.cell for entry in points.exclusions] == [points[2].cell.id]
    assert not points[3].missing


def test_an_index_that_stops_answering_ends_the_search() -> None:
    """The search can be continued later."""
    points = World(failing=NIGHTS[2], silent=True).points(*NIGHTS)
    with pytest.raises(InfrastructureError, match="refused; the same command goes on where it was"):
        points[2]


@pytest.mark.parametrize("end", [NIGHTS[0], NIGHTS[-1]])
def test_an_end_that_cannot_be_installed_is_an_error(end: str) -> None:
    """Permanently or at the moment."""
    with pytest.raises(UsageError, match=f"^{end}: cannot be an end: no wheels"):
        World(unavailable=end).points(*NIGHTS)
    with pytest.raises(InfrastructureError, match=f"^{end}: not found; the same command goes on"):
        World(failing=end).points(*NIGHTS)
