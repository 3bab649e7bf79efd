"""Run a program in a separate session, and end all its processes when the caller ends.

    python guard.py DESCRIPTOR PROGRAM [ARGUMENT ...]

Standard input is a pipe to which nothing is written: its end is the order to end the program, also
if the caller was killed. The end of the program is written to DESCRIPTOR as JSON: `exit`, `signal`,
`max_rss_bytes`.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys

KIB = 1024
# Repeated from `conformance.worker.processes`: this file runs by its path, without the package.
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
ROUNDS = 50
"""Attempts to end processes that keep forking."""


def main(descriptor: int, command: "list[str]") -> None:
    """Run a program to its end, or to the end of standard input.

    Args:
        descriptor: Descriptor for the JSON about the end of the program.
        command: The program and its arguments.
    """
    # The caller reads until the descriptor is closed, which the program must not delay.
    os.set_inheritable(descriptor, False)
    wake_read, wake_write = os.pipe()
    for end in (wake_read, wake_write):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write)
    # Processes that detach by a double fork become children of the guard, which ends them.
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    pid = os.fork()
    if pid == 0:
        _become(command)
    # The program may have ended before the first call of `select`.
    ended, status, usage = os.wait4(pid, os.WNOHANG)
    while not ended:
        ready, _, _ = select.select([0, wake_read], [], [])
        with contextlib.suppress(BlockingIOError):
            os.read(wake_read, 64)
        if 0 in ready:
            os.kill(pid, signal.SIGKILL)  # the child may not lead a process group yet
            _end(pid)
        ended, status, usage = os.wait4(pid, 0 if 0 in ready else os.WNOHANG)
    _end(pid)  # processes that the program left behind
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
        # The pipe of the caller is the guard's alone.
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - the program is the user's
    except OSError as error:
        os.write(2, f"{command[0]}: cannot be run: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _end(pid: int) -> None:
    """End a program with all processes that it started, in any session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    me = os.getpid()
    for _ in range(ROUNDS):  # when a stray ends, its children become children of the guard
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
    """Call `prctl` of Linux; does nothing on other systems."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
