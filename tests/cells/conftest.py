"""Fixtures of the tests of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cells.interpreters import forget_interpreters
from conformance.cells.releases import Releases, load_releases

from .builders import MATRICES, table
from .fake_index import FakeIndex, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def real_releases() -> Releases:
    """The committed table of releases."""
    return load_releases(MATRICES)


@pytest.fixture
def releases() -> Releases:
    """A small made-up table of releases."""
    return table("0.5.3", "0.6.0", "0.6.2", "0.8.3", "0.11.0")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the only package index of uv, with an empty package cache."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.delenv("CONFORMANCE_INDEX_URL", raising=False)
    return folder


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    """A fake package index, selected by its variable as a user would select it."""
    folder = tmp_path / "index"
    folder.mkdir()
    made = FakeIndex(folder=folder)
    server = serve(made)
    monkeypatch.setenv("CONFORMANCE_INDEX_URL", made.url)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _fresh_interpreter_search() -> None:
    forget_interpreters()


@pytest.fixture
def nightly(
    tmp_path: Path, index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeIndex]:
    """An index of nightlies for this test, in plain HTML, in addition to the package index."""
    folder = tmp_path / "nightly"
    folder.mkdir()
    made = FakeIndex(folder=folder, html=True, upload_times=False)
    server = serve(made)
    monkeypatch.setenv("CONFORMANCE_NIGHTLY_INDEX", made.url)
    yield made
    server.shutdown()
    server.server_close()
