"""Locks against concurrent writers."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.errors import InfrastructureError
from conformance.locking import lock_file, lock_folders

if TYPE_CHECKING:
    from pathlib import Path

WRITER = """
import sys, time
from pathlib import Path
from conformance.locking import lock_folders, lock_file
folder = Path(sys.argv[1])
for _ in range(20):
    with lock_folders([folder], print):
        count = int((folder / "count").read_text())
        time.sleep(0.002)
        (folder / "count").write_text(str(count + 1))
"""
HOLDER = """
import sys, time
from pathlib import Path
from conformance.locking import lock_folders, lock_file
with lock_folders([Path(sys.argv[1])], print):
    print("held", flush=True)
    time.sleep(60)
"""


def _start(program: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True
    )


def test_updates_of_concurrent_writers_are_kept(tmp_path: Path) -> None:
    """Each reads and writes under the lock."""
    (tmp_path / "count").write_text("0")
    writers = [_start(WRITER, tmp_path) for _ in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    for writer in writers:
        writer.communicate()
    assert (tmp_path / "count").read_text() == "80"
    assert [path.name for path in tmp_path.iterdir()] == ["count"]


def test_wait_for_a_lock_is_limited(tmp_path: Path) -> None:
    """The message names the folder; a killed writer releases its lock."""
    holder = _start(HOLDER, tmp_path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    notes: list[str] = []
    with (
        pytest.raises(InfrastructureError, match="another process has been changing it"),
        lock_folders([tmp_path], notes.append, patience=1.2),
    ):
        pass
    assert notes == [f"{tmp_path}: waiting for another process that changes it"]
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with lock_folders([tmp_path], notes.append):
        pass
    assert len(notes) == 1


def test_missing_folder_is_created(tmp_path: Path) -> None:
    """The first goldens of a list of functions have no folder."""
    with lock_folders([tmp_path / "new" / "goldens"], print):
        assert (tmp_path / "new" / "goldens").is_dir()


def test_file_in_place_of_a_folder_is_infra(tmp_path: Path) -> None:
    """The message has the path and the reason."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(InfrastructureError, match="file: cannot be written: file exists"),
        lock_folders([tmp_path / "file"], print),
    ):
        pass


def test_file_lock_is_independent_of_the_folder_lock(tmp_path: Path) -> None:
    """A run holds its folder, and others lock files in it."""
    notes: list[str] = []
    file = tmp_path / "review.json"
    with lock_folders([tmp_path], notes.append), lock_file(file, notes.append):
        with (
            pytest.raises(InfrastructureError, match=r"review\.json: another process has been"),
            lock_file(file, notes.append, patience=0.1),
        ):
            pass
        with lock_file(tmp_path / "evidence.json", notes.append):
            pass
    assert notes == []
    assert not file.exists()


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_link_in_place_of_a_lock_file_is_infra(tmp_path: Path, kind: str) -> None:
    """A run directory may be untrusted: links in it are not followed."""
    mark = tmp_path / ".review.json.held"
    outside = tmp_path / "outside"
    mark.symlink_to(outside) if kind == "link" else mark.mkdir()
    with (
        pytest.raises(InfrastructureError, match=r"review\.json\.held: cannot be written: "),
        lock_file(tmp_path / "review.json", print),
    ):
        pass
    assert not outside.exists()
