"""Which night a version is of, and which nightly a selector names."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from conformance.cells.cell import Cell, is_cell_id, parse_cell
from conformance.cells.lock_resolution import find_lock
from conformance.cells.matrix import load_matrix
from conformance.cells.nightly import NotInstallableError, find_nights, parse_night, resolve_nightly
from conformance.cells.selectors import (
    matches_cell,
    matches_selector,
    resolve_selector,
    select_cells,
)
from conformance.errors import InfrastructureError, UsageError

from .builders import release, table

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cells.releases import Release, Releases

NIGHTS = ("0.8.2.dev20251101", "0.8.3.dev20251118", "0.8.3.dev20251119", "0.8.3.dev20251121")


class Index:
    """Nightlies of four days, of which one cannot be installed."""

    url = "https://nightly.example/index/"
    versions: tuple[str, ...] = NIGHTS
    broken = NIGHTS[2]

    def get(self, version: str) -> Release:
        """Return a night."""
        if version == self.broken:
            raise NotInstallableError(f"jax {version}: cannot be installed")
        if version not in self.versions:
            raise UsageError(f"jax {version}: no such nightly")
        return release(version, ("3.11", "3.12"))

    def find_newest(self, package: str, night: date) -> str | None:
        """Return nothing."""
        raise NotImplementedError


@pytest.fixture
def known() -> Releases:
    """Releases, and nightlies beside them."""
    return replace(table("0.6.0", "0.8.1", "0.8.2"), find_nightlies=Index)


@given(day=st.dates(date(1000, 1, 1)), local=st.sampled_from(["", "+g123"]))
def test_a_nightly_says_its_day(day: date, local: str) -> None:
    """In its version, whatever stands around it."""
    assert parse_night(Version(f"0.8.3.dev{day:%Y%m%d}{local}")) == day


@pytest.mark.parametrize("version", ["0.8.3", "0.8.3.dev1", "0.8.3.dev20251341", "0.8.3rc1"])
def test_what_is_no_nightly_has_no_day(version: str) -> None:
    """Though it may be a development version."""
    assert parse_night(Version(version)) is None


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("nightly", "0.8.3.dev20251121"),
        ("nightly-1", "0.8.3.dev20251118"),
        ("nightly-2", "0.8.2.dev20251101"),
        ("nightly:2025-11-18", "0.8.3.dev20251118"),
        ("0.8.3.dev20251118", "0.8.3.dev20251118"),
    ],
)
def test_a_selector_names_a_night(selector: str, expected: str, known: Releases) -> None:
    """Counting back from the newest, nights that cannot be installed do not count."""
    assert resolve_selector(selector, known) == (expected,)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("nightly-3", "only 3 nightlies can be installed, of the 4 that the index has"),
        (
            "nightly:2025-11-20",
            r"date; expected e.g. nightly:2025-11-18, nightly:2025-11-19, nightly:2025-11-21",
        ),
        ("nightly:yesterday", "expected a date, e.g. nightly:2025-11-20"),
        ("nightly:", "expected a date"),
        ("0.8.3.dev20251120", "no such nightly"),
    ],
)
def test_a_selector_that_names_no_night(selector: str, message: str, known: Releases) -> None:
    """Says what there is."""
    with pytest.raises(UsageError, match=message):
        resolve_selector(selector, known)


def test_nights_of_a_range(known: Releases) -> None:
    """Those that can be installed, and why the others cannot."""
    found, refused = find_nights(Version("0.8.2"), Version("0.8.3.dev20251121"), known.nightlies)
    assert found == ["0.8.3.dev20251118", "0.8.3.dev20251121"]
    assert refused == {Index.broken: f"jax {Index.broken}: cannot be installed"}


def test_a_specifier_is_of_releases_yet_matches_a_night(known: Releases) -> None:
    """So that it narrows a matrix with a nightly in it, as the release to come."""
    assert resolve_selector(">=0.8.2", known) == ("0.8.2",)
    assert matches_selector(">=0.8.3", "0.8.3.dev20251118", known)
    assert not matches_selector("<0.8.3", "0.8.3.dev20251118", known)
    assert matches_selector("nightly", "0.8.3.dev20251121", known)
    assert not matches_selector("nightly", "0.8.3.dev20251118", known)
    assert not matches_selector("latest", "0.8.3.dev20251121", known)


def test_a_release_matches_nightly_without_an_index_being_asked() -> None:
    """It is none."""
    assert not matches_selector("nightly", "0.8.2", table("0.8.2"))


def test_cells_of_a_night(known: Releases) -> None:
    """Named like those of releases."""
    (cell,) = select_cells("nightly:2025-11-18@tpu:v5e:2x2", known)
    assert cell.id == "jax0.8.3.dev20251118-py311-tpu.v5e.2x2"
    assert parse_cell("jax0.8.3.dev20251118-cpu4", known).id == "jax0.8.3.dev20251118-py311-cpu4"


def test_a_matrix_may_name_nightlies(known: Releases, tmp_path: Path) -> None:
    """Newer than the releases, older nights first."""
    axes = '{ jax = ["nightly", "nightly-1", "latest"], platform = ["cpu"] }'
    (tmp_path / "nightly.toml").write_text(f"[matrix]\naxes = {axes}\n")
    cells = load_matrix("nightly", [tmp_path], known).cells
    assert [cell.release for cell in cells] == ["0.8.2", NIGHTS[1], NIGHTS[3]]


def test_the_full_id_of_a_night_reads_without_an_index() -> None:
    """A record of it may be older than what the index keeps."""
    text = "jax0.8.3.dev20240101-py312-cpu8"
    assert parse_cell(text, table("0.8.2")).id == text
    with pytest.raises(InfrastructureError, match="no nightly index is configured"):
        parse_cell("jax0.8.3.dev20240101-cpu8", table("0.8.2"))


class Silent(Index):
    """An index that does not answer."""

    def get(self, version: str) -> Release:
        """Refuse."""
        raise InfrastructureError("nightly index: refused")


@pytest.fixture
def silent() -> Releases:
    """Releases, and an index of nightlies that does not answer."""
    return replace(table("0.8.2", "0.11.0"), find_nightlies=Silent)


def test_an_index_that_does_not_answer_is_not_taken_for_no_night() -> None:
    """What it raises comes through."""
    with pytest.raises(InfrastructureError, match="refused"):
        resolve_nightly("nightly", Silent())


def test_nights_of_which_none_can_be_installed_are_a_fault_of_the_index() -> None:
    """Not of who asks for the newest; that it has not so many is."""

    class Broken(Index):
        versions = NIGHTS[2:3]

    with pytest.raises(InfrastructureError, match="none of its 1 nightlies can be installed"):
        resolve_nightly("nightly", Broken())
    with pytest.raises(UsageError, match="only 3 nightlies can be installed, of the 4"):
        resolve_nightly("nightly-5", Index())


SELECTORS = st.one_of(
    st.just("nightly"),
    st.integers(1, 10**6).map("nightly-{}".format),
    st.dates(date(1000, 1, 1)).map("nightly:{}".format),
)


@given(selector=SELECTORS, platform=st.sampled_from(["cpu", "tpu:v5e:2x2"]), x64=st.booleans())
def test_a_night_that_is_not_known_has_a_cell_whose_id_reads_back(
    selector: str, platform: str, x64: bool
) -> None:
    """As every cell's does, with the Python or without, and it matches what it was named by."""
    releases = table("0.8.2", "0.11.0")
    cell = Cell(release=selector, python="3.12", platform=platform, x64=x64)
    assert cell.is_unresolved
    assert is_cell_id(cell.id)
    assert parse_cell(cell.id, releases) == cell
    assert parse_cell(cell.id.replace("-py312", ""), releases) == cell
    assert matches_cell(cell.id, cell, releases)
    assert matches_selector(selector, cell.release, releases)
    assert not matches_selector(">=0.1", cell.release, releases)


def test_what_only_looks_like_it_is_no_cell() -> None:
    """A nightly is counted back, or of a day."""
    with pytest.raises(UsageError, match=r"unknown jax release 'nightly\.x'"):
        parse_cell("jaxnightly.x-py312-cpu8", table("0.8.2"))


def test_cells_of_nights_that_are_not_known_are_in_a_matrix(
    silent: Releases, tmp_path: Path
) -> None:
    """With what else there is, in the place that they would have; an exact one keeps its name."""
    exact = "0.13.0.dev20260102"
    jax = f'["nightly", "nightly-1", "latest", "{exact}"]'
    axes = f'{{jax = {jax}, platform = ["cpu", "tpu:v5e:2x2"]}}'
    exclude = '[{jax = ["nightly-1"], reason = "one is enough"}]'
    file = tmp_path / "m.toml"
    file.write_text(f"[matrix]\naxes = {axes}\nexclude = {exclude}")
    matrix = load_matrix(str(file), [], silent)
    assert [cell.id for cell in matrix.cells] == [
        "jax0.11.0-py312-cpu8", "jax0.11.0-py312-tpu.v5e.2x2",
        f"jax{exact}-py312-cpu8", f"jax{exact}-py312-tpu.v5e.2x2",
        "jaxnightly-py312-cpu8", "jaxnightly-py312-tpu.v5e.2x2",
    ]  # fmt: skip
    assert {left_out.reason for left_out in matrix.exclusions} == {"one is enough"}


def test_a_night_that_was_not_known_is_looked_for_again(silent: Releases, known: Releases) -> None:
    """By the id that it had: a run of it can be repeated as it was asked for."""
    (cell,) = select_cells("jaxnightly-py312-cpu4", silent)
    assert cell.id == "jaxnightly-py312-cpu4"
    (found,) = select_cells(cell.id, known)
    assert found.id == f"jax{NIGHTS[3]}-py311-cpu4"


def test_its_lock_is_the_reason_why_it_is_not_known(silent: Releases, tmp_path: Path) -> None:
    """Whoever wants to install it is told."""
    (cell,) = select_cells("nightly", silent)
    with pytest.raises(InfrastructureError, match="nightly index: refused"):
        find_lock(cell, silent, folders=[], cache=tmp_path)
