"""Matrix files: their cells, exclusions and errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from conformance.cells.matrix import list_matrices, load_matrix
from conformance.errors import UsageError

from .builders import MATRICES

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cells.matrix import Matrix
    from conformance.cells.releases import Releases


def load(text: str, folder: Path, releases: Releases) -> Matrix:
    """Write a matrix file and load it by its name."""
    (folder / "mine.toml").write_text(text)
    return load_matrix("mine", [folder], releases)


def test_cells_are_the_product_of_the_axes(tmp_path: Path, releases: Releases) -> None:
    """Each combination once, oldest release first, in any order of the selectors."""
    matrix = load(
        '[matrix]\naxes = {jax = ["0.8.3", "<=0.6.0", "0.8.3"], devices = [4, 8]}',
        tmp_path,
        releases,
    )
    assert [cell.id for cell in matrix.cells] == [
        f"jax{version}-py311-cpu{devices}"
        for version in ("0.5.3", "0.6.0", "0.8.3")
        for devices in (4, 8)
    ]


def test_every_axis_sets_a_field_of_the_cell(tmp_path: Path, releases: Releases) -> None:
    """A single value needs no list; config values become text."""
    matrix = load(
        """
[matrix.axes]
jax = "0.6.0"
python = "3.12"
deps = "latest"
pins = ["numpy==2.0.2"]
x64 = true
config = { jax_enable_checks = true, jax_default_matmul_precision = "highest" }
xla_flags = ["--xla_a=1", "--xla_b=2"]
""",
        tmp_path,
        releases,
    )
    (cell,) = matrix.cells
    assert cell.id == (
        "jax0.6.0-py312-cpu8-latest-numpy2.0.2-x64-cfg.jax_default_matmul_precision=highest"
        "-cfg.jax_enable_checks=true-xla.xla_a=1-xla.xla_b=2"
    )


def test_excluded_cells_keep_their_reason(tmp_path: Path, releases: Releases) -> None:
    """A cell is excluded if every axis of a rule matches; `include` adds it again."""
    matrix = load(
        """
[matrix]
axes = {jax = [">=0.5"], x64 = [false, true]}
exclude = [{jax = "<0.8", x64 = true, reason = "too slow"}, {jax = ">=0.11", reason = "later"}]
include = [{jax = "0.6.0", x64 = true, devices = 2}]
""",
        tmp_path,
        releases,
    )
    assert {(entry.cell, entry.reason) for entry in matrix.exclusions} == {
        ("jax0.5.3-py311-cpu8-x64", "too slow"),
        ("jax0.6.0-py311-cpu8-x64", "too slow"),
        ("jax0.6.2-py311-cpu8-x64", "too slow"),
        ("jax0.11.0-py312-cpu8", "later"),
        ("jax0.11.0-py312-cpu8-x64", "later"),
    }
    assert matrix.cells[-1].id == "jax0.6.0-py311-cpu2-x64"


def test_python_without_wheels_is_an_exclusion(tmp_path: Path, releases: Releases) -> None:
    """Cells that cannot be installed are reported, not dropped."""
    matrix = load(
        '[matrix]\naxes = {jax = ["0.8.3", "0.11.0"], python = ["3.11", "3.13"]}',
        tmp_path,
        releases,
    )
    assert [cell.id for cell in matrix.cells] == ["jax0.8.3-py311-cpu8", "jax0.11.0-py313-cpu8"]
    assert [(entry.cell, entry.reason) for entry in matrix.exclusions] == [
        ("jax0.8.3-py313-cpu8", "jax 0.8.3 has no wheels for python 3.13, only for 3.11, 3.12"),
        ("jax0.11.0-py311-cpu8", "jax 0.11.0 has no wheels for python 3.11, only for 3.12, 3.13"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "matrix: got nothing, expected a table [matrix]"),
        ("[matrix", "not TOML"),
        ("[matrx]", "matrx: unknown key (did you mean 'matrix'?)"),
        ("[matrix]", "matrix.axes: got nothing, expected a table of axes"),
        ("[matrix]\naxes = {}", "matrix.axes: no jax in it"),
        ("[matrix]\naxes = {jax = []}", "matrix.axes.jax: got an empty list"),
        ("[matrix]\naxes = {jax = [8]}", "matrix.axes.jax: got [8], expected selectors"),
        ("[matrix]\naxes = {jacks = ['0.6.0']}", "matrix.axes.jacks: unknown key (did you mean"),
        (
            "[matrix]\naxes = {jax = '0.6.0', devices = ['8']}",
            "matrix.axes.devices: got ['8'], expected device counts",
        ),
        (
            "[matrix]\naxes = {jax = '0.6.0', x64 = 1}",
            "matrix.axes.x64: got [1], expected booleans",
        ),
        (
            "[matrix]\naxes = {jax = '0.6.0', platform = ['tpu:v5e']}",
            "platform 'tpu:v5e': expected one of",
        ),
        ("[matrix]\naxes = {jax = '0.6.9'}", "unknown jax release '0.6.9'"),
        (
            "[matrix]\naxes = {jax = '0.6.0'}\nexclude = [{jax = '0.6.0'}]",
            "matrix.exclude[0].reason: got nothing, expected why",
        ),
        (
            "[matrix]\naxes = {jax = '0.6.0'}\ninclude = [{device = 3}]",
            "matrix.include[0].device: unknown key (did you mean 'devices'",
        ),
    ],
)
def test_invalid_matrix_file_names_file_and_key(
    text: str, message: str, tmp_path: Path, releases: Releases
) -> None:
    """With the found and the expected value."""
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        load(text, tmp_path, releases)
    assert str(tmp_path / "mine.toml") in str(caught.value)


def test_unknown_matrix_lists_the_known_ones(releases: Releases) -> None:
    """With a suggestion for a misspelled name."""
    with pytest.raises(UsageError, match=r"'smoky' \(did you mean 'smoke'\?\); .*releases, smoke"):
        load_matrix("smoky", [MATRICES], releases)


def test_matrix_file_is_found_by_its_path(tmp_path: Path, releases: Releases) -> None:
    """A missing file is reported as such."""
    (tmp_path / "own.toml").write_text('[matrix]\naxes = {jax = "0.6.0"}')
    assert load_matrix(str(tmp_path / "own.toml"), [], releases).name == "own"
    with pytest.raises(UsageError, match="no such file"):
        load_matrix(str(tmp_path / "other.toml"), [], releases)


def test_the_committed_matrices_load(real_releases: Releases) -> None:
    """Every named matrix expands against the committed table."""
    for name in list_matrices([MATRICES]):
        assert load_matrix(name, [MATRICES], real_releases).cells
    whole = load_matrix("releases", [MATRICES], real_releases)
    assert [cell.release for cell in whole.cells] == list(real_releases.versions)


def test_named_matrices_cover_every_axis(real_releases: Releases) -> None:
    """And no two cells have the same id."""
    found = {
        name: load_matrix(name, [MATRICES], real_releases) for name in list_matrices([MATRICES])
    }
    assert {cell.python for cell in found["python"].cells} == {f"3.{n}" for n in range(10, 15)}
    assert {cell.deps for cell in found["deps"].cells} == {"era", "latest"}
    pinned = {pin.partition("==")[0] for cell in found["deps"].cells for pin in cell.pins}
    assert pinned == {"numpy", "scipy", "ml-dtypes", "flax", "jaxlib"}
    assert all(
        any(getattr(c, f) for c in found["deps"].cells) for f in ("x64", "config", "xla_flags")
    )
    kinds = {cell.place.kind for cell in found["platforms"].cells}
    assert kinds == {"cpu", "tpu", "cuda"}
    for matrix in found.values():
        assert len({cell.id for cell in matrix.cells}) == len(matrix.cells)
