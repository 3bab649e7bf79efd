"""Trying a target in cells: what came of it is a record, as of any job."""

from __future__ import annotations

import os
import tempfile
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from conformance.cells.in_use import in_use
from conformance.cells.provision import environment_folder, provision
from conformance.cells.uvtool import NoSolutionError
from conformance.engine.client import worker_environment
from conformance.engine.job import Job
from conformance.engine.judging import record_of
from conformance.engine.observe import raised, signal_name
from conformance.engine.plan import why_not
from conformance.engine.runner import judged_from_cache
from conformance.errors import ConformanceError
from conformance.judge.errors import signature
from conformance.kit import script
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.triage import process
from conformance.triage.overlay import overlay, requirements_of
from conformance.triage.process import Ended
from conformance.triage.target import Program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.cells.lock import Lock
    from conformance.engine.blobs import BlobStore
    from conformance.engine.cache import ResultCache
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.judging import Judge
    from conformance.model.case import Case
    from conformance.triage.target import Target

RUNNER: Final = Path(script.__file__)


class Prober(Protocol):
    """Tries one target in cells."""

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Try it in each cell, several at a time.

        Args:
            cells: The cells.
            again: Whether what is known from before does not count.

        Yields:
            A record for each cell, in any order.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseProber:
    """Tries a case.

    Attributes:
        case: The case.
        executor: Runs jobs.
        cache: Observations of earlier runs.
        judge: Judges by the case's own reference.
        blobs: Where artifacts go.
    """

    case: Case
    executor: Executor
    cache: ResultCache
    judge: Judge
    blobs: BlobStore

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Try the case in each cell; see `Prober.probe`."""
        jobs = []
        for planned in cells:
            job = Job(case=self.case, planned=planned, alone=again)
            if reason := why_not(self.case, planned):
                yield not_run(self.case.id, self.case.content_hash, planned, reason)
            elif not again and (known := self._known(job)) is not None:
                yield known
            else:
                jobs.append(job)
        for finished in self.executor.run(jobs):
            record = record_of(finished, self.blobs)
            self.cache.put(finished.job, record, self.blobs)
            yield self.judge.judge(finished.job, record)

    def _known(self, job: Job) -> Record | None:
        return judged_from_cache(job, self.cache, self.judge, self.blobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramProber:
    """Tries a script, a test or a command in a process of its own.

    Attributes:
        target: What is tried.
        locks: Lock of each cell, by cell id.
        cache: Cache folder, where environments are.
        outer: Environment variables of the caller.
        blobs: Where artifacts go.
        timeout: Seconds a probe may take.
        slots: How many run at the same time.
        wanted: Requirements beside the packages of the cells.
        stopped: Set when the search is over.
    """

    target: Target
    locks: Mapping[str, Lock]
    cache: Path
    outer: Mapping[str, str]
    blobs: BlobStore
    timeout: float
    slots: int
    wanted: tuple[str, ...] = ()
    stopped: Event = field(default_factory=Event)

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:  # noqa: ARG002 - nothing is known from before
        """Try the program in each cell; see `Prober.probe`."""
        with ThreadPoolExecutor(self.slots) as pool:
            try:
                yield from pool.map(self._probe, cells)
            except BaseException:
                self.stopped.set()
                raise

    def _probe(self, planned: PlannedCell) -> Record:
        name, code = self.target.name, self.target.hash
        if planned.failure or planned.missing:
            outcome = Outcome.INFRA if planned.failure else Outcome.UNSUPPORTED
            return not_run(name, code, planned, planned.failure or planned.missing, outcome)
        try:
            ended, note = self._ran(planned)
        except NoSolutionError as error:
            return not_run(name, code, planned, str(error))
        except ConformanceError as error:
            return not_run(name, code, planned, str(error), Outcome.INFRA)
        outcome, said = _ending(ended, note, self.timeout)
        texts = {"stdout": ended.stdout, "stderr": ended.stderr}
        return Record(
            case=name,
            cell=planned.cell.id,
            case_hash=code,
            cell_hash=planned.cell_hash,
            outcome=outcome,
            stage=Stage.EXECUTE,
            error=said,
            artifacts={name: self.blobs.put(text) for name, text in texts.items()},
            seconds={"job": round(ended.seconds, 4)},
            max_rss_bytes=ended.max_rss_bytes,
        )

    def _ran(self, planned: PlannedCell) -> tuple[Ended, ErrorInfo | None]:
        """Run the program in a cell's environment; return how it ended, and its own error."""
        cell = planned.cell
        lock = self.locks[cell.id]
        variables = worker_environment(
            self.outer, cell.place.environment, keep_python_path=cell.interpreter is not None
        )
        with in_use(environment_folder(cell, lock, self.cache)):
            python = provision(cell, lock=lock, cache=self.cache).python
            variables["PATH"] = f"{python.parent}:{self.outer.get('PATH', '')}"
            variables |= _flags(planned)
            wanted = requirements_of(self.target.source, self._wanted, lock.pins)
            if (beside := overlay(python, lock, wanted, self.cache)) is not None:
                path = filter(None, [str(beside), variables.get("PYTHONPATH")])
                variables["PYTHONPATH"] = os.pathsep.join(path)
            with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
                note = Path(folder) / "note"
                ended = process.run(
                    self.target.command(python, RUNNER, note),
                    environment=variables, timeout=self.timeout, stopped=self.stopped.is_set,
                )  # fmt: skip
                return ended, _read_note(note, self.target.kind)

    @property
    def _wanted(self) -> tuple[str, ...]:
        """What is wanted beside a cell's packages: a test needs what runs it."""
        return (*self.wanted, *(["pytest"] if self.target.kind is Program.TEST else []))


def not_run(
    name: str, code: str, planned: PlannedCell, reason: str, outcome: Outcome = Outcome.UNSUPPORTED
) -> Record:
    """Return the record of a target that a cell cannot run, or could not.

    Args:
        name: What the target is called.
        code: Its hash.
        planned: The cell.
        reason: Why.
        outcome: Whether that is so by nature, or a fault of the host.
    """
    kind = str(outcome)
    error = ErrorInfo(type=kind, message=reason, signature=f"{kind}: {reason}", where="")
    return Record(
        case=name, cell=planned.cell.id, case_hash=code, cell_hash=planned.cell_hash,
        outcome=outcome, stage=Stage.PROVISION, error=error,
    )  # fmt: skip


def _flags(planned: PlannedCell) -> dict[str, str]:
    """Return the variables that say what a cell's options do; a program may still say otherwise."""
    cell = planned.cell
    flags = [*cell.place.xla_flags, *cell.xla_flags]
    if cell.devices > 1 and not cell.place.real:
        flags.append(f"--xla_force_host_platform_device_count={cell.devices}")
    variables = {"XLA_FLAGS": " ".join(flags)} if flags else {}
    if cell.x64:
        variables["JAX_ENABLE_X64"] = "1"
    return variables | {name.upper(): value for name, value in cell.config}


def _ending(
    ended: Ended, note: ErrorInfo | None, timeout: float
) -> tuple[Outcome, ErrorInfo | None]:
    """Return how a program ended, as of any job."""
    match ended:
        case Ended(cut="timeout"):
            late = f"no end within the timeout of {timeout:g} s"
            return Outcome.TIMED_OUT, _error("timeout", late)
        case Ended(cut="output"):
            much = f"printed more than {process.LARGEST >> 20} MiB"
            return Outcome.CRASHED, _error("output", much)
        case Ended(cut="interrupt"):
            return Outcome.NOT_RUN, _error("interrupted", "the search was interrupted")
        case Ended(signal=int(number)):
            name = signal_name(number)
            return Outcome.CRASHED, _error(name, f"the process was ended by {name}")
        case Ended(exit=0):
            return Outcome.OK, None
        case _:
            pass
    error = note or _error("exit", f"status {ended.exit}")
    return raised(error), error


def _error(type_: str, message: str, where: str = "") -> ErrorInfo:
    said = signature(type_, message)
    return ErrorInfo(type=type_, message=message, signature=said, where=where)


def _read_note(note: Path, kind: Program) -> ErrorInfo | None:
    """Return the exception that ended a program, None where it left no note of one."""
    try:
        data = note.read_bytes()
    except OSError:
        return None
    return _of_test(data) if kind is Program.TEST else _of_script(data)


def _of_script(data: bytes) -> ErrorInfo | None:
    try:
        said: dict[str, Any] = msgspec.json.decode(data, type=dict[str, str])
    except msgspec.DecodeError:  # killed while it wrote
        return None
    return _error(said["type"], said["message"], said["where"])


def _of_test(data: bytes) -> ErrorInfo | None:
    """Return the first failure of pytest's own report."""
    try:
        report = ET.fromstring(data)  # noqa: S314 - pytest's
    except ET.ParseError:
        return None
    failed = next((one for kind in ("failure", "error") for one in report.iter(kind)), None)
    if failed is None:
        return None
    type_, sign, message = failed.get("message", "").partition(": ")
    return _error(type_, message) if sign else _error("failure", type_)
