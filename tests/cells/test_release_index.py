"""Refreshing the table of releases from an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cells.release_index import refresh_releases
from conformance.cells.releases import load_releases
from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from pathlib import Path

    from .fake_index import FakeIndex

PREAMBLE = """# a comment that stays
packages = ["flax"]

[matrix]
axes = { jax = [">=0.4.30"] }

"""
X86 = "cp311-cp311-manylinux2014_x86_64"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A table without releases yet."""
    path = tmp_path / "releases.toml"
    path.write_text(PREAMBLE)
    return path


@pytest.fixture
def upstream(index: FakeIndex) -> FakeIndex:
    """An index with releases of every sort: old, pre-, yanked, and without their own jaxlib."""
    for version in ("0.4.29", "0.5.0", "0.5.1", "0.6.0rc1"):
        index.add("jax", version, requires="jaxlib<=0.5.1,>=0.5.0")
    index.add("jax", "0.4.32", requires="jaxlib", yanked="wrong metadata")
    index.add("jaxlib", "0.5.0", tag=X86, day="2025-02-03")
    index.add("jaxlib", "0.5.0", tag=X86.replace("311", "313"), day="2025-02-20")
    index.add("jaxlib", "0.5.0", tag="cp314-cp314t-manylinux2014_x86_64", day="2025-02-20")
    index.add("jaxlib", "0.6.0", tag=X86)
    return index


@pytest.mark.parametrize("html", [False, True])
def test_refresh_lists_final_releases(file: Path, upstream: FakeIndex, html: bool) -> None:
    """From 0.4.30, with jaxlib, Pythons, and the date of the later upload."""
    upstream.html = html
    refreshed = refresh_releases(file)
    assert refreshed.added == ("0.5.0", "0.5.1")
    assert refreshed.releases.yanked == {"0.4.32": "wrong metadata"}
    row = load_releases(file).get("0.5.1")
    assert (row.jaxlib, row.pythons) == ("0.5.0", ("3.11", "3.13"))
    assert row.jaxlib_requires == "<=0.5.1,>=0.5.0"
    assert f"{row.date:%Y-%m-%d}" == "2025-02-03"


def test_refresh_keeps_the_text_above_the_rows(file: Path, upstream: FakeIndex) -> None:
    """The matrix, the comments and the packages in the same file."""
    refresh_releases(file)
    once = file.read_text()
    assert once.startswith(PREAMBLE)
    refresh_releases(file)
    assert file.read_text() == once


def test_refresh_requests_metadata_of_new_releases_only(file: Path, upstream: FakeIndex) -> None:
    """Metadata of known releases never change."""
    refresh_releases(file)
    upstream.requests.clear()
    upstream.add("jax", "0.5.2", requires="jaxlib>=0.5.0,<=0.5.2")
    assert refresh_releases(file).added == ("0.5.2",)
    assert [path for path in upstream.requests if path.startswith("/files/")] == [
        "/files/jax-0.5.2-py3-none-any.whl.metadata"
    ]


def test_yanked_release_is_removed(file: Path, upstream: FakeIndex) -> None:
    """The refresh reports it."""
    refresh_releases(file)
    upstream.projects["jax"][2]["yanked"] = "oops"
    refreshed = refresh_releases(file)
    assert refreshed.removed == ("0.5.1",)
    assert refreshed.releases.yanked["0.5.1"] == "oops"


def test_index_without_upload_times_is_infra(file: Path, upstream: FakeIndex) -> None:
    """Without them there are no era dependencies; the file is unchanged."""
    upstream.upload_times = False
    with pytest.raises(InfrastructureError, match="no upload time for jax"):
        refresh_releases(file)
    assert file.read_text() == PREAMBLE


def test_unreachable_index_is_infra_without_secrets(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the variable to set, and no credentials."""
    monkeypatch.setenv("CONFORMANCE_INDEX_URL", "http://user:secret@127.0.0.1:9/index/")
    with pytest.raises(InfrastructureError, match="set CONFORMANCE_INDEX_URL") as caught:
        refresh_releases(file)
    assert "secret" not in str(caught.value)
    assert "user" not in str(caught.value)


def test_index_without_jax_is_infra(file: Path, index: FakeIndex) -> None:
    """It is a wrong URL."""
    with pytest.raises(InfrastructureError, match="404"):
        refresh_releases(file)
