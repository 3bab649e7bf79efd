"""Process trees: their members, their memory, and their end."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.worker import processes
from tests.processes import ends_within

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 64 * 2**20
TREE = f"""
import os, sys, threading, time
kept = os.urandom({SIZE})

def fork():
    if os.fork() == 0:
        os.setsid()
        os.fork()
        os.write(1, b"%d\\n" % os.getpid())
        time.sleep(60)

thread = threading.Thread(target=fork)
thread.start()
time.sleep(60)
"""


@pytest.fixture
def tree() -> Iterator[tuple[int, set[int]]]:
    """A process with 64 MiB, which it shares with a child and a grandchild; a thread forked one."""
    process = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    below = {int(process.stdout.readline()) for _ in range(2)}
    yield process.pid, below
    processes.kill_tree(process.pid)
    process.communicate()


def test_children_of_threads_are_descendants(tree: tuple[int, set[int]]) -> None:
    """So are processes that left the session."""
    pid, below = tree
    assert set(processes.list_descendants(pid)) == below


def test_shared_pages_count_once(tree: tuple[int, set[int]]) -> None:
    """If the plain sum is above the limit."""
    pid, _ = tree
    assert processes.measure_tree(pid, 10 * SIZE) > 3 * SIZE
    assert SIZE < processes.measure_tree(pid, 2 * SIZE) < 2 * SIZE


def test_a_tree_is_killed_with_all_processes(tree: tuple[int, set[int]]) -> None:
    """In any session."""
    pid, below = tree
    processes.kill_tree(pid)
    assert all(ends_within(one) for one in (pid, *below))


def test_an_ended_process_has_no_memory() -> None:
    """It may end during the measurement."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert processes.measure_tree(process.pid) == 0
    assert processes.measure_proportional(process.pid) == 0
    processes.kill_tree(process.pid)


def test_a_zombie_child_has_no_memory() -> None:
    """Memory that the others share still counts once."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert processes.measure_proportional(process.pid) == 0
    process.wait()
