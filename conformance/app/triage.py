"""What root causes are looked into with: cells and cases of a context, and the files of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from shlex import quote
from typing import TYPE_CHECKING

from conformance.app.axes import axis_to, cell_with, release_of
from conformance.app.bisect import LOGS, Asked, Subject, searched_on
from conformance.app.context import default_jobs
from conformance.app.session import Session
from conformance.cells.installed_files import edited_files
from conformance.cells.places import places_of
from conformance.cells.releases import is_nightly
from conformance.engine.comparing import Side
from conformance.engine.digest_store import DigestStore
from conformance.engine.job import Job
from conformance.engine.judging import variant
from conformance.engine.loading import load, runs_in
from conformance.engine.rundir import RunDirectory
from conformance.errors import UsageError
from conformance.files import write_atomically
from conformance.golden.errors import GoldenError
from conformance.golden.store import GoldenStore
from conformance.model.evidence import REPRODUCTIONS
from conformance.model.outcome import Conformance
from conformance.triage.bisect.prober import CaseProber
from conformance.triage.blame.cases import blame_case
from conformance.triage.evidence.claims import with_recorded
from conformance.triage.evidence.goods import candidates, seen_right
from conformance.triage.repro.carried import load_source
from conformance.triage.repro.run import seen_job
from conformance.triage.repro.writing import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.digests import Digest
    from conformance.engine.job import PlannedCell
    from conformance.engine.loading import LoadedRun
    from conformance.engine.trying import Trier
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
            seen = seen_right(self._digests, case.id, places_of([cell.id])[cell.id])
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
        asked = Asked(
            good=good, bad=cell.release, platform=cell.id, when=when or None, wanted=self.wanted,
            fresh=self.fresh,
        )  # fmt: skip
        return searched_on(self.context, Subject(case=case), asked, axis, self.say).answer

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
        one = seen_job(Job(case=case, planned=planned), Side(record, self._run.blobs))
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
            return store.lookup(job.case, variant(job), job.planned.release)
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
        return load(self.directory)

    @cached_property
    def _trier(self) -> Trier:
        blobs = RunDirectory(self.context.project.root / LOGS / "tried").blobs
        return self._session.trier(self._session.executor(self._locks), blobs)

    @cached_property
    def _digests(self) -> Sequence[Digest]:
        """What stands beside the run, the newest first; what cannot be read says nothing."""
        own = self.directory.path
        folders = {own.absolute().parent, self.context.project.root / "reports" / "runs"}
        runs = {
            run.path: run
            for folder in folders
            for run in (runs_in(folder) if any(folder.glob("*/run.json")) else ())
            if run.path.absolute() != own.absolute()
        }
        store = DigestStore(self.context.cache / "digests", default_jobs())
        found, _ = store.get_all(list(runs.values()))
        return sorted(found.values(), key=lambda one: (one.started, one.run), reverse=True)
