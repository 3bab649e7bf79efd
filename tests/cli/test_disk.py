"""Full and read-only disks: exit 4 with a clear message, and no recorded result is lost."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.engine.written_runs import record, write
from tests.projects import CELL, GOOD, HEAD
from tests.workbench import make_test_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import MakeProject

    MakeDisk = Callable[[str], Path]

pytestmark = pytest.mark.cell
TOPIC = "cases/fam/topic.py"


@pytest.fixture
def new_disk(tmp_path: Path) -> Iterator[MakeDisk]:
    """Return a function that mounts a small disk; skips if mounting is not permitted."""
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


def _big_case(mebibytes: int, name: str = "big") -> str:
    """Return a case whose value takes some mebibytes of disk."""
    return (
        f"@probe()\ndef {name}(env):\n"
        f"    value = np.random.default_rng(0).integers(0, 256, {mebibytes} << 20, np.uint8)\n"
        "    return Observed(value, reference=value)\n"
    )


FIRST_SMALL = f"{GOOD}\n\n{_big_case(3)}"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("resume_on", ["the same disk", "another disk"])
def test_run_on_a_full_disk_keeps_results_and_resumes(
    new_project: MakeProject, new_disk: MakeDisk, tmp_path: Path, resume_on: str
) -> None:
    """After space is freed, or in a copy on another disk, the run continues."""
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


def test_run_on_a_disk_without_room_for_the_plan_exits_4(
    new_project: MakeProject, new_disk: MakeDisk
) -> None:
    """Nothing runs."""
    disk = new_disk("size=64k")
    (disk / "ballast").write_bytes(bytes(60 << 10))
    project = new_project({TOPIC: GOOD})
    ending = project.run("run", "--run", disk / "run")
    assert ending.code == 4
    assert f"{disk / 'run'}" in ending.error
    assert "cannot be written: no space left on device" in ending.error


def test_full_cache_disk_does_not_stop_a_run(
    new_project: MakeProject,
    new_disk: MakeDisk,
    shared_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One warning is logged, and all records are in the run."""
    project = new_project({TOPIC: FIRST_SMALL})
    assert project.run("run", "fam/two").code == 0  # provisions the environment
    disk = new_disk("size=2m")
    make_test_cache(disk)
    monkeypatch.setenv("CONFORMANCE_CACHE", str(disk))
    assert project.run("run", "--jobs", "1").code == 0
    notes = [note for note in caplog.messages if "no space left on device" in note]
    assert len(notes) == 1
    assert str(disk) in notes[0]
    assert len(project.newest.read_records()) == 3
    monkeypatch.setenv("CONFORMANCE_CACHE", str(shared_cache))
    assert project.run("run", "--resume").code == 0


def test_cache_without_room_for_an_environment_is_infra(
    new_project: MakeProject, new_disk: MakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names the variable to set."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(new_disk("size=3m")))
    monkeypatch.setenv("UV_LINK_MODE", "copy")
    code, records = new_project({TOPIC: GOOD}).results()
    assert code == 4
    assert {record.outcome for record in records.values()} == {"infra"}
    assert "its environment takes up to 0.6 GB" in records["one"].reasons[0]
    assert records["one"].reasons[0].endswith("set CONFORMANCE_CACHE to a folder with more room")


def test_read_only_cache_exits_4(
    new_project: MakeProject, new_disk: MakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the variable to set."""
    disk = new_disk("ro,size=1m")
    monkeypatch.setenv("CONFORMANCE_CACHE", str(disk))
    ending = new_project({TOPIC: GOOD}).run("run")
    assert ending.code == 4
    assert ending.error == (
        f"cache {disk}: cannot be written: read-only file system; "
        "set CONFORMANCE_CACHE to a writable folder"
    )


def test_cache_folder_that_is_a_file_exits_4(
    new_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the variable to set."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "file"))
    ending = new_project({TOPIC: GOOD}).run("run")
    assert ending.code == 4
    assert "file: cannot be written: file exists; set CONFORMANCE_CACHE" in ending.error


def test_read_only_project_exits_4(
    new_project: MakeProject, new_disk: MakeDisk, tmp_path: Path
) -> None:
    """A run can be written elsewhere with `--run`; accepting names the file it could not write."""
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
def test_run_directory_that_cannot_be_created_exits_with_one_line(
    new_project: MakeProject, new_disk: MakeDisk, words: tuple[str, ...]
) -> None:
    """On a read-only disk and below a file; the line has the folder and the reason."""
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


def test_big_case_conforms_if_there_is_room(new_project: MakeProject) -> None:
    """The case of this module is valid."""
    project = new_project({TOPIC: f"{HEAD}\n\n\n{_big_case(1)}"})
    assert project.run("run").code == 0
