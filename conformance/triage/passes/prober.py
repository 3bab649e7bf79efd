"""Probers for pass bisection: one program with HLO passes disabled, or with other flags."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.corpus.claims import FILECHECK
from conformance.engine.job import FinishedJob, Job
from conformance.engine.record_judge import load_claimed_observation, make_record
from conformance.engine.runs.stored_job import StoredJob
from conformance.engine.workers.client import WorkerDiedError
from conformance.engine.workers.messages import JobEnd
from conformance.engine.workers.probes import make_worker_probe
from conformance.engine.workers.transcript import Transcript
from conformance.errors import ConformanceError, InfrastructureError
from conformance.judge.conformance import judge_conformance
from conformance.model.outcome import Outcome
from conformance.scratch import Scratch, temporary_folder
from conformance.search.equivalence import format_ending
from conformance.triage.passes.settings import DISABLED, DUMP, format_flags, format_value
from conformance.triage.programs.program import ProgramKind, ProgramTarget
from conformance.worker import frames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import PlannedCell
    from conformance.engine.workers.client import Worker
    from conformance.triage.programs.runner import ProgramRunner

Frame = tuple["Mapping[str, Any]", bytes]
FOREVER: Final = 24 * 3600.0
"""Timeout of a process in seconds; each answer has a separate limit."""
ALARM: Final = "SIGALRM"
"""The signal that ends a process whose answer takes too long."""
GRACE: Final = 60.0
"""Seconds for the start of a process, and for an answer beyond its limit."""
ACCUMULATED: Final = 2
"""Factor of a job's memory limit for a process that compiles repeatedly."""
PRINT_OPTIONS: Final = ProgramTarget(
    kind=ProgramKind.COMMAND,
    text="python -c 'import jax, json; print(json.dumps({name: value for name, value in "
    "dict(jax.config.values).items() if isinstance(value, (bool, int, float, str))}))'",
)
"""A program that prints the plain options of jax, with their values."""


class ProcessLostError(ConformanceError):
    """The process ended before it answered."""


@dataclass(slots=True)
class _Session:
    """A process that compiles the program, and its messages before the first compilation."""

    link: socket.socket
    thread: threading.Thread
    ended: list[FinishedJob]
    decoder: frames.Decoder
    pending: list[frames.Frame]
    staged: list[Frame]
    config: Mapping[str, Any]


class PassProber(contextlib.AbstractContextManager["PassProber"]):
    """A prober that compiles a program of a cell repeatedly in one process.

    Use it as a context manager, which ends all its processes.

    Args:
        worker: A worker of the cell.
        job: The program in its cell.
        blobs: Store of artifacts.
    """

    def __init__(self, worker: Worker, job: Job, blobs: BlobStore) -> None:
        self._worker = worker
        self._job = job
        self._blobs = blobs
        self._scratch = Scratch("passes")
        self._folder = self._scratch.path
        self._session: _Session | None = None
        self._sessions = self._dumps = 0
        self.lost = 0
        """Processes that ended before they answered."""

    def __exit__(self, *_: object) -> None:
        # The worker first: it ends its children, so that the thread that waits for one returns.
        self._worker.close()
        self.renew()
        self._scratch.close()

    @property
    def config(self) -> Mapping[str, Any]:
        """Every plain option of `jax.config` in the cell, with its value."""
        return self._get_session().config

    def renew(self) -> None:
        """End the process, so that the next trial begins a new one without caches."""
        if self._session is not None:
            # The process ends when its connection is closed, and its thread with it.
            self._session.link.close()
            self._session.thread.join(GRACE)
            self._session = None

    def compile(self, options: Mapping[str, Any]) -> StoredJob:
        """Compile the program, and run it if the cell has devices.

        Args:
            options: Compiler options, as `compile(compiler_options=...)` takes them.

        Returns:
            The job, judged by the case's own reference and claims.
        """
        frames_, done = self._compile({"options": dict(options), "run": True})
        return judge_finished(self._make_finished(frames_, done), self._blobs)

    def list_dumps(self, disabled: Sequence[str] = ()) -> list[str]:
        """Return the names of the files that XLA dumps for its passes, until it fails or ends.

        Args:
            disabled: Passes to disable.
        """
        self._dumps += 1
        folder = self._folder / f"dump-{self._dumps}"
        folder.mkdir()
        options = {DISABLED: ",".join(disabled), "xla_dump_to": str(folder), **DUMP}
        self._compile({"options": options, "run": False})
        names = [file.name for file in folder.iterdir()]
        # A search dumps many times, so the files of each dump are removed at once.
        shutil.rmtree(folder)
        return names

    def run_with_option(self, name: str, value: Any) -> StoredJob:
        """Run the program from the start, with an option of `jax.config`.

        Args:
            name: The option.
            value: Value of the option.
        """
        case = self._job.case
        if name == "jax_enable_x64":  # a job's own affair
            case = replace(case, x64=bool(value))
        else:
            case = replace(case, config={**case.config, name: value})
        try:
            return judge_finished(self._worker.run(replace(self._job, case=case)), self._blobs)
        except WorkerDiedError as error:
            raise InfrastructureError(f"{self._job.planned.cell.id}: {error}") from error

    def _compile(self, question: Mapping[str, Any]) -> tuple[list[Frame], FinishedJob | None]:
        """Return the messages about one compilation, and the job if its process ended."""
        session = self._get_session()
        # Tracing and lowering happened once per process; each compilation has their messages
        # again.
        messages = list(session.staged)
        try:
            session.link.sendall(frames.encode(dict(question)))
            while True:
                header, body = _read_frame(session)
                if "end" in header:
                    return messages, None
                messages.append((header, body))
        except (ProcessLostError, OSError):
            return messages, self._take_end(session)

    def _take_end(self, session: _Session) -> FinishedJob:
        # A setting may crash XLA: the search continues with a new process.
        self.lost += 1
        self.renew()
        if not session.ended:
            raise InfrastructureError(
                f"{self._job.planned.cell.id}: its worker ended: {self._worker.output()}"
            )
        return session.ended[0]

    def _get_session(self) -> _Session:
        if self._session is None:
            self._session = self._start_session()
        return self._session

    def _start_session(self) -> _Session:
        self._sessions += 1
        path = self._folder / str(self._sessions)
        ended: list[FinishedJob] = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            listener.listen(1)
            # A thread, because the worker blocks for as long as the process answers.
            thread = threading.Thread(target=self._serve, args=(str(path), ended), daemon=True)
            thread.start()
            link = self._accept(listener, thread, ended)
        # The supervisor enforces the limit of the case; this limit is for a supervisor that hangs.
        link.settimeout(self._job.case.timeout + GRACE)
        session = _Session(link, thread, ended, frames.Decoder(), [], [], {})
        try:
            while "ready" not in (frame := _read_frame(session)).header:
                session.staged.append((frame.header, frame.body))
        except (ProcessLostError, OSError):
            raise InfrastructureError(self._explain_failure(ended)) from None
        session.config = frame.header["ready"]["config"]
        return session

    def _accept(
        self, listener: socket.socket, thread: threading.Thread, ended: list[FinishedJob]
    ) -> socket.socket:
        """Wait for the process to connect, as long as it runs."""
        # A process that ends before it connects must not block `accept` for ever.
        listener.settimeout(0.1)
        while thread.is_alive():
            with contextlib.suppress(TimeoutError):
                return listener.accept()[0]
        raise InfrastructureError(self._explain_failure(ended))

    def _explain_failure(self, ended: list[FinishedJob]) -> str:
        error = ended[0].error if ended else None
        messages = error.message if error is not None else self._worker.output()
        return f"{self._job.planned.cell.id}: the program could not be staged: {messages}"

    def _serve(self, channel: str, ended: list[FinishedJob]) -> None:
        """Run the process in the worker; blocks its thread until the process ends."""
        case = self._job.case
        program = {
            "file": str(case.file),
            "family": case.family,
            "name": case.name,
            "params": dict(case.params),
            "timeout": case.timeout,
            "artifacts": list(case.facts.get(FILECHECK, ())),
        }
        probe = replace(
            make_worker_probe("serve", {"channel": channel, "case": program}, "passes"),
            devices=case.devices,
            x64=case.x64,
            xla_flags=case.xla_flags,
            config=case.config,
            memory=ACCUMULATED * case.memory,
            timeout=FOREVER,
        )
        with contextlib.suppress(WorkerDiedError):
            ended.append(self._worker.run(replace(self._job, case=probe, alone=True)))

    def _make_finished(self, messages: list[Frame], end: FinishedJob | None) -> FinishedJob:
        transcript = Transcript()
        for header, body in messages:
            transcript.take(header, body)
        if end is None:
            transcript.ended = True
            return transcript.finish(self._job, JobEnd())
        finished = FinishedJob(
            job=self._job, outcome=end.outcome, stage=transcript.stage, error=end.error,
            blobs=transcript.blobs, seconds=transcript.seconds,
        )  # fmt: skip
        # The alarm of one answer is the timeout of the program, not a crash of the process.
        if end.error is not None and end.error.type == ALARM:
            return replace(finished, outcome=Outcome.TIMED_OUT)
        return finished


def judge_finished(finished: FinishedJob, blobs: BlobStore) -> StoredJob:
    """Return the job of a program, judged by the case's own reference and claims.

    Args:
        finished: The program.
        blobs: Store of its artifacts.
    """
    case, record = finished.job.case, make_record(finished, blobs)
    found, reasons = judge_conformance(case, load_claimed_observation(case, record, blobs))
    return StoredJob(replace(record, conformance=found, reasons=reasons), blobs)


def _read_frame(session: _Session) -> frames.Frame:
    while not session.pending:
        data = session.link.recv(1 << 20)
        if not data:
            raise ProcessLostError("the process ended before it answered")
        session.pending += session.decoder.feed(data)
    return session.pending.pop(0)


class ProgramPasses(contextlib.AbstractContextManager["ProgramPasses"]):
    """A prober of a script, a test or a command; see `PassProber`.

    A pass is disabled for all compilations of the program, which runs in a new process each time.

    Args:
        runner: Runner of the program.
        planned: The cell.
    """

    lost = 0
    """Processes that ended before they answered: always 0, as each trial has a new process."""

    def __init__(self, runner: ProgramRunner, planned: PlannedCell) -> None:
        self._runner = runner
        self._planned = planned

    def __exit__(self, *_: object) -> None:
        self._runner.stopped.set()

    @property
    def config(self) -> Mapping[str, Any]:
        """Every plain option of `jax.config` in the cell, with its value."""
        record = replace(self._runner, target=PRINT_OPTIONS, facts=False).run(self._planned)
        messages = self._runner.blobs.get(record.artifacts["stdout"]) if record.artifacts else b""
        try:
            found: dict[str, Any] = msgspec.json.decode(messages, type=dict[str, Any])
        except msgspec.DecodeError:
            raise InfrastructureError(
                f"{self._planned.cell.id}: its options cannot be had: {format_ending(record)}"
            ) from None
        return found

    def renew(self) -> None:
        """Do nothing: each trial has a new process."""

    def compile(self, options: Mapping[str, Any]) -> StoredJob:
        """Run the program with flags of XLA.

        Args:
            options: The flags by name; `xla_disable_hlo_passes` names passes.
        """
        return self._run(flags=format_flags(options))

    def list_dumps(self, disabled: Sequence[str] = ()) -> list[str]:
        """Return the names of the files that XLA dumps for its passes.

        Args:
            disabled: Passes to disable.
        """
        with temporary_folder("programs") as folder:
            flags = format_flags({DISABLED: ",".join(disabled), "xla_dump_to": folder, **DUMP})
            replace(self._runner, facts=False).run(self._planned, flags=flags)
            return [file.name for file in folder.iterdir()]

    def run_with_option(self, name: str, value: Any) -> StoredJob:
        """Run the program with an option of `jax.config`, by its variable.

        Args:
            name: The option.
            value: Value of the option, unless the program sets it itself.
        """
        return self._run(variables={name.upper(): format_value(value)})

    def _run(self, **how: Any) -> StoredJob:
        return StoredJob(self._runner.run(self._planned, **how), self._runner.blobs)
