"""Locks on environments, which the child processes of a killed run still hold."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from conformance.cells.environment_locks import hold_environment, lock_creation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STARTS_ONE = """
import pathlib, subprocess, sys, time
from conformance.cells.environment_locks import lock_creation
with lock_creation(pathlib.Path(sys.argv[1])) as held:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1.5)"], pass_fds=[held])
    print("started", flush=True)
    time.sleep(60)
"""


def test_creation_lock_is_exclusive(tmp_path: Path) -> None:
    """A second process waits no longer than its patience."""
    with (
        lock_creation(tmp_path / "env"),
        pytest.raises(TimeoutError),
        lock_creation(tmp_path / "env", patience=0.1),
    ):
        pass
    with lock_creation(tmp_path / "env", patience=0):
        pass


def test_creation_lock_is_held_by_children_of_a_killed_run(tmp_path: Path) -> None:
    """They still write to the folder."""
    command = [sys.executable, "-c", STARTS_ONE, str(tmp_path / "env")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"started\n"
        start = time.monotonic()
        killed.kill()
        killed.wait()
        with pytest.raises(TimeoutError), lock_creation(tmp_path / "env", patience=0.1):
            pass
        with lock_creation(tmp_path / "env", patience=60):
            assert time.monotonic() - start > 0.5


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A mounted disk and a function that makes it read-only; skips if mounting is not permitted."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(*options: str) -> None:
        done = subprocess.run(
            ["mount", *options, folder], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")

    mount("-t", "tmpfs", "-o", "size=1m", "none")
    yield folder, lambda: mount("-o", "remount,ro")
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("used", [True, False])
def test_environment_of_a_read_only_cache_can_be_held(
    disk: tuple[Path, Callable[[], None]], used: bool
) -> None:
    """Used before or not, and by several processes at once."""
    folder, make_read_only = disk
    env = folder / "env"
    env.mkdir()
    if used:
        with hold_environment(env):
            pass
    make_read_only()
    with hold_environment(env) as first, hold_environment(env) as second:
        assert first != second
    with pytest.raises(OSError, match="Read-only"), hold_environment(folder / "other"):
        pass
