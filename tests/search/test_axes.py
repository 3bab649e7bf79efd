"""Axes between two ends."""

from __future__ import annotations

import pytest

from conformance.cells.cell import Cell
from conformance.errors import UsageError
from conformance.search.axes import option_points, package_points, versions_between

CELL = Cell(release="0.6.2", python="3.11", devices=1)
VERSIONS = ("1.26.4", "2.0.0", "2.0.1", "2.1.0", "2.10.0", "2.2.0")


def test_versions_of_a_package() -> None:
    """Each pinned in a cell of its own, instead of what was pinned before."""
    pinned = Cell(release="0.6.2", python="3.11", pins=("numpy==1.26.0", "scipy==1.14.1"))
    points = package_points(pinned, "numpy", ["1.26.4", "2.0.0"])
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
def test_values_of_an_option(axis: str, last: str) -> None:
    """Of jax or of XLA, in the order in which they were named."""
    points = option_points(CELL, axis, ["false", "true"])
    assert [point.label for point in points] == ["false", "true"]
    assert points[-1].cell.id == last


def test_versions_between_two_ends() -> None:
    """By version, not by letters; both ends are among them, in whatever spelling."""
    assert versions_between("numpy", VERSIONS, ("2.0", "2.2.0")) == [
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
def test_an_end_that_is_not_there(ends: tuple[str, str], said: str) -> None:
    """What is near is named."""
    with pytest.raises(UsageError) as error:
        versions_between("numpy", VERSIONS, ends)
    assert str(error.value).startswith(said)
