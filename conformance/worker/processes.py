"""Process trees in `/proc`: the processes of a job and their memory; XLA's last words.

Processes that left their parent by a double fork or by `setsid` are found too, as long as an
ancestor of theirs is a subreaper: the kernel makes them children of that ancestor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import signal
import sys

PAGE = resource.getpagesize()
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
ROUNDS = 50
"""Attempts to end processes that keep forking; the next call continues."""


def prctl(option: int, value: int) -> None:
    """Call `prctl` of Linux; does nothing on other systems."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def take_standard_input() -> int:
    """Replace standard input by an empty one, and return a descriptor of the former input."""
    # Requests arrive on it, and a case that reads standard input must not consume them.
    taken, empty = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return taken


def list_children(pid: int) -> list[int]:
    """Return the children of a process, whichever of its threads forked them."""
    # The kernel lists children by the thread that forked them.
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        with (
            contextlib.suppress(OSError),
            open(f"/proc/{pid}/task/{thread}/children", "rb") as file,
        ):
            found += map(int, file.read().split())
    return found


def list_descendants(pid: int) -> list[int]:
    """Return all processes below a process, without itself."""
    found: list[int] = []
    open_ = [pid]
    while open_:
        below = list_children(open_.pop())
        found += below
        open_ += below
    return found


def measure_tree(pid: int, limit: int = 0) -> int:
    """Return the bytes of memory that a process and its descendants hold.

    Shared pages count once if it matters: proportional sizes take the kernel milliseconds, so they
    are only read if the plain sum exceeds the limit.

    Args:
        pid: Process id of the root.
        limit: Bytes up to which the plain sum of resident memory is sufficient.
    """
    own, below = measure_resident(pid), list_descendants(pid)
    total = own + sum(map(measure_resident, below))
    if not below or total <= limit:
        return total
    shares = [measure_proportional(process) for process in (pid, *below)]
    # Pages that the root shares with its server count in full, as for a job without children.
    return total if None in shares else max(own, sum(filter(None, shares)))


def measure_resident(pid: int) -> int:
    """Return the resident bytes of a process, 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def measure_proportional(pid: int) -> int | None:
    """Return the resident bytes of a process, shared pages divided among those that share them.

    Args:
        pid: Process id.

    Returns:
        The bytes, 0 if it has ended; None if this kernel does not count them.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except ProcessLookupError:  # it ended, and its parent has not waited for it
        return 0
    except FileNotFoundError:
        return None if os.path.isdir(f"/proc/{pid}") else 0
    except (OSError, IndexError, ValueError):
        return None
    return 0  # a zombie holds nothing


def kill_tree(pid: int) -> None:
    """Kill a process and all its descendants."""
    # Stopped first, so that none forks meanwhile; listed again for those that did before.
    below = list_descendants(pid)
    for process in (pid, *below):
        _signal(process, signal.SIGSTOP)
    for process in {pid, *below, *list_descendants(pid)}:
        _signal(process, signal.SIGKILL)


def kill_strays(mine: set[int]) -> bool:
    """Kill and wait for the children of this process that it did not start itself.

    The process is a subreaper, and so are its own children: every process that it adopts was left
    behind by a child that has ended.

    Args:
        mine: Children that it started; they are not killed.

    Returns:
        Whether all have ended.
    """
    for _ in range(ROUNDS):
        strays = set(list_children(os.getpid())) - mine
        if not strays:
            return True
        for pid in strays:
            kill_tree(pid)
        for pid in strays:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
    return False


def _signal(pid: int, number: int) -> None:
    # The process may have ended meanwhile, or run a setuid program.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


_FLAGS = re.compile(r"Unknown flags? in XLA_FLAGS: .*|Couldn't interpret value .* for flag .*")


def find_refused_flags(output: str) -> str:
    """Return XLA's message about flags that it does not know or cannot read, empty for none.

    Args:
        output: Standard error of a process.
    """
    match = _FLAGS.search(output)
    return " ".join(match.group().rstrip(". ").split()) if match else ""
