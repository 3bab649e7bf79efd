"""Child processes that are killed when this process is interrupted, in any thread."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class ChildProcesses:
    """The running child processes."""

    def __init__(self) -> None:
        # No lock: a signal handler reads it, and would deadlock if the interrupted thread held one.
        # Single operations of a set are atomic.
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(
        self,
        arguments: Sequence[str | os.PathLike[str]],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: str = "",
        pass_fds: Sequence[int] = (),
        timeout: float | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end.

        Args:
            arguments: Program and arguments.
            cwd: Working directory.
            env: Environment of the process.
            stdin: Text on standard input.
            pass_fds: Descriptors that the process inherits.
            timeout: Time limit in seconds, None for no limit.

        Returns:
            Exit status, standard output and standard error.

        Raises:
            OSError: If the program cannot be run.
            TimeoutExpired: If the time limit is exceeded; the process is killed.
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
            pass_fds=pass_fds,
        ) as process:
            self._running.add(process)
            try:
                if self._stopped:  # stopped between the check and the start
                    process.kill()
                out, err = process.communicate(stdin, timeout)
            # Popen's `with` waits for the child: without the kill an interrupt would last as long
            # as it.
            except BaseException:
                process.kill()
                raise
            finally:
                self._running.discard(process)
        # A child that `stop` killed looks as if it had failed: report the interrupt instead.
        self._check()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def _check(self) -> None:
        if self._stopped:
            raise InfrastructureError("interrupted")

    def stop(self) -> None:
        """Kill all child processes, and refuse to start new ones."""
        self._stopped = True
        # A copy: other threads remove their processes from the set meanwhile.
        for process in list(self._running):
            process.kill()

    def resume(self) -> None:
        """Permit new child processes again."""
        self._stopped = False


CHILD_PROCESSES = ChildProcesses()
