"""The lock of what lies beside a cell's own packages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.cells.lock import MAGIC, Lock
from conformance.cells.overlay import (
    OverlayLock,
    find_overlay,
    find_overlay_lock,
    read_installed_versions,
)
from conformance.cells.requirements import build_requirement
from conformance.cells.uvtool import NoSolutionError
from tests.cells.builders import make_wheel
from tests.cells.fake_index import FakeIndex, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = Path(sys.executable)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    """A package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    made = FakeIndex(folder=folder)
    server = serve(made)
    made.add("jax", "0.6.2", requires="numeric>=1")
    made.add("numeric", "1.0")
    made.add("numeric", "2.0")
    made.add("wanting", "1.0", requires="jax>=0.4;helper;numeric")
    made.add("helper", "2.0")
    monkeypatch.setenv("CONFORMANCE_INDEX_URL", made.url)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    yield made
    server.shutdown()
    server.server_close()


def lock(*pins: str) -> Lock:
    """Return the lock of a cell."""
    text = "".join(f"{pin} \\\n    --hash=sha256:00\n" for pin in pins)
    return Lock(text=f"# {MAGIC}\n# environment: jax-x\n{text}", path=Path("lock.txt"))


CELL = lock("jax==0.6.2", "numeric==1.0")


@pytest.mark.usefixtures("index")
def test_only_what_the_cell_lacks(tmp_path: Path) -> None:
    """With hashes; what the cell has stays as it is."""
    folder = find_overlay(PYTHON, CELL, ("wanting",), tmp_path)
    assert folder is not None
    assert read_installed_versions(folder) == {"wanting": "1.0", "helper": "2.0"}
    text = find_overlay_lock(PYTHON, CELL, ("wanting",), tmp_path).text
    assert text.count("--hash=sha256:") == 2
    assert "numeric" not in text


@pytest.mark.usefixtures("index")
def test_what_is_wanted_by_name_moves(tmp_path: Path) -> None:
    """And nothing else; never jax."""
    folder = find_overlay(PYTHON, CELL, ("wanting", "numeric>=2"), tmp_path)
    assert folder is not None
    assert read_installed_versions(folder) == {"wanting": "1.0", "helper": "2.0", "numeric": "2.0"}
    with pytest.raises(NoSolutionError):
        find_overlay(PYTHON, CELL, ("jax>=0.7",), tmp_path)


def test_it_is_resolved_once(index: FakeIndex, tmp_path: Path) -> None:
    """What came out since is not looked at; another machine that resolves it may say otherwise."""
    first = find_overlay_lock(PYTHON, CELL, ("wanting",), tmp_path / "here")
    index.add("helper", "3.0")
    assert find_overlay_lock(PYTHON, CELL, ("wanting",), tmp_path / "here") == first
    there = find_overlay_lock(PYTHON, CELL, ("wanting<2",), tmp_path / "there")
    assert there.hash == find_overlay_lock(PYTHON, CELL, ("wanting",), tmp_path / "there").hash
    (file,) = (tmp_path / "here" / "layers").iterdir()
    file.write_text("torn")
    assert find_overlay_lock(PYTHON, CELL, ("wanting",), tmp_path / "here").text.startswith(
        "# jax-conf"
    )


@pytest.mark.usefixtures("index")
def test_cells_that_lack_the_same_share_a_folder(tmp_path: Path) -> None:
    """It is known by what it holds."""
    other = lock("jax==0.6.2", "numeric==1.0", "unrelated==1")
    folders = {find_overlay(PYTHON, one, ("helper",), tmp_path) for one in (CELL, other)}
    assert len(folders) == 1


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("version", ["0.9.0.dev20260101", "0.6.2+cuda12"])
def test_a_development_build_is_not_looked_for(tmp_path: Path, version: str) -> None:
    """No index has what a user's own environment may have."""
    folder = find_overlay(PYTHON, lock(f"jax=={version}", "numeric==1.0"), ("wanting",), tmp_path)
    assert folder is not None
    assert read_installed_versions(folder) == {"wanting": "1.0", "helper": "2.0"}


@pytest.mark.usefixtures("index")
def test_a_wheel_of_the_users_own(tmp_path: Path) -> None:
    """It is known by its content, in whatever cache; what it requires is there, too."""
    make_wheel(tmp_path, "mine", "1.0", "helper", "py3-none-any")
    made = []
    for name in ("a cache", "b"):
        cache = tmp_path / name
        wanted = build_requirement(str(tmp_path / "mine-1.0-py3-none-any.whl"), cache)
        folder = find_overlay(PYTHON, CELL, (wanted,), cache)
        assert folder is not None
        assert read_installed_versions(folder) == {"mine": "1.0", "helper": "2.0"}
        made.append(find_overlay_lock(PYTHON, CELL, (wanted,), cache))
    assert made[0].text == made[1].text
    assert str(tmp_path) not in made[0].text
    assert made[0].hash != OverlayLock("").hash
