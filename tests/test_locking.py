"""One writer at a time: nothing that another process writes meanwhile is lost."""

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


def test_no_update_of_several_writers_is_lost(tmp_path: Path) -> None:
    """Each reads and writes under the lock, so each sees what the others wrote."""
    (tmp_path / "count").write_text("0")
    writers = [_start(WRITER, tmp_path) for _ in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    for writer in writers:
        writer.communicate()
    assert (tmp_path / "count").read_text() == "80"
    assert [path.name for path in tmp_path.iterdir()] == ["count"]


def test_a_writer_that_waits_too_long_fails(tmp_path: Path) -> None:
    """The message names the folder; a writer that is killed releases its lock."""
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


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    """The first goldens of a list of functions have none yet."""
    with lock_folders([tmp_path / "new" / "goldens"], print):
        assert (tmp_path / "new" / "goldens").is_dir()


def test_a_file_in_its_place_is_a_clear_error(tmp_path: Path) -> None:
    """It says which and why."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(InfrastructureError, match="file: cannot be written: file exists"),
        lock_folders([tmp_path / "file"], print),
    ):
        pass


def test_a_file_is_locked_while_its_folder_is(tmp_path: Path) -> None:
    """Whoever holds the folder, a run for instance, keeps nobody from a file in it."""
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
def test_a_mark_that_is_no_file_is_a_clear_error(tmp_path: Path, kind: str) -> None:
    """A run directory may come from elsewhere: no link in it is followed."""
    mark = tmp_path / ".review.json.held"
    outside = tmp_path / "outside"
    mark.symlink_to(outside) if kind == "link" else mark.mkdir()
    with (
        pytest.raises(InfrastructureError, match=r"review\.json\.held: cannot be written: "),
        lock_file(tmp_path / "review.json", print),
    ):
        pass
    assert not outside.exists()
