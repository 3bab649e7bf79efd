"""Child processes of this one that end when it is interrupted, whichever thread waits for them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class ChildProcesses:
    """The child processes that are running now."""

    def __init__(self) -> None:
        # No lock: a signal handler must be able to look, and a set's own operations are atomic.
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(
        self,
        arguments: Sequence[str | os.PathLike[str]],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: str = "",
        holds: Sequence[int] = (),
        timeout: float | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end.

        Args:
            arguments: The program and its arguments.
            cwd: Folder to run in.
            env: Its environment.
            stdin: Text on its standard input.
            holds: Descriptors that it inherits.
            timeout: Seconds that it may take, None for any number.

        Returns:
            Exit status, standard output and standard error.

        Raises:
            OSError: If it cannot be run.
            TimeoutExpired: If it takes longer; it has ended then.
            InfrastructureError: If this process was interrupted.
        """
        self._check()
        with subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=cwd,
            env=env,
            pass_fds=holds,
        ) as process:
            self._running.add(process)
            try:
                if self._stopped:  # between the check and the start
                    process.kill()
                out, err = process.communicate(stdin, timeout)
            except BaseException:
                process.kill()
                raise
            finally:
                self._running.discard(process)
        self._check()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def _check(self) -> None:
        if self._stopped:
            raise InfrastructureError("interrupted")

    def stop(self) -> None:
        """End them all, and let none start any more."""
        self._stopped = True
        for process in list(self._running):
            process.kill()

    def admit(self) -> None:
        """Let them start again."""
        self._stopped = False


CHILD_PROCESSES = ChildProcesses()
