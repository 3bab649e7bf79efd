"""Packages beside those of a cell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.cells.lock import MAGIC, Lock
from conformance.cells.overlay import find_overlay, read_installed_versions
from tests.cells.fake_index import FakeIndex, serve

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    """A package index with a package that wants any jax, and with none itself."""
    folder = tmp_path / "index"
    folder.mkdir()
    made = FakeIndex(folder=folder)
    server = serve(made)
    made.add("wanting", "1.0", requires="jax>=0.4;helper")
    made.add("helper", "2.0")
    monkeypatch.setenv("CONFORMANCE_INDEX_URL", made.url)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    yield made
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("index")
def test_a_package_that_wants_jax_goes_with_a_nightly(tmp_path: Path) -> None:
    """Which the cell has, and which no package index has."""
    text = f"# {MAGIC}\n# nightly: jax\njax==0.8.3.dev20251120 \\\n    --hash=sha256:00\n"
    lock = Lock(text=text, path=tmp_path / "lock.txt")
    folder = find_overlay(Path(sys.executable), lock, ("wanting",), tmp_path)
    assert folder is not None
    assert (folder / "wanting").is_dir()
    assert (folder / "helper").is_dir()
    assert not (folder / "jax").exists()
    assert read_installed_versions(folder) == {"wanting": "1.0", "helper": "2.0"}
