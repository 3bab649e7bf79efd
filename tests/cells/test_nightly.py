"""Nightlies: their dates and selectors, and cells whose index does not answer."""

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
    """Releases with an index of nightlies."""
    return replace(table("0.6.0", "0.8.1", "0.8.2"), find_nightlies=Index)


@given(day=st.dates(date(1000, 1, 1)), local=st.sampled_from(["", "+g123"]))
def test_date_of_a_nightly_is_in_its_version(day: date, local: str) -> None:
    """Whatever the rest of the version is."""
    assert parse_night(Version(f"0.8.3.dev{day:%Y%m%d}{local}")) == day


@pytest.mark.parametrize("version", ["0.8.3", "0.8.3.dev1", "0.8.3.dev20251341", "0.8.3rc1"])
def test_other_versions_have_no_date(version: str) -> None:
    """Development versions without a date included."""
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
def test_selector_resolves_to_a_nightly(selector: str, expected: str, known: Releases) -> None:
    """Nightlies that cannot be installed do not count."""
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
def test_selector_without_a_nightly_lists_near_ones(
    selector: str, message: str, known: Releases
) -> None:
    """The message suggests existing selectors."""
    with pytest.raises(UsageError, match=message):
        resolve_selector(selector, known)


def test_nightlies_of_a_range(known: Releases) -> None:
    """Those that can be installed, and the reasons why others cannot."""
    found, refused = find_nights(Version("0.8.2"), Version("0.8.3.dev20251121"), known.nightlies)
    assert found == ["0.8.3.dev20251118", "0.8.3.dev20251121"]
    assert refused == {Index.broken: f"jax {Index.broken}: cannot be installed"}


def test_specifier_resolves_to_releases_but_matches_nightlies(known: Releases) -> None:
    """So that it filters a matrix that has nightlies."""
    assert resolve_selector(">=0.8.2", known) == ("0.8.2",)
    assert matches_selector(">=0.8.3", "0.8.3.dev20251118", known)
    assert not matches_selector("<0.8.3", "0.8.3.dev20251118", known)
    assert matches_selector("nightly", "0.8.3.dev20251121", known)
    assert not matches_selector("nightly", "0.8.3.dev20251118", known)
    assert not matches_selector("latest", "0.8.3.dev20251121", known)


def test_release_never_matches_a_nightly_selector() -> None:
    """No index is read for it."""
    assert not matches_selector("nightly", "0.8.2", table("0.8.2"))


def test_cells_of_a_nightly(known: Releases) -> None:
    """Their ids are like those of releases."""
    (cell,) = select_cells("nightly:2025-11-18@tpu:v5e:2x2", known)
    assert cell.id == "jax0.8.3.dev20251118-py311-tpu.v5e.2x2"
    assert parse_cell("jax0.8.3.dev20251118-cpu4", known).id == "jax0.8.3.dev20251118-py311-cpu4"


def test_matrix_may_have_nightlies(known: Releases, tmp_path: Path) -> None:
    """They come after the releases, the older ones first."""
    axes = '{ jax = ["nightly", "nightly-1", "latest"], platform = ["cpu"] }'
    (tmp_path / "nightly.toml").write_text(f"[matrix]\naxes = {axes}\n")
    cells = load_matrix("nightly", [tmp_path], known).cells
    assert [cell.release for cell in cells] == ["0.8.2", NIGHTS[1], NIGHTS[3]]


def test_full_id_of_a_nightly_is_parsed_without_an_index() -> None:
    """A record may be older than the nightlies in the index."""
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


def test_error_of_the_nightly_index_is_raised() -> None:
    """It does not look like a missing nightly."""
    with pytest.raises(InfrastructureError, match="refused"):
        resolve_nightly("nightly", Silent())


def test_index_without_installable_nightlies_is_infra() -> None:
    """A selector that goes too far back is a usage error."""

    class Broken(Index):
        versions = NIGHTS[2:3]

    with pytest.raises(InfrastructureError, match="none of its 1 nightlies can be installed"):
        resolve_nightly("nightly", Broken())
    with pytest.raises(UsageError, match="only 3 nightlies can be installed, of the 4"):
        resolve_nightly("nightly-5", Index())


SELECTORS = st.one_of(
    st.just("nightly"),
    st.integers(1, 10**6 - 1).map("nightly-{}".format),
    st.dates(date(1000, 1, 1)).map("nightly:{}".format),
)


@given(selector=SELECTORS, platform=st.sampled_from(["cpu", "tpu:v5e:2x2"]), x64=st.booleans())
def test_id_of_an_unresolved_nightly_is_parsed(selector: str, platform: str, x64: bool) -> None:
    """With and without the Python; the cell matches its selector."""
    releases = table("0.8.2", "0.11.0")
    cell = Cell(release=selector, python="3.12", platform=platform, x64=x64)
    assert cell.is_unresolved
    assert is_cell_id(cell.id)
    assert parse_cell(cell.id, releases) == cell
    assert parse_cell(cell.id.replace("-py312", ""), releases) == cell
    assert matches_cell(cell.id, cell, releases)
    assert matches_selector(selector, cell.release, releases)
    assert not matches_selector(">=0.1", cell.release, releases)


def test_invalid_nightly_factors_are_no_cell() -> None:
    """A nightly is counted back, or has a date."""
    with pytest.raises(UsageError, match=r"unknown jax release 'nightly\.x'"):
        parse_cell("jaxnightly.x-py312-cpu8", table("0.8.2"))


def test_matrix_keeps_unresolved_nightlies(silent: Releases, tmp_path: Path) -> None:
    """After the releases; an exact version keeps its id."""
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


def test_unresolved_id_is_resolved_again(silent: Releases, known: Releases) -> None:
    """A run can be repeated by the ids of its cells."""
    (cell,) = select_cells("jaxnightly-py312-cpu4", silent)
    assert cell.id == "jaxnightly-py312-cpu4"
    (found,) = select_cells(cell.id, known)
    assert found.id == f"jax{NIGHTS[3]}-py311-cpu4"


def test_lock_of_an_unresolved_nightly_raises_the_failure(silent: Releases, tmp_path: Path) -> None:
    """Reported when its environment is needed."""
    (cell,) = select_cells("nightly", silent)
    with pytest.raises(InfrastructureError, match="nightly index: refused"):
        find_lock(cell, silent, folders=[], cache=tmp_path)
