"""The triage of a run: each root cause is investigated with the cells and files of a project."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.app.axes import axis_to, cell_with, release_of
from conformance.app.bisect import LOGS, BisectOptions, find_change
from conformance.app.context import default_jobs
from conformance.app.notes import print_note
from conformance.app.run_request import request_of
from conformance.app.session import Session
from conformance.cells.cell_id import is_cell_id, stable_cell_ids
from conformance.cells.installed_files import edited_files
from conformance.cells.releases import is_nightly
from conformance.engine.digests import DigestStore
from conformance.engine.evidence_file import add_evidence, forget_evidence, read_evidence
from conformance.engine.job import Job
from conformance.engine.job_comparison import StoredJob
from conformance.engine.record_judge import golden_variant
from conformance.engine.root_causes import root_causes
from conformance.engine.run_directory import RunDirectory
from conformance.engine.run_loader import find_runs, load_run
from conformance.errors import ConformanceError, UsageError
from conformance.files import write_atomically
from conformance.golden.errors import GoldenError
from conformance.golden.store import GoldenStore
from conformance.model.evidence import REPRODUCTIONS, Evidence
from conformance.model.outcome import Conformance, ExitCode
from conformance.triage.bisect.prober import CaseProber
from conformance.triage.blame.cases import blame_case
from conformance.triage.evidence.choice import stands_for, why_not
from conformance.triage.evidence.claims import with_recorded
from conformance.triage.evidence.finding import Finding
from conformance.triage.evidence.goods import candidates, seen_right
from conformance.triage.evidence.telling import evidence_lines
from conformance.triage.repro.carried import load_source
from conformance.triage.repro.run import seen_job
from conformance.triage.repro.writing import write
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.app.run_request import RunRequest
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.digests import Digest
    from conformance.engine.job import PlannedCell
    from conformance.engine.job_runner import JobRunner
    from conformance.engine.root_causes import RootCause
    from conformance.engine.run_loader import LoadedRun
    from conformance.model.case import Case
    from conformance.model.golden import GoldenEntry
    from conformance.model.record import Record
    from conformance.triage.bisect.answer import Answer
    from conformance.triage.blame.blamed import Blamed


@dataclass
class Means:
    """What it is found out with; see `conformance.triage.evidence.finding.Means`.

    Attributes:
        context: The project.
        directory: The run's.
        wanted: Requirements that its cells had beside their own packages.
        fresh: Whether logs of earlier searches are forgotten.
        say: Is told of each step, in a line.
    """

    context: ProjectContext
    directory: RunDirectory
    wanted: tuple[str, ...]
    fresh: bool
    say: Callable[[str], None]
    _locks: dict[str, Lock] = field(default_factory=dict)

    def goods(self, case: Case, cell: Cell) -> Iterator[str]:
        """Yield releases and nights at which a case may have been right, the likeliest first."""
        release = release_of(cell)
        seen = ""
        if is_nightly(release):
            seen = seen_right(self._digests, case.id, stable_cell_ids([cell.id])[cell.id])
        known = self.context.releases.versions
        yield from candidates(release, known, same=cell.interpreter is not None, seen=seen)

    def tried(self, case: Case, cell: Cell, release: str) -> Record:
        """Return what comes of a case in a cell with another release, judged."""
        planned = self._planned(cell_with(cell, release, self.context))
        (record,) = CaseProber(case=case, trier=self._trier).probe([planned])
        self.say(f"{release}: {record.verdict}")
        return record

    def searched(self, case: Case, cell: Cell, good: str, when: str) -> Answer:
        """Search for what changed a case, from a release to a cell."""
        axis = axis_to(self.context, good, cell)
        # Where it is searched is part of what the log of a search is called by.
        asked = BisectOptions(
            good=good, bad=cell.release, platform=cell.id, when=when or None, wanted=self.wanted,
            fresh=self.fresh,
        )  # fmt: skip
        return find_change(self.context, case, asked, self.say, axis=axis).answer

    def blamed(self, case: Case, before: Cell, after: Cell, when: str) -> Blamed:
        """Search for the packages that make a difference."""
        return blame_case(
            case, (before, after), releases=self.context.releases,
            prepare=partial(self._session.prepare, wanted=self.wanted), trier=self._trier,
            locks=self._locks, cache=self.context.cache, wanted=self.wanted, when=when,
        )  # fmt: skip

    def edited(self, python: Path) -> Mapping[str, tuple[str, ...]]:
        """Return the files of an environment that are not as installed, by package."""
        return edited_files(python)

    def reproduced(self, cause: str, record: Record, case: Case, cell: Cell) -> tuple[str, str]:
        """Write a file that shows a job; return its path in the run directory, and its command.

        Raises:
            UsageError: If the case or the cell is not what it was, or a file of one process cannot
                show it.
        """
        planned = self._planned(cell)
        told = f"{case.id} on {cell.id}"
        if (record.case_hash, record.cell_hash) != (case.content_hash, planned.cell_hash):
            raise UsageError(f"{told} has changed since the run")
        if cell.place.processes > 1:
            raise UsageError(f"{told} takes {cell.place.processes} processes, a file is one")
        case = with_recorded(case, record, self._golden(Job(case=case, planned=planned)))
        one = seen_job(Job(case=case, planned=planned), StoredJob(record, self._run.blobs))
        if one.seen.conformance is Conformance.CONFORMS:
            raise UsageError(f"{told} conforms, and what else is not as recorded no file asserts")
        path = f"{REPRODUCTIONS}/{cause}.py"
        wanted = self._session.requirements(self.wanted)
        source, own = load_source(case, wanted, lambda file: file.read_text(encoding="utf-8"))
        written = write(one.job, source, one.seen, f"{cause}.py", own)
        write_atomically(self.directory.path / path, written.text.encode())
        if cell.interpreter is None:
            return path, f"uv run {path}"
        return path, f"{quote(str(cell.interpreter))} {path}"

    def _golden(self, job: Job) -> GoldenEntry | None:
        try:
            store = GoldenStore(job.case.families)
            return store.lookup(job.case, golden_variant(job), job.planned.release)
        except GoldenError:
            return None

    def _planned(self, cell: Cell) -> PlannedCell:
        found = self._session.prepare([cell], self.wanted)
        self._locks.update(found.locks)
        for left_out in found.exclusions:
            raise UsageError(f"{cell.id}: {left_out.reason}")
        return found.cells[0]

    @cached_property
    def _session(self) -> Session:
        return Session(context=self.context)

    @cached_property
    def _run(self) -> LoadedRun:
        return load_run(self.directory)

    @cached_property
    def _trier(self) -> JobRunner:
        blobs = RunDirectory(self.context.project.root / LOGS / "tried").blobs
        return self._session.job_runner(self._session.executor(self._locks), blobs)

    @cached_property
    def _digests(self) -> Sequence[Digest]:
        """What stands beside the run, the newest first; what cannot be read says nothing."""
        own = self.directory.path
        folders = {own.absolute().parent, self.context.project.root / "reports" / "runs"}
        runs = {
            run.path: run
            for folder in folders
            for run in (find_runs(folder) if any(folder.glob("*/run.json")) else ())
            if run.path.absolute() != own.absolute()
        }
        store = DigestStore(self.context.cache / "digests", default_jobs())
        found, _ = store.get_all(list(runs.values()))
        return sorted(found.values(), key=lambda one: (one.started, one.run), reverse=True)


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A root cause that was not looked into.

    Attributes:
        cause: Its id.
        said: Its reason.
        why: Why it was not looked into.
    """

    cause: str
    said: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageOptions:
    """The options of `conformance triage`.

    Attributes:
        limit: Root causes to look into, None for all.
        minutes: Minutes after which no other root cause is begun, None for no such limit.
        blame: Whether packages are searched for.
        fresh: Whether earlier evidence is forgotten.
    """

    limit: int | None
    minutes: float | None
    blame: bool
    fresh: bool


@dataclass(slots=True, kw_only=True)
class Triage:
    """The triage of one run.

    Attributes:
        context: The project.
        directory: The run.
        options: Which root causes are looked into, and how.
        say: Receives a line for each step.
        found: Evidence, in the order of the root causes.
        left_out: Root causes that were not looked into.
        jobs: Number of jobs of each root cause, by its id.
    """

    context: ProjectContext
    directory: RunDirectory
    options: TriageOptions
    say: Callable[[str], None]
    found: list[Evidence] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    jobs: dict[str, int] = field(default_factory=dict)
    _start: float = field(default_factory=time.monotonic)

    @property
    def exit_code(self) -> ExitCode:
        """The exit status."""
        if any(one.unfinished for one in self.found):
            return ExitCode.INFRA
        done = all(one.confirmed for one in self.found)
        return ExitCode.OK if done else ExitCode.UNEXPECTED

    @property
    def data(self) -> dict[str, Any]:
        """The result as JSON has it."""
        return {
            "run": self.directory.id, "jobs": self.jobs, "evidence": self.found,
            "left_out": self.left_out,
        }  # fmt: skip

    def run(self) -> None:
        """Look into the root causes one by one, and write the evidence of each at once.

        Raises:
            CorruptRunError: If the run cannot be read.
            InfrastructureError: If the disk refuses.
        """
        causes = root_causes(load_run(self.directory).records)
        if not causes:
            self.say("nothing is unexpected")
            return
        self.jobs = {cause.id: len(cause.records) for cause in causes}
        if self.options.fresh:
            forget_evidence(self.directory)
        known = read_evidence(self.directory)
        of = {one.id: known[one.id] for one in causes if one.id in known}
        request = request_of(self.directory)
        cases = {case.id: case for case in self.context.cases(request.select)}
        cells = self._find_cells(causes, request)
        for number, cause in enumerate(causes, 1):
            first = cause.reason.strip().partition("\n")[0][:200]
            self.say(f"{number}. {cause.id}, {plural(len(cause.records), 'job')}: {first}")
            if cause.id in of and not of[cause.id].unfinished:
                self._take(of[cause.id])
                continue
            if why := why_not(cause) or self._limit_reached():
                self.left_out.append(LeftOut(cause=cause.id, said=cause.reason, why=why))
                self.say(f"  not looked into: {why}")
                continue
            of[cause.id] = self._look_into(cause, cells, cases, request)
            add_evidence(self.directory, of[cause.id], self.jobs, print_note)
            self._take(of[cause.id])

    def _find_cells(self, causes: Iterable[RootCause], request: RunRequest) -> Mapping[str, Cell]:
        """Return the cells of root causes, by id, without those that no longer exist."""
        wanted = dict.fromkeys(record.cell for cause in causes for record in cause.records)
        found = {}
        for name in filter(is_cell_id, wanted):
            try:
                found[name] = self.context.cell(name)
            except ConformanceError:
                continue
        if found.keys() != wanted.keys():  # an environment is known by its path alone
            for text in request.cell:
                try:
                    found |= {cell.id: cell for cell in self.context.cells(None, [text])[0]}
                except ConformanceError:
                    continue
        return found

    def _look_into(
        self, cause: RootCause, cells: Mapping[str, Cell], cases: Mapping[str, Case],
        request: RunRequest,
    ) -> Evidence:  # fmt: skip
        """Return the evidence on a root cause; an error becomes part of it, and ends no other."""
        first = cause.records[0]
        nothing = Evidence(cause=cause.id, case=first.case, cell=first.cell)
        means = Means(
            self.context, self.directory, request.wanted, self.options.fresh,
            lambda line: self.say(f"    {line}"),
        )  # fmt: skip
        try:
            record, case, cell = stands_for(cause, cells, cases)
            return Finding(means, cause.id, record, case, cell, self.options.blame).evidence()
        except ConformanceError as error:
            return msgspec.structs.replace(nothing, untold=(str(error),))
        except Exception as error:  # noqa: BLE001 - a fault of ours in one cause ends no other
            said = f"{type(error).__name__}: {error}; please report"
            return msgspec.structs.replace(nothing, untold=(said,), unfinished=True)

    def _limit_reached(self) -> str:
        """Return why no other root cause is begun, empty if the next one is."""
        minutes, limit = self.options.minutes, self.options.limit
        if minutes is not None and time.monotonic() >= self._start + 60 * minutes:
            return "no time is left; the same command goes on"
        if limit is not None and len(self.found) >= limit:
            return f"{limit} were looked into; the same command goes on with a higher --limit"
        return ""

    def _take(self, found: Evidence) -> None:
        self.found.append(found)
        for line in evidence_lines(found):
            self.say(f"  {line}")
