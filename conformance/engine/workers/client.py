"""Clients of worker processes: start a worker, send it requests, receive frames, end it."""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import psutil

from conformance.cells.secret_masking import Masker
from conformance.corpus.project import PACKAGE
from conformance.engine.job import FinishedJob
from conformance.engine.workers.environment import make_worker_environment
from conformance.engine.workers.messages import JobEnd, Masking, read_message
from conformance.engine.workers.transcript import Transcript, make_error
from conformance.errors import ConformanceError, InfrastructureError
from conformance.laws.launch import add_server
from conformance.model.outcome import Outcome, Stage
from conformance.scratch import Scratch
from conformance.worker import frames
from conformance.worker.job_process import SCRATCH

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.job import Job
    from conformance.engine.workers.rank_transcripts import RankTranscripts

WORKER = PACKAGE / "worker" / "main.py"
HELLO_TIMEOUT = 120.0
"""Seconds a worker may take to import jax and say hello."""
GRACE = 30.0
"""Seconds after a job's timeout until its worker itself counts as hanging."""
EXHAUSTED = (errno.EAGAIN, errno.ENOMEM)
"""Errors of a host that is temporarily out of memory or processes."""
STOP_TIMEOUT = 3.0
"""Seconds that a worker may take to end after its requests have ended."""
LOOK = 0.5
"""Seconds between two checks whether a signal has stopped the worker."""


class WorkerDiedError(ConformanceError):
    """A worker that ended or hung while it ran a job."""


class WorkerKilledError(InfrastructureError):
    """A worker that was killed before its hello, or that this host had no room for."""


class WorkerProcess:
    """A process inside a cell that serves requests, from several threads at once.

    Args:
        command: Command line; the descriptor for its frames is appended.
        environment: Environment variables.
        holds: Descriptors that the process keeps open until it ends.

    Attributes:
        identity: Content of the hello frame.

    Raises:
        WorkerKilledError: If the process is killed before its hello.
        InfrastructureError: If the process does not start, or sends no hello.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        holds: Sequence[int] = (),
    ) -> None:
        self._lock = threading.Lock()
        self._pending: dict[str, queue.SimpleQueue[frames.Frame | None]] = {}
        self._hello: queue.SimpleQueue[frames.Frame | None] = queue.SimpleQueue()
        self._count = 0
        self._dead = False
        # A worker may have secrets that this process does not: those that a run sends to a node.
        self._masker = Masker({**os.environ, **environment})
        # A file, because a pipe that nothing reads fills up and blocks the worker.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._scratch = Scratch("worker")
        python = command[0]
        read_end, write_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, str(write_end)],
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[write_end, *holds],
                env={**environment, SCRATCH: str(self._scratch.path)},
                # Ctrl-C reaches this process only, which ends its workers in order.
                start_new_session=True,
                cwd=self._scratch.path,
            )
        except OSError as error:
            os.close(read_end)
            self._log.close()
            self._scratch.close()
            # A worker that is killed, or finds no memory, is started again: see `CellWorker`.
            kind = WorkerKilledError if error.errno in EXHAUSTED else InfrastructureError
            raise kind(f"worker {python} does not start: {error.strerror}") from None
        finally:
            # Held by the worker alone, so that its end is the end of the frames.
            os.close(write_end)
        self._reader = threading.Thread(target=self._read, args=(read_end,), daemon=True)
        self._reader.start()
        self.identity = self._receive_hello(python)

    def _receive_hello(self, python: str | Path) -> dict[str, Any]:
        hung = False
        try:
            hello = self._hello.get(timeout=HELLO_TIMEOUT)
        except queue.Empty:
            hello, hung = None, True
        if hello is None:
            tail = self.output()
            self.close()
            if not hung and self._process.returncode == -signal.SIGKILL:
                raise WorkerKilledError(f"worker {python} did not start: ended by SIGKILL")
            raise InfrastructureError(f"worker {python} did not start; output: {tail or 'none'}")
        return {name: hello.header[name] for name in hello.header if name not in {"kind", "body"}}

    def exchange(
        self, request: Mapping[str, Any], timeout: float
    ) -> Generator[frames.Frame, None, None]:
        """Send a request and yield its frames, up to and including its `done` frame.

        Args:
            request: The request, without an id.
            timeout: Seconds that the worker may take for each frame.

        Raises:
            WorkerDiedError: If the worker ends or hangs before that.
        """
        channel: queue.SimpleQueue[frames.Frame | None] = queue.SimpleQueue()
        # Registered before the request is sent: the answer may arrive at once.
        with self._lock:
            self._count += 1
            number = str(self._count)
            self._pending[number] = channel
        try:
            self._send({**request, "id": number})
            while True:
                frame = self._next(channel, timeout)
                yield frame
                if frame.header.get("kind") == "done":
                    return
        finally:
            with self._lock:
                del self._pending[number]

    def _next(
        self, channel: queue.SimpleQueue[frames.Frame | None], timeout: float
    ) -> frames.Frame:
        # The worker enforces the timeout of a job. This limit is for a worker that hangs itself.
        end = time.monotonic() + timeout + GRACE
        while True:
            try:
                frame = channel.get(timeout=LOOK)
            except queue.Empty:
                if time.monotonic() > end:
                    self.kill()
                    raise WorkerDiedError("the worker hangs") from None
                self._resume()
                continue
            if frame is None:
                raise self._make_death_error()
            return frame

    def _make_death_error(self) -> WorkerDiedError:
        return WorkerDiedError(f"the worker ended; output: {self.output() or 'none'}")

    def _resume(self) -> None:
        """Continue a worker that a job has stopped with SIGSTOP: other jobs depend on it."""
        with contextlib.suppress(psutil.Error, OSError):
            if psutil.Process(self._process.pid).status() == psutil.STATUS_STOPPED:
                os.kill(self._process.pid, signal.SIGCONT)

    def _send(self, header: dict[str, Any]) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - Popen was given a pipe
        with self._lock, contextlib.suppress(BrokenPipeError, ValueError):
            if not self._dead:
                stdin.write(frames.encode(header))
                stdin.flush()
                return
        raise self._make_death_error()

    def _read(self, fd: int) -> None:
        """Pass each frame to the thread that waits for it; runs in a separate thread."""
        decoder = frames.Decoder()
        try:
            while data := os.read(fd, 1 << 20):
                for frame in decoder.feed(data):
                    if frame.header.get("kind") == "hello":
                        self._hello.put(frame)
                        continue
                    with self._lock:
                        channel = self._pending.get(str(frame.header.get("job")))
                    # A frame without a channel belongs to a request that was given up.
                    if channel is not None:
                        channel.put(frame)
        except frames.FrameError:
            # Something else wrote to the channel: where the next frame begins is unknown.
            self.kill()
        finally:
            os.close(fd)
            with self._lock:
                self._dead = True
                channels = list(self._pending.values())
            for channel in (*channels, self._hello):
                channel.put(None)

    @property
    def alive(self) -> bool:
        """Whether the worker still answers."""
        return not self._dead

    @property
    def resident_bytes(self) -> int:
        """Resident memory of the process, 0 after its end."""
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def output(self) -> str:
        """Return the end of the worker's own output, secrets masked."""
        try:
            self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 2000))
            return self._masker.mask_text(self._log.read().decode("utf-8", "replace").strip())
        except ValueError:  # closed
            return ""

    def kill(self) -> None:
        """Kill the worker and all of its jobs."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self, patience: float = STOP_TIMEOUT) -> None:
        """End the worker: it ends its jobs when its requests end.

        Args:
            patience: Seconds until the worker is killed.
        """
        stdin = self._process.stdin
        if stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                stdin.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._reader.join(STOP_TIMEOUT)
        self._log.close()
        # A worker that ends in order has killed the strays of its jobs, and the search is slow.
        if self._process.returncode != 0:
            self._kill_strays()
        self._scratch.close()

    def _kill_strays(self) -> None:
        """Kill processes that jobs left in other sessions, which a killed worker could not do."""
        # By a variable that they inherited: their parents are gone, and so is the way to them.
        mark = str(self._scratch.path)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(SCRATCH) == mark:
                    process.kill()


class Worker(WorkerProcess):
    """A worker that runs the cases of one cell, from several threads at once.

    Args:
        python: Interpreter of the cell's environment.
        variables: Environment variables that the cell's platform sets.
        spawn: Whether each job gets a fresh interpreter instead of a fork.
        keep_python_path: See `make_worker_environment`.
        passed: See `make_worker_environment`.
        holds: Descriptors that the worker keeps open until it ends.

    Raises:
        WorkerKilledError: If the process is killed before its hello.
        InfrastructureError: If the process does not start, or sends no hello.
    """

    def __init__(
        self,
        python: Path,
        *,
        variables: Mapping[str, str] = {},
        spawn: bool = False,
        keep_python_path: bool = False,
        passed: Mapping[str, str] | None = None,
        holds: Sequence[int] = (),
    ) -> None:
        environment = make_worker_environment(
            os.environ, variables, keep_python_path=keep_python_path, passed=passed
        )
        # The frames of jax are evidence; reports fold those of no interest.
        environment["JAX_TRACEBACK_FILTERING"] = "off"
        super().__init__([python, "-s", WORKER, "spawn" if spawn else "serve"], environment, holds)

    def run(self, job: Job) -> FinishedJob:
        """Run one job to its end.

        Args:
            job: Job of the worker's cell.

        Returns:
            The finished job.

        Raises:
            WorkerDiedError: If the worker ends or hangs before that.
        """
        processes = job.planned.cell.place.processes
        transcript = Transcript() if processes == 1 else _make_rank_transcripts(processes)
        report = _Report(job, transcript, Masking(self._masker))
        budget = job.case.observation_mb * 2**20 * processes
        for frame in self.exchange(add_server(job.request()), job.case.timeout):
            budget -= len(frame.body)
            if budget < 0:  # the worker should have enforced the limit: it cannot be trusted
                self.kill()
                raise WorkerDiedError(
                    f"the worker sent more than {job.case.observation_mb} MiB for one job"
                )
            if (finished := report.take(frame)) is not None:
                return finished
        raise AssertionError  # `exchange` ends with the `done` frame, which finishes the report


@dataclass(slots=True)
class _Report:
    """The report of a worker on one job.

    A job can write anything to the worker's channel. That affects its own record only.

    Attributes:
        job: Job in execution.
        transcript: Collects the frames of the job.
        masking: Masks the secrets of this process in them.
        problem: Why the report is unusable, empty while it is not.
    """

    job: Job
    transcript: Transcript | RankTranscripts
    masking: Masking
    problem: str = ""

    def take(self, frame: frames.Frame) -> FinishedJob | None:
        """Take one frame, and return the finished job if the frame was the last.

        Args:
            frame: A frame of the worker about this job.
        """
        try:
            header, body = self.masking.mask(frame)
            if frame.header.get("kind") != "done":
                self.transcript.take(header, body)
                return None
            if not self.problem:
                finished = self.transcript.finish(self.job, read_message(header, JobEnd))
                return replace(finished, notes=(*finished.notes, *self.masking.make_notes()))
        except Exception as error:  # noqa: BLE001 - a job can forge any frame
            self.problem = self.problem or f"{type(error).__name__}: {error}"
            # The `done` frame is waited for: until then the worker sends frames of the job.
            if frame.header.get("kind") != "done":
                return None
        problem = self.masking.masker.mask_text(self.problem)
        text = f"no record can be made of what the worker reports: {problem}"
        return FinishedJob(
            job=self.job,
            outcome=Outcome.INFRA,
            stage=Stage.EXECUTE,
            error=make_error("infra", str(frames.escape_surrogates(text)), self.job),
        )


def _make_rank_transcripts(processes: int) -> RankTranscripts:
    # Few cells have several processes.
    from conformance.engine.workers.rank_transcripts import RankTranscripts  # noqa: PLC0415 - see above

    return RankTranscripts(processes)
