"""A full disk where pages, reports and the history go; `tests/cli/test_disk.py` has the rest."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.projects import GOOD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.projects import Project

pytestmark = [pytest.mark.cell, pytest.mark.project({"cases/fam/topic.py": GOOD})]
FULL = "cannot be written: no space left on device; free some space and try again"


@pytest.fixture
def project(project: Project) -> Project:
    """A project with one run."""
    assert project.run("run").code == 0
    return project


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A full disk of a mebibyte; skips where mounting is not permitted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.decode().strip()}")
    with pytest.raises(OSError, match="No space"):
        (folder / "ballast").write_bytes(bytes(2 << 20))
    yield folder
    subprocess.run(["umount", folder], check=True)


def left(disk: Path) -> list[str]:
    """Return the files on a disk that hold something."""
    files = (path for path in disk.rglob("*") if path.is_file() and path.stat().st_size)
    return sorted(path.name for path in files if path.name != "ballast")


def test_the_site(project: Project, disk: Path) -> None:
    """One error; the run is as it was, and the site is made once there is room."""
    before = (project.newest.path / "results.jsonl").read_bytes()
    ending = project.run("report", "--out", disk / "site")
    assert ending.code == 4
    assert str(disk) in ending.error
    assert ending.error.endswith(FULL)
    assert (project.newest.path / "results.jsonl").read_bytes() == before
    (disk / "ballast").unlink()
    assert project.run("report", "--out", disk / "site").code == 0
    assert (disk / "site" / "index.html").exists()
    assert list(disk.rglob(".writing-*")) == []


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("name", ["markdown", "junit", "csv", "json", "jsonl"])
def test_a_report(project: Project, disk: Path, name: str) -> None:
    """Nothing half written is left."""
    ending = project.run("report", f"--{name}", disk / "file")
    assert (ending.code, left(disk)) == (4, [])
    assert ending.error == f"{disk / 'file'}: {FULL}"


def test_the_history(project: Project, disk: Path) -> None:
    """A run that could not be added is added once there is room; those before it stay."""
    store = disk / "history.db"
    (disk / "ballast").unlink()
    assert project.run("history", "add", "--store", store, project.newest.path).code == 0
    assert project.run("run", "--fresh").code == 0
    with pytest.raises(OSError, match="No space"):
        (disk / "ballast").write_bytes(bytes(2 << 20))
    ending = project.run("history", "add", "--store", store, project.newest.path)
    assert (ending.code, ending.error) == (4, f"{store}: {FULL}")
    assert len(project.run("history", "runs", "--store", store, "--json", "-").json) == 1
    (disk / "ballast").unlink()
    assert project.run("history", "add", "--store", store, project.newest.path).code == 0
    assert len(project.run("history", "runs", "--store", store, "--json", "-").json) == 2
