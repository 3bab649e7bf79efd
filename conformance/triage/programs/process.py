"""Processes of programs, limited in time and output; no child process survives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from conformance.engine.workers import guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

LARGEST: Final = 64 * 2**20
"""Maximum bytes of output; a program that prints more is ended."""
EXCERPT: Final = 2**18
"""Bytes of the beginning and of the end of an output that are stored."""
_LOOK: Final = 0.05
_WARNING: Final = b"\n... %d bytes more ...\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedProgram:
    """The result of a program's process.

    Attributes:
        exit: Exit status, None if a signal ended the process.
        signal: The signal that ended the process, if any.
        cut: Reason to end the process: `timeout`, `output` or `interrupt`; empty otherwise.
        stdout: Standard output, without the middle of a long output.
        stderr: Standard error, without the middle of a long output.
        seconds: Duration of the process.
        max_rss_bytes: Peak resident memory of its processes.
    """

    exit: int | None
    signal: int | None
    cut: str
    stdout: bytes
    stderr: bytes
    seconds: float
    max_rss_bytes: int


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    environment: Mapping[str, str],
    timeout: float,
    stopped: Callable[[], bool] = lambda: False,
) -> CompletedProgram:
    """Run a program in the working directory.

    Args:
        command: The program and its arguments.
        environment: Environment variables of the program.
        timeout: Timeout in seconds.
        stopped: Predicate that ends the program when it becomes true.

    Returns:
        The result. All child processes have ended, too.

    Raises:
        OSError: If no process can be started, or the disk refuses.
    """
    # Files instead of pipes: the program never blocks on a full one, and their size can be limited.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        with _start_guarded(command, environment, out, err) as (process, result):
            cut = ""
            while not cut and process.poll() is None:
                try:
                    process.wait(_LOOK)
                except subprocess.TimeoutExpired:
                    cut = _find_cut_reason(time.monotonic() - start >= timeout, stopped(), out, err)
            # End of input: the guard ends the program, if it still runs, and reports.
            process.communicate()
            # Empty if the guard itself was killed.
            report: dict[str, Any] = json.loads(result.read() or b"{}")
        return CompletedProgram(
            exit=report.get("exit"),
            signal=report.get("signal"),
            cut=cut,
            stdout=_read_bounded(out),
            stderr=_read_bounded(err),
            seconds=time.monotonic() - start,
            max_rss_bytes=report.get("max_rss_bytes", 0),
        )


@contextmanager
def _start_guarded(
    command: Sequence[str | os.PathLike[str]],
    environment: Mapping[str, str],
    out: IO[bytes],
    err: IO[bytes],
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start a program under a guard; yield the guard and the pipe that gets its report."""
    read_end, write_end = os.pipe()
    # Isolated and without site: the guard must not import from the user's folders.
    guarded = [sys.executable, "-I", "-S", str(Path(guard.__file__)), str(write_end), *command]
    with os.fdopen(read_end, "rb") as result:
        try:
            process = subprocess.Popen(
                guarded,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=environment,
                pass_fds=(write_end,),
                start_new_session=True,  # only the orchestrator reacts to Ctrl-C
            )
        finally:
            os.close(write_end)
        with process:
            yield process, result


def _find_cut_reason(late: bool, stopped: bool, *files: IO[bytes]) -> str:
    """Return the reason to end a program, empty while it may continue."""
    if stopped:
        return "interrupt"
    if any(os.fstat(file.fileno()).st_size > LARGEST for file in files):
        return "output"
    return "timeout" if late else ""


def _read_bounded(file: IO[bytes]) -> bytes:
    """Return the content of a file, without the middle of a long file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= 2 * EXCERPT:
        return file.read()
    head = file.read(EXCERPT)
    file.seek(size - EXCERPT)
    return head + _WARNING % (size - 2 * EXCERPT) + file.read()
