"""Disks that are full or cannot be written: exit 4, clear, and what was recorded stays."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.bench import cache_beside
from tests.engine.written_runs import record, write
from tests.projects import CELL, GOOD, HEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import MakeProject

    MakeDisk = Callable[[str], Path]

pytestmark = pytest.mark.cell
TOPIC = "cases/fam/topic.py"


@pytest.fixture
def new_disk(tmp_path: Path) -> Iterator[MakeDisk]:
    """Mount a small disk with some options; skips where that is not permitted."""
    folder = tmp_path / "disk"

    def make(options: str) -> Path:
        folder.mkdir(exist_ok=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", folder],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"mounting is not permitted here: {done.stderr.decode().strip()}")
        return folder

    yield make
    subprocess.run(["umount", folder], capture_output=True, check=False)


def _big(mebibytes: int, name: str = "big") -> str:
    """Return a case whose value takes that much disk."""
    return (
        f"@probe()\ndef {name}(env):\n"
        f"    value = np.random.default_rng(0).integers(0, 256, {mebibytes} << 20, np.uint8)\n"
        "    return Observed(value, reference=value)\n"
    )


FIRST_SMALL = f"{GOOD}\n\n{_big(3)}"


@pytest.mark.parametrize("resume_on", ["the same disk", "another disk"])
def test_a_run_directory_on_a_full_disk(
    new_project: MakeProject, new_disk: MakeDisk, tmp_path: Path, resume_on: str
) -> None:
    """The results there were stay, and once there is room the run is resumed."""
    disk = new_disk("size=2m")
    project = new_project({TOPIC: FIRST_SMALL})
    ending = project.run("run", "--jobs", "1", "--fresh", "--run", disk / "run")
    assert ending.code == 4
    assert (
        "cannot be written: no space left on device; free some space and try again" in ending.error
    )
    assert ending.error.endswith(f"continue with: conformance run --resume --run {disk / 'run'}")
    lines = (disk / "run" / "results.jsonl").read_bytes().splitlines()
    assert len(lines) == 2
    run = disk / "run"
    if resume_on == "another disk":
        run = tmp_path / "elsewhere"
        shutil.copytree(disk / "run", run)
    else:
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
    ending = project.run("run", "--resume", "--run", run)
    assert ending.code == 0
    assert (run / "results.jsonl").read_bytes().splitlines()[:2] == lines
    assert "3 new" in ending.out


def test_a_disk_that_is_full_from_the_start(new_project: MakeProject, new_disk: MakeDisk) -> None:
    """Not even the plan can be written: nothing runs."""
    disk = new_disk("size=64k")
    (disk / "ballast").write_bytes(bytes(60 << 10))
    project = new_project({TOPIC: GOOD})
    ending = project.run("run", "--run", disk / "run")
    assert ending.code == 4
    assert f"{disk / 'run'}" in ending.error
    assert "cannot be written: no space left on device" in ending.error


def test_a_cache_on_a_full_disk(
    new_project: MakeProject,
    new_disk: MakeDisk,
    shared_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It ends no run: one note, and all records are in the run."""
    project = new_project({TOPIC: FIRST_SMALL})
    assert project.run("run", "fam/two").code == 0  # so that the environment is there
    disk = new_disk("size=2m")
    cache_beside(disk)
    monkeypatch.setenv("CONFORMANCE_CACHE", str(disk))
    assert project.run("run", "--jobs", "1").code == 0
    notes = [note for note in caplog.messages if "no space left on device" in note]
    assert len(notes) == 1
    assert str(disk) in notes[0]
    assert len(project.newest.read_records()) == 3
    monkeypatch.setenv("CONFORMANCE_CACHE", str(shared_cache))
    assert project.run("run", "--resume").code == 0


def test_a_cache_too_small_for_an_environment(
    new_project: MakeProject, new_disk: MakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Infra for its jobs, and what to set."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(new_disk("size=3m")))
    monkeypatch.setenv("UV_LINK_MODE", "copy")
    code, records = new_project({TOPIC: GOOD}).results()
    assert code == 4
    assert {record.outcome for record in records.values()} == {"infra"}
    assert "its environment takes up to 0.6 GB" in records["one"].reasons[0]
    assert records["one"].reasons[0].endswith("set CONFORMANCE_CACHE to a folder with more room")


def test_a_cache_that_cannot_be_written(
    new_project: MakeProject, new_disk: MakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only file system: exit 4, and what to set."""
    disk = new_disk("ro,size=1m")
    monkeypatch.setenv("CONFORMANCE_CACHE", str(disk))
    ending = new_project({TOPIC: GOOD}).run("run")
    assert ending.code == 4
    assert ending.error == (
        f"cache {disk}: cannot be written: read-only file system; "
        "set CONFORMANCE_CACHE to a writable folder"
    )


def test_a_file_in_the_way_of_the_cache(
    new_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for a cache folder that is a file."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "file"))
    ending = new_project({TOPIC: GOOD}).run("run")
    assert ending.code == 4
    assert "file: cannot be written: file exists; set CONFORMANCE_CACHE" in ending.error


def test_a_project_that_cannot_be_written(
    new_project: MakeProject, new_disk: MakeDisk, tmp_path: Path
) -> None:
    """Runs go elsewhere with --run; accepting says which file it could not write."""
    project = new_project({TOPIC: GOOD})
    disk = new_disk("size=1m")
    shutil.copytree(project.path, disk, dirs_exist_ok=True)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    there = type(project)(disk, project.capsys)
    ending = there.run("run")
    assert ending.code == 4
    assert f"{disk / 'reports' / 'runs'}" in ending.error
    assert "cannot be written: read-only file system; check the permissions" in ending.error
    assert there.run("run", "--run", tmp_path / "run").code == 0
    ending = there.run("accept", "--run", tmp_path / "run")
    assert ending.code == 4
    assert "golden/topic/" in ending.error
    assert "read-only file system" in ending.error


@pytest.mark.parametrize("words", [("run",), ("merge", "part")])
def test_a_run_directory_that_cannot_be_written(
    new_project: MakeProject, new_disk: MakeDisk, words: tuple[str, ...]
) -> None:
    """Neither on a read-only disk nor below a file: one line, with the folder and the reason."""
    project = new_project({TOPIC: GOOD})
    write(project.path / "part", record("fam/one", CELL), request={"shard": "1/1"})
    disk = new_disk("size=1m,ro")
    (project.path / "file").touch()
    for folder, reason in (
        (disk / "run", "read-only file system"),
        (project.path / "file" / "run", "not a directory"),
    ):
        ending = project.run(*words, "--run", folder)
        assert (ending.code, ending.err.count("\n")) in {(4, 1), (2, 1)}, ending.err
        assert str(folder) in ending.error
        assert reason in ending.error


def test_the_head_of_a_case_file_stands(new_project: MakeProject) -> None:
    """The big case of this module conforms where there is room."""
    project = new_project({TOPIC: f"{HEAD}\n\n\n{_big(1)}"})
    assert project.run("run").code == 0
