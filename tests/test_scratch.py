"""Temporary folders, which are locked by their owner and removed by later processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from conformance.scratch import PREFIX, Scratch, sweep, temporary_folder

if TYPE_CHECKING:
    from pathlib import Path

OWNER = """
import sys
from pathlib import Path
from conformance.scratch import Scratch
scratch = Scratch("test", Path(sys.argv[1]))
(scratch.path / "inner").mkdir()
print(scratch.path, flush=True)
sys.stdin.read()
"""


def test_temporary_folder_is_removed(tmp_path: Path) -> None:
    """With its content; a second close does nothing."""
    with temporary_folder("test", tmp_path) as folder:
        (folder / "file").write_text("x")
        assert folder.name.startswith(f"{PREFIX}test-")
    assert list(tmp_path.iterdir()) == []
    scratch = Scratch("test", tmp_path)
    scratch.close()
    scratch.close()


def test_sweep_removes_folders_of_killed_processes_only(
    tmp_path: Path,
) -> None:
    """Only the lock distinguishes them."""
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    owners = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    folders = [owner.stdout.readline().strip() for owner in owners if owner.stdout is not None]
    owners[0].send_signal(signal.SIGKILL)
    owners[0].wait()
    sweep(tmp_path)
    assert [os.path.exists(folder) for folder in folders] == [False, True]  # noqa: PTH110 - texts
    for owner in owners:
        owner.communicate()


def test_sweep_leaves_other_files(tmp_path: Path) -> None:
    """Files and links with such a name, and other folders."""
    (tmp_path / "other").mkdir()
    (tmp_path / f"{PREFIX}file").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    before = sorted(tmp_path.iterdir())
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == before
