"""The search of `conformance passes` in one program: which pass, flag or option is the cause."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.app.session import Session
from conformance.app.target import get_name, get_tolerance
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.job import Job
from conformance.engine.plan import find_exclusion_reason
from conformance.errors import InfrastructureError, UsageError
from conformance.model.outcome import Outcome
from conformance.scratch import temporary_folder
from conformance.search.endpoints import PredicateOptions
from conformance.search.equivalence import format_ending, shorten
from conformance.search.predicates import Endpoints
from conformance.triage.passes.pass_bisection import PassBisection, SettingTrials
from conformance.triage.passes.predicates import make_cell_predicate, make_pair_predicate
from conformance.triage.passes.prober import PassProber, ProgramPasses
from conformance.triage.passes.settings import UNCHANGED
from conformance.triage.programs.program import ProgramTarget, find_program
from conformance.triage.programs.runner import ProgramRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from conformance.app.context import ProjectContext
    from conformance.app.search.options import SearchOptions
    from conformance.engine.job import PlannedCell
    from conformance.engine.runs.stored_job import StoredJob
    from conformance.engine.workers.preparation import Preparation
    from conformance.model.case import Case
    from conformance.search.answers import SearchStep
    from conformance.search.predicates import Predicate
    from conformance.triage.passes.pass_bisection import PassAnswer, SettingProber
    from conformance.triage.passes.settings import Setting

    Report = Callable[[SearchStep[Setting]], None]


@dataclass(frozen=True, kw_only=True)
class PassSearch:
    """A search whose cells are prepared.

    Attributes:
        session: Runs jobs in the project.
        preparation: The locks of the cells.
        cells: The bad cell, or the good and the bad one.
        subject: The program: a case, or a script, test or command line.
        options: The options.
    """

    session: Session
    preparation: Preparation
    cells: Sequence[PlannedCell]
    subject: Case | ProgramTarget
    options: SearchOptions

    @property
    def name(self) -> str:
        """The name of the program."""
        return get_name(self.subject)

    def run(self, report: Callable[[], AbstractContextManager[Report]]) -> PassAnswer:
        """Observe the program in the good cell, and search in the bad one.

        Args:
            report: Opens the progress display of the search; yields a function that is called
                with each trial.

        Raises:
            UsageError: If a cell cannot run the program, or nothing shows which pass to look for.
            InfrastructureError: If the program cannot be run now.
        """
        *others, bad_cell = self.cells
        good: StoredJob | None = None
        with temporary_folder("passes") as folder:
            blobs = BlobStore(folder)
            # The good cell is closed first: both cells may need the same accelerator.
            for good_cell in others:
                with self._open_trials(good_cell, blobs) as trials:
                    (good,) = trials.samples[UNCHANGED]
            with report() as progress, self._open_trials(bad_cell, blobs, progress) as trials:
                # The predicate needs the unchanged program of both cells, so it is made inside the
                # bad one.
                predicate = self._make_predicate(good, trials.samples[UNCHANGED][0])
                bisection = PassBisection(trials=trials, cell=bad_cell.cell, predicate=predicate)
                return bisection.run(settings=self.options.settings)

    @contextmanager
    def _open_trials(
        self, planned: PlannedCell, blobs: BlobStore, progress: Report = lambda _: None
    ) -> Iterator[SettingTrials]:
        """Open the trials of the program in a cell, and try it without any setting."""
        with (
            # Held for the whole search: between two trials another run could take the accelerator.
            self.session.device_lock.acquire(planned.cell.place, lambda: None),
            self._make_prober(planned, blobs) as prober,
        ):
            trials = SettingTrials(prober=prober, blobs=blobs, progress=progress)
            trials.try_points([UNCHANGED])
            # A program that does not run even unchanged would make each pass look innocent.
            _refuse_not_run(trials.samples[UNCHANGED][0])
            yield trials

    def _make_prober(self, planned: PlannedCell, blobs: BlobStore) -> SettingProber:
        locks, options = self.preparation.locks, self.options
        if isinstance(self.subject, ProgramTarget):
            runner = ProgramRunner(
                target=self.subject, locks=locks, cache=self.session.context.cache,
                outer=os.environ, blobs=blobs, timeout=options.timeout,
                wanted=self.session.build_requirements(options.wanted), facts=bool(options.fact),
            )  # fmt: skip
            # A program takes a process for each trial, in which flags are set by the environment.
            return ProgramPasses(runner, planned)
        if reason := find_exclusion_reason(self.subject, planned):
            raise UsageError(f"{self.subject.id} on {planned.cell.id}: {reason}")
        worker = self.session.make_opener(locks)(planned)
        return PassProber(worker, Job(case=self.subject, planned=planned), blobs)

    def _make_predicate(self, good: StoredJob | None, bad: StoredJob) -> Predicate:
        options = PredicateOptions(self.options.when or "", self.options.fact)
        tolerance = get_tolerance(self.subject)
        if good is None:
            return make_cell_predicate(bad, tolerance, options)
        names = (self.cells[0].cell.id, self.cells[-1].cell.id)
        ends = Endpoints(good=good, bad=bad, names=names, tolerance=tolerance)
        return make_pair_predicate(ends, options)


def prepare_pass_search(context: ProjectContext, target: str, options: SearchOptions) -> PassSearch:
    """Prepare the cells of a search.

    Args:
        context: The project.
        target: A case, script, test or command line.
        options: The options; the good cell is empty for none.

    Raises:
        UsageError: If the target is no program, or there is no such cell of one process.
        InfrastructureError: If a cell cannot be provided.
    """
    program = find_program(target, command=options.is_command)
    if options.good == options.bad:
        raise UsageError(f"{options.good}: the same cell twice, expected two")
    selectors = list(filter(None, (options.good, options.bad)))
    chosen = [context.find_cell(text) for text in selectors]
    # The requirements of a program are layered over its cell by the runner.
    wanted = options.wanted if program is None else ()
    session = Session(context=context)
    preparation = session.prepare(chosen, wanted)
    for exclusion in preparation.exclusions:
        # Both cells were named, so neither can be left out as in a run.
        raise UsageError(f"{exclusion.cell}: {exclusion.reason}")
    for planned, name in zip(preparation.cells, selectors, strict=True):
        if planned.cell.place.processes > 1:
            raise UsageError(f"{name}: passes are asked of one process, the cell has several")
    return PassSearch(
        session=session, preparation=preparation, cells=preparation.cells, options=options,
        subject=_find_program_case(context, target) if program is None else program,
    )  # fmt: skip


def _find_program_case(context: ProjectContext, text: str) -> Case:
    case = context.find_case(text)
    # A probe may compile anything or nothing: there is no module whose passes could be disabled.
    if case.kind != "program":
        raise UsageError(
            f"{text}: is a {case.kind}, expected a program: what it compiles is its own affair"
        )
    return case


def _refuse_not_run(side: StoredJob) -> None:
    """Refuse a program that a cell cannot run."""
    message = f"{side.record.case} on {side.record.cell}: {shorten(format_ending(side.record))}"
    # A cell that cannot run it is an error of usage; a host that cannot run it now is not.
    if side.record.outcome is Outcome.UNSUPPORTED:
        raise UsageError(message)
    if side.record.outcome in {Outcome.INFRA, Outcome.NOT_RUN}:
        raise InfrastructureError(message)
