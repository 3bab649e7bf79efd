"""Run a program in a session of its own, and end all of it when whoever asked for it is gone.

    python guard.py DESCRIPTOR PROGRAM [ARGUMENT ...]

Standard input is a pipe that nobody writes to: its end is the order to end, also where the other
side was killed. How the program ended is JSON on DESCRIPTOR: `exit`, `signal`, `max_rss_bytes`.
"""

import contextlib
import json
import os
import select
import signal
import sys

KIB = 1024


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
    said = {
        "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        "max_rss_bytes": usage.ru_maxrss * kib,
    }
    os.write(descriptor, json.dumps(said).encode())


def _become(command: "list[str]") -> None:
    """Turn the forked child into the program; never returns."""
    try:
        os.setsid()
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
    """End a program, with all it started that is still in its session's first group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
