"""Memory limits that the kernel enforces: where cgroups are made, and their effect."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.worker.cgroups import PREFIX, ROOM, MemoryGroup, MemoryGroups

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20


def groups(folder: Path, mounts: str, own: str) -> MemoryGroups:
    """Return what finds a place for cgroups in tables of a system."""
    (folder / "mounts").write_text(mounts)
    (folder / "own").write_text(own)
    return MemoryGroups(str(folder / "mounts"), str(folder / "own"))


def test_a_cgroup_of_version_1_is_a_child(tmp_path: Path) -> None:
    """If root may write the hierarchy of the memory controller."""
    (tmp_path / "memory" / "ours").mkdir(parents=True)
    mounts = (
        f"cgroup {tmp_path}/cpu cgroup rw,cpu 0 0\ncgroup {tmp_path}/memory cgroup rw,memory 0 0\n"
    )
    found = groups(tmp_path, mounts, "5:cpu:/\n4:memory:/ours\n0::/\n")
    assert isinstance(found.make(100 * MIB), MemoryGroup)
    (made,) = (tmp_path / "memory" / "ours").iterdir()
    assert (made / "memory.limit_in_bytes").read_text() == str(100 * MIB + ROOM)


def test_a_cgroup_of_version_2_is_a_sibling(tmp_path: Path) -> None:
    """If systemd lets the user of a session limit memory."""
    (tmp_path / "app.slice" / "shell.scope").mkdir(parents=True)
    (tmp_path / "app.slice" / "cgroup.subtree_control").write_text("cpu memory pids\n")
    found = groups(tmp_path, f"x {tmp_path} cgroup2 rw 0 0\n", "0::/app.slice/shell.scope\n")
    assert isinstance(found.make(100 * MIB), MemoryGroup)
    (made,) = (tmp_path / "app.slice").glob(f"{PREFIX}*")
    assert (made / "memory.max").read_text() == str(100 * MIB + ROOM)


@pytest.mark.parametrize(
    ("mounts", "own"),
    [
        ("", ""),
        ("x {} cgroup2 rw 0 0\n", "0::/\n"),
        ("x {} cgroup2 rw 0 0\n", "0::/not/there\n"),
        ("x {} cgroup rw,cpu 0 0\n", "4:memory:/ours\n"),
        ("x {}/nowhere cgroup rw,memory 0 0\n", "4:memory:/ours\n"),
    ],
)
def test_a_host_may_allow_no_cgroups(tmp_path: Path, mounts: str, own: str) -> None:
    """E.g. a container with a read-only or hidden hierarchy."""
    assert groups(tmp_path, mounts.format(tmp_path), own).make(100 * MIB) is None


@pytest.mark.parametrize(
    ("kills", "reached", "killed"), [("0", "0", False), ("1", "0", False), ("1", "7", True)]
)
def test_a_kill_for_the_host_is_not_the_limit(
    tmp_path: Path, kills: str, reached: str, killed: bool
) -> None:
    """The kernel counts both kinds of kills; only a reached limit distinguishes them."""
    group = MemoryGroup(str(tmp_path), 1, MIB)
    (made,) = tmp_path.iterdir()
    (made / "memory.oom_control").write_text(f"oom_kill {kills}\n")
    (made / "memory.failcnt").write_text(f"{reached}\n")
    assert group.has_killed() is killed


def test_cgroups_of_killed_workers_are_removed(tmp_path: Path) -> None:
    """By the process number in the name; those of living processes stay."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        dead = process.pid
    (tmp_path / "ours" / f"{PREFIX}{dead}-x").mkdir(parents=True)
    (tmp_path / "ours" / f"{PREFIX}{os.getpid()}-x").mkdir()
    groups(tmp_path, f"cgroup {tmp_path} cgroup rw,memory 0 0\n", "4:memory:/ours\n")
    assert [one.name for one in (tmp_path / "ours").iterdir()] == [f"{PREFIX}{os.getpid()}-x"]


@pytest.mark.parametrize("takes", [20, 400])
def test_the_kernel_enforces_the_limit(takes: int) -> None:
    """At once, and the cgroup is removed; also that of a killed process."""
    made = MemoryGroups()
    group = made.make(100 * MIB)
    if group is None:
        pytest.skip("this host has no cgroup that may be written")
    if (pid := os.fork()) == 0:
        group.enter()
        bytearray(takes * MIB)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    too_much = takes > 100
    assert os.WIFSIGNALED(status) is too_much
    assert group.has_killed() is too_much
    if too_much:
        assert os.WTERMSIG(status) == signal.SIGKILL
    assert group.remove()
