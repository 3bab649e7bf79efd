"""Run a program in a session of its own, and end all of it when whoever asked for it is gone.

    python guard.py DESCRIPTOR PROGRAM [ARGUMENT ...]

Standard input is a pipe that nobody writes to: its end is the order to end, also where the other
side was killed. How the program ended is JSON on DESCRIPTOR: `exit`, `signal`, `max_rss_bytes`.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys

KIB = 1024
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
ROUNDS = 50
"""Looks at processes that keep forking while they are ended."""


def main(descriptor: int, command: "list[str]") -> None:
    """Run a program to its end, or to the end of standard input.

    Args:
        descriptor: Where it is said how it ended.
        command: The program and its arguments.
    """
    os.set_inheritable(descriptor, False)
    woken, wakes = os.pipe()
    for end in (woken, wakes):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)  # what leaves by a double fork comes here, to be ended
    pid = os.fork()
    if pid == 0:
        _become(command)
    # Before the first look what may have happened before anybody listened.
    ended, status, usage = os.wait4(pid, os.WNOHANG)
    while not ended:
        ready, _, _ = select.select([0, woken], [], [])
        with contextlib.suppress(BlockingIOError):
            os.read(woken, 64)
        if 0 in ready:
            os.kill(pid, signal.SIGKILL)  # it may not have a session of its own yet
            _end(pid)
        ended, status, usage = os.wait4(pid, 0 if 0 in ready else os.WNOHANG)
    _end(pid)  # what it left behind
    kib = 1 if sys.platform == "darwin" else KIB
    ending = {
        "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        "max_rss_bytes": usage.ru_maxrss * kib,
    }
    os.write(descriptor, json.dumps(ending).encode())


def _become(command: "list[str]") -> None:
    """Turn the forked child into the program; never returns."""
    try:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a program may kill its guard
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - what it is for
    except OSError as error:
        os.write(2, f"{command[0]}: cannot be run: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _end(pid: int) -> None:
    """End a program, with all it started, whatever session that is in."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    me = os.getpid()
    for _ in range(ROUNDS):  # what a stray started comes to the guard as the stray ends
        try:
            with open(f"/proc/{me}/task/{me}/children") as file:  # noqa: PTH123 - start-up time
                strays = [child for child in map(int, file.read().split()) if child != pid]
        except OSError:
            return
        if not strays:
            return
        for stray in strays:
            with contextlib.suppress(OSError):
                os.kill(stray, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(stray, 0)


def _prctl(option: int, value: int) -> None:
    """Call Linux's prctl; does nothing elsewhere."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
