"""The table of releases: the committed one, and invalid ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.cells.releases import Releases, load_releases, parse_releases
from conformance.errors import InfrastructureError, UsageError

from .builders import table

if TYPE_CHECKING:
    from pathlib import Path


def test_committed_table_is_complete_and_in_order(real_releases: Releases) -> None:
    """From 0.4.30 on, without the yanked release."""
    versions = list(real_releases.versions)
    assert versions == sorted(versions, key=Version)
    assert versions[0] == "0.4.30"
    assert len(versions) >= 34
    assert "0.4.32" in real_releases.yanked
    assert "0.4.32" not in versions


def test_every_release_can_be_installed(real_releases: Releases) -> None:
    """Its jaxlib is in range, and both admit a Python."""
    for row in real_releases.rows:
        assert SpecifierSet(row.jaxlib_requires).contains(row.jaxlib), row
        assert row.admits(real_releases.find_python(row.version)), row


@pytest.mark.parametrize(
    ("version", "python"), [("0.4.30", "3.11"), ("0.10.2", "3.11"), ("0.11.0", "3.12")]
)
def test_default_python_is_the_lowest_admitted(
    version: str, python: str, real_releases: Releases
) -> None:
    """3.11 up to 0.10.2, then 3.12, as in requires-python."""
    assert real_releases.find_python(version) == python


def test_releases_by_distance(real_releases: Releases) -> None:
    """The older of two at equal distance first; none for an unknown version."""
    near = real_releases.sort_by_distance("0.6.1")
    assert near[:4] == ("0.6.0", "0.6.2", "0.5.3", "0.7.0")
    assert sorted({*near, "0.6.1"}) == sorted(real_releases.versions)
    assert real_releases.sort_by_distance("0.6.99") == ()


def test_versions_are_compared_by_pep_440() -> None:
    """0.11 is newer than 0.9, and 0.6 is not 0.6.0 unless the index has it."""
    releases = parse_releases(_rows("0.11.0", "0.9.0"), table("0.5.3").path)
    assert releases.newest.version == "0.11.0"
    assert releases.get("0.9.0 ").version == "0.9.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"no \[\[release\]\] in it"),
        ("[[release]]\nversion = 6", "Expected `str`, got `int`"),
        ("[[release]]\nversion = '0.6'", "missing required field"),
        ("[[release", "releases.toml: "),
    ],
)
def test_invalid_table_is_a_usage_error(text: str, message: str, tmp_path: Path) -> None:
    """With the way to refresh it."""
    file = tmp_path / "releases.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        load_releases(file)
    assert str(file) in str(caught.value)
    assert "--refresh" in str(caught.value)


def test_missing_table_is_infra(tmp_path: Path) -> None:
    """The message has its path."""
    with pytest.raises(InfrastructureError, match=r"releases\.toml: cannot read"):
        load_releases(tmp_path / "releases.toml")


def _rows(*versions: str) -> str:
    return "".join(
        f"[[release]]\nversion='{v}'\ndate=2025-01-01T00:00:00Z\nrequires_python='>=3.11'\n"
        f"jaxlib='{v}'\njaxlib_requires='=={v}'\npythons=['3.11']\n"
        for v in versions
    )


@pytest.mark.parametrize("version", ["0.4.20", "0.3", "jax-0"])
def test_older_release_is_not_a_misspelling(version: str, real_releases: Releases) -> None:
    """The message has the first release of the table, and a remedy."""
    with pytest.raises(UsageError) as caught:
        real_releases.get(version)
    older = "older than the release table, which begins with 0.4.30" in str(caught.value)
    assert older is (version != "jax-0")
    assert not (older and "did you mean" in str(caught.value))
