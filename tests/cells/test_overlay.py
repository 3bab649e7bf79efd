"""Packages in addition to those of a cell, and their lock."""

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

if TYPE_CHECKING:
    from tests.cells.fake_index import FakeIndex

PYTHON = Path(sys.executable)


@pytest.fixture
def packages(index: FakeIndex) -> FakeIndex:
    """The index, with jax and a package that requires it and others."""
    index.add("jax", "0.6.2", requires="numeric>=1")
    index.add("numeric", "1.0")
    index.add("numeric", "2.0")
    index.add("wanting", "1.0", requires="jax>=0.4;helper;numeric")
    index.add("helper", "2.0")
    return index


def lock(*pins: str) -> Lock:
    """Return the lock of a cell."""
    text = "".join(f"{pin} \\\n    --hash=sha256:00\n" for pin in pins)
    return Lock(text=f"# {MAGIC}\n# environment: jax-x\n{text}", path=Path("lock.txt"))


CELL = lock("jax==0.6.2", "numeric==1.0")


@pytest.mark.usefixtures("packages")
def test_overlay_has_only_packages_that_the_cell_lacks(tmp_path: Path) -> None:
    """With hashes; the packages of the cell are not changed."""
    folder = find_overlay(PYTHON, CELL, ("wanting",), tmp_path)
    assert folder is not None
    assert read_installed_versions(folder) == {"wanting": "1.0", "helper": "2.0"}
    text = find_overlay_lock(PYTHON, CELL, ("wanting",), tmp_path).text
    assert text.count("--hash=sha256:") == 2
    assert "numeric" not in text


@pytest.mark.usefixtures("packages")
def test_required_package_may_change_its_version(tmp_path: Path) -> None:
    """Only that package, and never jax."""
    folder = find_overlay(PYTHON, CELL, ("wanting", "numeric>=2"), tmp_path)
    assert folder is not None
    assert read_installed_versions(folder) == {"wanting": "1.0", "helper": "2.0", "numeric": "2.0"}
    with pytest.raises(NoSolutionError):
        find_overlay(PYTHON, CELL, ("jax>=0.7",), tmp_path)


def test_overlay_lock_is_resolved_once(packages: FakeIndex, tmp_path: Path) -> None:
    """Later uploads are ignored until another machine resolves it."""
    first = find_overlay_lock(PYTHON, CELL, ("wanting",), tmp_path / "here")
    packages.add("helper", "3.0")
    assert find_overlay_lock(PYTHON, CELL, ("wanting",), tmp_path / "here") == first
    there = find_overlay_lock(PYTHON, CELL, ("wanting<2",), tmp_path / "there")
    assert there.hash == find_overlay_lock(PYTHON, CELL, ("wanting",), tmp_path / "there").hash
    (file,) = (tmp_path / "here" / "layers").iterdir()
    file.write_text("torn")
    assert find_overlay_lock(PYTHON, CELL, ("wanting",), tmp_path / "here").text.startswith(
        "# jax-conf"
    )


@pytest.mark.usefixtures("packages")
def test_equal_overlays_share_a_folder(tmp_path: Path) -> None:
    """The folder is named by the hash of the packages."""
    other = lock("jax==0.6.2", "numeric==1.0", "unrelated==1")
    folders = {find_overlay(PYTHON, one, ("helper",), tmp_path) for one in (CELL, other)}
    assert len(folders) == 1


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("version", ["0.9.0.dev20260101", "0.6.2+cuda12"])
def test_development_builds_are_not_looked_up(tmp_path: Path, version: str) -> None:
    """No index has the builds of a user's own environment."""
    folder = find_overlay(PYTHON, lock(f"jax=={version}", "numeric==1.0"), ("wanting",), tmp_path)
    assert folder is not None
    assert read_installed_versions(folder) == {"wanting": "1.0", "helper": "2.0"}


@pytest.mark.usefixtures("packages")
def test_local_wheel_is_locked_by_its_content(tmp_path: Path) -> None:
    """The same text in any cache; its requirements are locked as well."""
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


def test_package_that_requires_jax_is_added_to_a_nightly(index: FakeIndex, tmp_path: Path) -> None:
    """The cell has the nightly, and the package index does not."""
    index.add("wanting", "1.0", requires="jax>=0.4;helper")
    index.add("helper", "2.0")
    text = f"# {MAGIC}\n# nightly: jax\njax==0.8.3.dev20251120 \\\n    --hash=sha256:00\n"
    nightly = Lock(text=text, path=tmp_path / "lock.txt")
    folder = find_overlay(PYTHON, nightly, ("wanting",), tmp_path)
    assert folder is not None
    assert (folder / "wanting").is_dir()
    assert (folder / "helper").is_dir()
    assert not (folder / "jax").exists()
    assert read_installed_versions(folder) == {"wanting": "1.0", "helper": "2.0"}
