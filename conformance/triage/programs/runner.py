"""The runner of a script, a test or a command in the environment of a cell."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final

from packaging.requirements import Requirement

from conformance.cells.environment_locks import hold_environment
from conformance.cells.overlay import find_overlay, read_installed_versions
from conformance.cells.provision import get_environment_folder, provision
from conformance.cells.secret_masking import Masker
from conformance.cells.uvtool import NoSolutionError
from conformance.engine.input_files import (
    INSTRUMENTATION,
    READ_FILES,
    collect_inputs,
    encode_inputs,
)
from conformance.engine.plan import find_missing_dependency
from conformance.engine.workers.environment import make_option_variables, make_worker_environment
from conformance.errors import ConformanceError
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.scratch import temporary_folder
from conformance.search.predicates import OUTPUT, STDOUT
from conformance.search.prober import make_unrun_record
from conformance.triage.programs import process
from conformance.triage.programs.needed_devices import count_needed_devices
from conformance.triage.programs.outcomes import (
    classify_outcome,
    find_usage,
    list_given_flags,
    make_devices_error,
    make_error_info,
    read_note,
)
from conformance.triage.programs.program import ProgramKind
from conformance.triage.programs.requirements import collect_requirements
from conformance.triage.programs.run_output import (
    UnreadableDumpError,
    compute_dump_delay,
    find_metric,
    locate_hang,
    make_dump_flags,
    normalize_output,
    read_dump_facts,
    read_times,
)
from conformance.worker import script
from conformance.worker.instrumentation.sitecustomize import HANG, INPUTS, TIMES

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.cells.lock import Lock
    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import PlannedCell
    from conformance.triage.programs.process import CompletedProgram
    from conformance.triage.programs.program import ProgramTarget

RUNNER: Final = Path(script.__file__)
METRIC: Final = "metric"
"""Fact of a record: the number that was found in the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRunner:
    """A runner of one program in cells.

    Attributes:
        target: The program.
        locks: Lock of each cell, by cell id.
        cache: Cache folder with the environments.
        outer: Environment variables of the caller.
        blobs: Store of artifacts.
        timeout: Timeout of the program in seconds.
        wanted: Requirements in addition to the packages of the cells.
        preferred: Requirements that apply if they can be installed with the others.
        facts: Whether XLA dumps the compiled programs, so that their facts are known.
        timed: Whether to measure the program without imports, and its regions.
        metric: Pattern of a number in the output.
        slots: Maximum number of simultaneous processes.
        stopped: Event that ends the program.
    """

    target: ProgramTarget
    locks: Mapping[str, Lock]
    cache: Path
    outer: Mapping[str, str]
    blobs: BlobStore
    timeout: float
    wanted: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    facts: bool = False
    timed: bool = False
    metric: re.Pattern[str] | None = None
    slots: int = 1
    stopped: Event = field(default_factory=Event)

    @property
    def hash(self) -> str:
        """Hash of everything that decides the outcome, except cell and input files."""
        wanted = (*self.wanted, *self.preferred)
        return self.target.hash(timeout=self.timeout, wanted=wanted)

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:  # noqa: ARG002 - no result is cached
        """Run the program in each cell; see `conformance.search.prober.Prober`."""
        with ThreadPoolExecutor(self.slots) as pool:
            try:
                yield from pool.map(self.run, cells)
            except BaseException:
                self.stopped.set()
                raise

    def run(
        self,
        planned: PlannedCell,
        *,
        flags: tuple[str, ...] = (),
        variables: Mapping[str, str] | None = None,
    ) -> Record:
        """Run the program until it ends or is ended.

        Args:
            planned: The cell.
            flags: XLA flags, placed after those of the cell.
            variables: Additional environment variables.

        Returns:
            The record of the program.
        """
        name, code = self.target.name, self.hash
        if planned.failure or planned.missing:
            outcome = Outcome.INFRA if planned.failure else Outcome.UNSUPPORTED
            return make_unrun_record(
                name, code, planned, planned.failure or planned.missing, outcome
            )
        try:
            with temporary_folder("running") as folder:
                note, dump, read = folder / "note", folder / "dump", folder / "read"
                times, hang = folder / "times", folder / "hang"
                if self.facts:
                    flags = (*flags, *make_dump_flags(dump))
                more = {
                    INPUTS: str(read), HANG: f"{compute_dump_delay(self.timeout)}:{hang}",
                    **({TIMES: str(times)} if self.timed else {}), **(variables or {}),
                }  # fmt: skip
                ended, versions = self._run_process(planned, note, flags, more)
                # Before anything is stored: a program may print secrets of its environment.
                masker = Masker(self.outer)
                ended = replace(
                    ended,
                    stdout=masker.mask_content(ended.stdout),
                    stderr=masker.mask_content(ended.stderr),
                )
                inputs = encode_inputs(collect_inputs(read, self.target.roots))
                noted = read_note(note, self.target.kind, masker)
                facts = read_dump_facts(dump) if self.facts else {}
                seconds = {"job": ended.seconds, **read_times(times)}
                where = locate_hang(hang, self.target.roots)
        except NoSolutionError as error:
            return make_unrun_record(name, code, planned, str(error))
        except (UnreadableDumpError, ConformanceError) as error:
            return make_unrun_record(name, code, planned, str(error), Outcome.INFRA)
        given = list_given_flags(planned, flags)
        outcome, failure = classify_outcome(ended, noted, self.timeout, given)
        if failure is not None and outcome is Outcome.TIMED_OUT:
            failure = replace(failure, where=where)
        if self.metric is not None:
            facts = {**facts, METRIC: find_metric(ended.stdout, self.metric)}
        if unmet := self._find_unmet_need(planned, failure, ended):
            outcome, failure = Outcome.UNSUPPORTED, unmet
        texts = {STDOUT: ended.stdout, "stderr": ended.stderr}
        texts[OUTPUT] = self._normalize(texts[STDOUT], planned, versions)
        texts[READ_FILES] = masker.mask_content(inputs)
        return Record(
            case=name,
            cell=planned.cell.id,
            case_hash=code,
            cell_hash=planned.cell_hash,
            outcome=outcome,
            stage=Stage.EXECUTE,
            error=failure,
            artifacts={name: self.blobs.put(text) for name, text in texts.items()},
            facts=facts,
            seconds={name: round(value, 6) for name, value in seconds.items()},
            max_rss_bytes=ended.max_rss_bytes,
        )

    def _find_unmet_need(
        self, planned: PlannedCell, failure: ErrorInfo | None, ended: CompletedProgram
    ) -> ErrorInfo | None:
        """Return what the program lacks, None if nothing: a release is not to blame for it."""
        if failure is not None and (why := self._find_missing_package(failure, planned)):
            return make_error_info("missing package", why)
        if self.target.kind is ProgramKind.SCRIPT and (usage := find_usage(ended)):
            why = f"{usage}; give it as a command line: 'python {self.target.text} ...'"
            return make_error_info("arguments needed", why)
        if planned.cell.devices == 1 and (
            count := count_needed_devices(failure, self.target.source)
        ):
            return make_devices_error(count)
        return None

    def _run_process(
        self,
        planned: PlannedCell,
        note: Path,
        flags: tuple[str, ...],
        more: Mapping[str, str],
    ) -> tuple[CompletedProgram, Mapping[str, str]]:
        """Run the program in a cell's environment; return its result, and package versions."""
        cell = planned.cell
        lock = self.locks[cell.id]
        variables = make_worker_environment(
            self.outer, cell.place.environment,
            keep_python_path=cell.interpreter is not None, passed=planned.passed,
        )  # fmt: skip
        # Garbage collection must not remove the environment while the program runs in it.
        with hold_environment(get_environment_folder(cell, lock, self.cache)):
            python = provision(cell, lock=lock, cache=self.cache).python
            # A command finds the interpreter of the cell first.
            variables["PATH"] = f"{python.parent}:{self.outer.get('PATH', '')}"
            variables |= make_option_variables(planned)
            # XLA takes the last of equal flags: those of the pasted report apply.
            flags = (*flags, *self.target.variables.get("XLA_FLAGS", "").split())
            variables |= {k: v for k, v in self.target.variables.items() if k != "XLA_FLAGS"}
            variables |= more
            if flags:
                own = filter(None, [variables.get("XLA_FLAGS"), *flags])
                variables["XLA_FLAGS"] = " ".join(own)
                variables[script.FLAGS] = " ".join(flags)
            overlay = self._find_overlay(python, lock)
            # First on the path, so that Python imports this sitecustomize and no other.
            folders = (planned.sources, str(overlay or ""), variables.get("PYTHONPATH", ""))
            path = filter(None, (str(INSTRUMENTATION), *folders))
            variables["PYTHONPATH"] = os.pathsep.join(path)
            ended = process.run(
                self.target.make_command(python, RUNNER, note),
                environment=variables, timeout=self.timeout, stopped=self.stopped.is_set,
            )  # fmt: skip
        return ended, _merge_versions(planned, overlay)

    def get_versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages of the program in a cell.

        Args:
            planned: The cell in which the program was run.
        """
        with suppress(ConformanceError):
            lock = self.locks[planned.cell.id]
            python = provision(planned.cell, lock=lock, cache=self.cache).python
            overlay = self._find_overlay(python, lock)
            return _merge_versions(planned, overlay)
        return planned.versions

    def _find_overlay(self, python: Path, lock: Lock) -> Path | None:
        """Return the folder of the requirements in addition to a cell's packages.

        Preferred requirements are left out if they cannot be installed.
        """
        wanted = collect_requirements(self.target.source, self._requirements, lock.pins)
        exact = {Requirement(text).name for text in wanted if "==" in text or " @ " in text}
        more = [text for text in self.preferred if Requirement(text).name not in exact]
        if more:
            with suppress(NoSolutionError):
                return find_overlay(python, lock, (*wanted, *more), self.cache)
        return find_overlay(python, lock, wanted, self.cache)

    def _normalize(self, stdout: bytes, planned: PlannedCell, versions: Mapping[str, str]) -> bytes:
        """Return an output without versions, paths and other facts of a cell's environment."""
        # Paths of the environment name its release, and would make every output differ.
        environment = get_environment_folder(planned.cell, self.locks[planned.cell.id], self.cache)
        text = stdout.decode("utf-8", "surrogateescape")
        for folder in filter(None, (str(environment), planned.sources)):
            text = text.replace(folder, "<environment>")
        normal = normalize_output(text, versions)
        return normal.encode("utf-8", "surrogateescape")

    def _find_missing_package(self, error: ErrorInfo, planned: PlannedCell) -> str:
        """Return a message about a package that the cell lacks, empty if no package is missing."""
        file = next(iter(self.target.files), Path())
        return find_missing_dependency(error, planned.versions, file, f"the {self.target.kind}")

    @property
    def _requirements(self) -> tuple[str, ...]:
        """The requirements in addition to a cell's packages; a test also needs pytest."""
        return (*self.wanted, *(["pytest"] if self.target.kind is ProgramKind.TEST else []))


def _merge_versions(planned: PlannedCell, overlay: Path | None) -> Mapping[str, str]:
    """Return the versions of the packages of a cell and of an overlay."""
    return {**planned.versions, **(read_installed_versions(overlay) if overlay else {})}
