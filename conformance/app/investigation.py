"""The investigation of a root cause: a good release, the change, the culprits, a reproduction."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from shlex import quote
from typing import TYPE_CHECKING

import msgspec

from conformance.app.context import count_usable_cores
from conformance.app.layers.find import find_layer_of_change
from conformance.app.search.axes import find_release, make_axis_to, replace_release
from conformance.app.search.bisect import LOGS, find_change
from conformance.app.search.blame import blame_case
from conformance.app.search.commits import find_commit
from conformance.app.search.options import SearchOptions
from conformance.app.session import Session
from conformance.cells.interpreter_inspection import find_edited_files
from conformance.cells.nightly import make_stable_cell_ids
from conformance.cells.releases import is_nightly
from conformance.engine.job import Job
from conformance.engine.record_judge import name_golden_variant
from conformance.engine.runs.digests import DigestStore
from conformance.engine.runs.directory import RunDirectory
from conformance.engine.runs.loader import find_runs, load_run
from conformance.engine.runs.stored_job import StoredJob
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.files import write_atomically
from conformance.golden.document import GoldenError
from conformance.golden.store import GoldenStore
from conformance.judge.ir import FACT
from conformance.model.outcome import Conformance, Outcome
from conformance.model.run_files import REPRODUCTIONS, Culprit, Evidence
from conformance.search.axes import find_package_moves
from conformance.search.endpoints import PredicateOptions
from conformance.search.equivalence import format_ending, is_same_failure
from conformance.search.prober import CaseProber
from conformance.triage.blame.render import list_doubts
from conformance.triage.commits.render import list_culprit_commits, render_environment
from conformance.triage.evidence import add_recorded_claims, find_last_right, list_candidates
from conformance.triage.layers.render import describe_layer
from conformance.triage.repro.embedded_modules import load_source
from conformance.triage.repro.observed_jobs import judge_job
from conformance.triage.repro.writer import write_reproduction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.app.search.bisect import BisectResult
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell
    from conformance.engine.job_runner import JobRunner
    from conformance.engine.runs.digests import Digest
    from conformance.engine.runs.loader import LoadedRun
    from conformance.model.case import Case
    from conformance.model.golden import GoldenEntry
    from conformance.model.record import Record
    from conformance.search.axes import PackageMove
    from conformance.triage.blame.blame import BlameAnswer
    from conformance.triage.commits.render import PackageCulprit


@dataclass
class Services:
    """The cells, searches and files with which root causes of a run are investigated.

    Attributes:
        context: The project.
        directory: The run.
        wanted: Requirements of its cells in addition to their own packages.
        fresh: Whether the logs of earlier searches are ignored.
        say: Receives a line for each step.
        jax_location: Repository of jax in which commits are searched for, empty for no search.
        layers: Whether the layer is searched for.
    """

    context: ProjectContext
    directory: RunDirectory
    wanted: tuple[str, ...]
    fresh: bool
    say: Callable[[str], None]
    jax_location: str = ""
    layers: bool = False
    _locks: dict[str, Lock] = field(default_factory=dict)

    def find_good_releases(self, case: Case, cell: Cell) -> Iterator[str]:
        """Yield releases and nightlies at which a case may conform, the likeliest first."""
        release = find_release(cell)
        last_right = ""
        # Between the last release and a nightly there are many nightlies: the last one that was
        # right in an earlier run shortens the search.
        if is_nightly(release):
            last_right = find_last_right(
                self._digests, case.id, make_stable_cell_ids([cell.id])[cell.id]
            )
        known = self.context.releases.versions
        yield from list_candidates(
            release, known, same=cell.interpreter is not None, seen=last_right
        )

    def try_release(self, case: Case, cell: Cell, release: str) -> Record:
        """Return the judged record of a case in a cell with another release."""
        # Only the release changes: another platform or option could hide the failure.
        planned = self._plan_cell(replace_release(cell, release, self.context))
        (record,) = CaseProber(case=case, runner=self._runner).probe([planned])
        self.say(f"{release}: {record.verdict}")
        return record

    def bisect(
        self, case: Case, cell: Cell, good: str, predicate: PredicateOptions
    ) -> BisectResult:
        """Search for the change of a case, from a release to a cell."""
        axis = make_axis_to(self.context, good, cell)
        options = self._make_options(cell, good, predicate)
        return find_change(self.context, case, options, self.say, axis=axis)

    def find_commit(
        self, case: Case, cell: Cell, found: BisectResult, predicate: PredicateOptions
    ) -> PackageCulprit:
        """Search for the commit of jax behind the change that a bisection has found."""
        options = self._make_options(cell, found.answer.labels[0], predicate)
        return find_commit(
            self.context, case, options, found, location=self.jax_location, say=self.say
        )

    def find_layer(
        self, case: Case, cell: Cell, found: BisectResult, predicate: PredicateOptions
    ) -> str:
        """Return the layer behind the change that a bisection has found."""
        options = self._make_options(cell, found.answer.labels[0], predicate)
        return describe_layer(find_layer_of_change(self.context, case, options, found))

    def _make_options(self, cell: Cell, good: str, predicate: PredicateOptions) -> SearchOptions:
        # The cell is the platform of the options, so that searches in two cells have two logs.
        return SearchOptions(
            good=good, bad=cell.release, platform=cell.id, when=predicate.when or None,
            wanted=self.wanted, fresh=self.fresh,
        )  # fmt: skip

    def blame(
        self, case: Case, before: Cell, after: Cell, predicate: PredicateOptions
    ) -> BlameAnswer:
        """Search for the packages that make a difference between two cells."""
        return blame_case(
            self.context, case, (before, after), predicate, runner=self._runner, locks=self._locks,
            prepare=partial(self._session.prepare, wanted=self.wanted), wanted=self.wanted,
        )  # fmt: skip

    def reproduce(self, cause: str, record: Record, case: Case, cell: Cell) -> tuple[str, str]:
        """Write a file that shows a job; return its path in the run directory, and its command.

        Raises:
            UsageError: If the case or the cell changed since the run, or a file of one process
                cannot show the failure.
        """
        planned = self._plan_cell(cell)
        label = f"{case.id} on {cell.id}"
        # The file is written from the present source, but asserts the recorded observation.
        if (record.case_hash, record.cell_hash) != (case.content_hash, planned.cell_hash):
            raise UsageError(f"{label} has changed since the run")
        if cell.place.processes > 1:
            raise UsageError(f"{label} takes {cell.place.processes} processes, a file is one")
        case = add_recorded_claims(case, record, self._find_golden(Job(case=case, planned=planned)))
        seen_job = judge_job(Job(case=case, planned=planned), StoredJob(record, self._run.blobs))
        # A file has no goldens: it can only assert a value against the reference of the case.
        if seen_job.seen.conformance is Conformance.CONFORMS:
            raise UsageError(f"{label} conforms, and what else is not as recorded no file asserts")
        path = f"{REPRODUCTIONS}/{cause}.py"
        wanted = self._session.build_requirements(self.wanted)
        source, own = load_source(case, wanted, lambda file: file.read_text(encoding="utf-8"))
        written = write_reproduction(seen_job.job, source, seen_job.seen, f"{cause}.py", own)
        write_atomically(self.directory.path / path, written.text.encode())
        # An environment of the user is not pinned by a header that uv could read.
        if cell.interpreter is None:
            return path, f"uv run {path}"
        return path, f"{quote(str(cell.interpreter))} {path}"

    def _find_golden(self, job: Job) -> GoldenEntry | None:
        try:
            store = GoldenStore(job.case.families)
            return store.lookup(job.case, name_golden_variant(job), job.planned.release)
        except GoldenError:
            # The golden only adds claims to the file; the run reports a broken one itself.
            return None

    def _plan_cell(self, cell: Cell) -> PlannedCell:
        planned, locks = self._session.prepare_cell(cell, self.wanted)
        # The runner holds this dictionary, and finds the locks of cells that are planned later.
        self._locks.update(locks)
        return planned

    @cached_property
    def _session(self) -> Session:
        return Session(context=self.context)

    @cached_property
    def _run(self) -> LoadedRun:
        return load_run(self.directory)

    @cached_property
    def _runner(self) -> JobRunner:
        blobs = RunDirectory(self.context.project.root / LOGS / "tried").blobs
        return self._session.make_job_runner(self._session.make_executor(self._locks), blobs)

    @cached_property
    def _digests(self) -> Sequence[Digest]:
        """Digests of the other runs, the newest first, without those that cannot be read."""
        own = self.directory.path
        # The run may have been copied from a runner: then its neighbours are other nights.
        folders = {own.absolute().parent, self.context.project.root / "reports" / "runs"}
        runs = {
            run.path: run
            for folder in folders
            # `find_runs` raises for a folder without runs, which is no error here.
            for run in (find_runs(folder) if any(folder.glob("*/run.json")) else ())
            if run.path.absolute() != own.absolute()
        }
        store = DigestStore(self.context.cache / "digests", count_usable_cores())
        found, _ = store.get_all(list(runs.values()))
        # By start, not by name: the folders hold runs that were renamed or copied.
        return sorted(found.values(), key=lambda digest: (digest.started, digest.run), reverse=True)


@dataclass(slots=True)
class Investigation:
    """The investigation of one root cause: a good release, the change, the culprits, a file.

    Attributes:
        services: The cells, searches and files of the project.
        cause: Id of the cause.
        record: The job that represents the cause.
        case: Case of that job.
        cell: Cell of that job.
        blame: Whether to search for the package, which may create environments.
    """

    services: Services
    cause: str
    record: Record
    case: Case
    cell: Cell
    blame: bool = True
    _notes: list[str] = field(default_factory=list)
    _unfinished: bool = False
    _is_in_jaxlib: bool = False

    def collect(self) -> Evidence:
        """Return the evidence; an error that prevents a part of it becomes a note."""
        evidence = Evidence(cause=self.cause, case=self.case.id, cell=self.cell.id)
        evidence = self._try_step(evidence, self._reproduce, "no reproduction")
        evidence = self._try_step(evidence, self._search, "no first bad release")
        return _replace(evidence, unresolved=tuple(self._notes), unfinished=self._unfinished)

    def _try_step(
        self, evidence: Evidence, step: Callable[[Evidence], Evidence], without: str
    ) -> Evidence:
        try:
            return step(evidence)
        except ConformanceError as error:
            # Infrastructure may answer tomorrow: the next triage investigates this cause again.
            self._unfinished |= isinstance(error, InfrastructureError)
            self._notes.append(f"{without}: {error}")
            return evidence

    def _reproduce(self, evidence: Evidence) -> Evidence:
        file, command = self.services.reproduce(self.cause, self.record, self.case, self.cell)
        return _replace(evidence, repro=file, command=command)

    def _search(self, evidence: Evidence) -> Evidence:
        good = self._find_good()
        if good is None:
            return evidence
        release, record = good
        predicate = self._choose_predicate(record)
        found = self.services.bisect(self.case, self.cell, release, predicate)
        answer = found.answer
        labels = answer.labels
        # An unconfirmed answer is kept with a note: it still narrows down the change.
        if not answer.is_confirmed:
            names = ", ".join(labels[point] for point in answer.flaky)
            self._notes.append(f"{names} did not show the same twice")
        evidence = _replace(
            evidence, good=release, last_good=labels[answer.last_good],
            first_bad=labels[answer.first_bad], predicate=answer.predicate.about,
            confirmed=answer.is_confirmed,
        )  # fmt: skip
        between = (answer.points[answer.last_good], answer.points[answer.first_bad])
        evidence = self._try_step(
            evidence,
            lambda known: _replace(known, culprits=self._find_culprits(*between, predicate)),
            "no culprit",
        )
        if self.services.jax_location:
            evidence = self._try_step(
                evidence, lambda known: self._add_commit(known, found, predicate), "no commit"
            )
        if self.services.layers or self._is_in_jaxlib:
            ask = partial(self.services.find_layer, self.case, self.cell, found, predicate)
            evidence = self._try_step(evidence, lambda e: _replace(e, layer=ask()), "no layer")
        return evidence

    def _add_commit(
        self, evidence: Evidence, found: BisectResult, predicate: PredicateOptions
    ) -> Evidence:
        """Return the evidence with the commit of jax, or the changes of jaxlib."""
        culprit = self.services.find_commit(self.case, self.cell, found, predicate)
        self._is_in_jaxlib = culprit.is_in_jaxlib
        self._notes += culprit.finding.remarks
        return _replace(
            evidence, commits=list_culprit_commits(culprit),
            remarks=tuple(render_environment(culprit)),
        )  # fmt: skip

    def _find_good(self) -> tuple[str, Record] | None:
        """Return the first candidate release at which the case is as expected, with its record."""
        tried = []
        lost = False
        for release in self.services.find_good_releases(self.case, self.cell):
            record = self.services.try_release(self.case, self.cell, release)
            if record.outcome.observed and not record.unexpected:
                return release, record
            # A release that could not be installed may have been the good one.
            lost |= record.outcome is Outcome.INFRA
            tried.append(f"{release} ({_describe_failure(record)})")
        self._unfinished |= lost
        self._notes.append(
            f"nothing is known where it is right; tried {', '.join(tried)}"
            if tried
            else "there is no older release at which it may be right"
        )
        return None

    def _choose_predicate(self, good: Record) -> PredicateOptions:
        """Return the options that name the predicate; none for any that separates the ends."""
        records = (good, self.record)
        failed = [record.outcome is not Outcome.OK for record in records]
        # Both fail in different ways: only the kind of ending separates them, not a value.
        if all(failed) and not is_same_failure(*map(format_ending, records)):
            return PredicateOptions("ending")
        first = next(iter(self.record.reasons), "")
        # The search must look for the change that triage reports first, not for any other
        # difference.
        return PredicateOptions("facts" if first.startswith(FACT) and not any(failed) else "")

    def _find_culprits(
        self, before: PlannedCell, after: PlannedCell, predicate: PredicateOptions
    ) -> tuple[Culprit, ...]:
        """Return the packages that make the difference between two adjacent points."""
        differ = find_package_moves(before.versions, after.versions)
        if not differ:
            # The same versions behave differently: someone edited the installed files.
            return self._find_edited_packages(after)
        # One difference needs no search, which saves creating environments.
        if len(differ) == 1:
            return _make_culprits(differ)
        if not self.blame:
            self._notes.append(f"{len(differ)} packages differ, and were not separated")
            return ()
        blamed = self.services.blame(self.case, before.cell, after.cell, predicate)
        self._notes += list_doubts(blamed)
        if not blamed.is_confirmed:
            return ()
        return _make_culprits(blamed.culprits)

    def _find_edited_packages(self, after: PlannedCell) -> tuple[Culprit, ...]:
        """Return the packages of an environment whose installed files were modified."""
        python = after.cell.interpreter
        edited = {} if python is None else find_edited_files(python)
        if not edited:
            self._notes.append(
                "the packages of both have the same versions and the files that were installed; "
                "what else there is was not looked at"
            )
        versions = after.versions
        return tuple(
            Culprit(package=n, before=versions.get(n, ""), after=versions.get(n, ""), files=files)
            for n, files in edited.items()
        )


def _make_culprits(moves: Iterable[PackageMove]) -> tuple[Culprit, ...]:
    return tuple(Culprit(**move._asdict()) for move in moves)


def _replace(evidence: Evidence, **more: object) -> Evidence:
    """Return evidence with some fields replaced."""
    return msgspec.structs.replace(evidence, **more)


def _describe_failure(record: Record) -> str:
    """Return the reason of an unexpected job, in a few words."""
    reason = record.reasons[0] if record.reasons else ""
    if not reason and record.error is not None:
        reason = record.error.message
    first = reason.strip().partition("\n")[0]
    return first[:160] or str(record.outcome)
