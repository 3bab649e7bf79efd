"""The search of `conformance passes` in one program: which pass, flag or option is the cause."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.app.context import TIMEOUT
from conformance.app.session import Session
from conformance.app.target import get_name, get_tolerance
from conformance.engine.blobs import BlobStore
from conformance.engine.job import Job
from conformance.engine.plan import find_exclusion_reason
from conformance.engine.stored_job import StoredJob
from conformance.errors import InfrastructureError, UsageError
from conformance.model.outcome import Outcome
from conformance.scratch import temporary_folder
from conformance.search.endpoints import PredicateOptions
from conformance.search.equivalence import format_ending, shorten
from conformance.search.predicates import Endpoints
from conformance.triage.passes.pass_bisection import PassBisection, Setting
from conformance.triage.passes.predicates import make_cell_predicate, make_pair_predicate
from conformance.triage.passes.prober import PassProber, ProgramPasses, judge_finished
from conformance.triage.programs.program import ProgramTarget, find_program
from conformance.triage.programs.runner import ProgramRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from conformance.app.context import ProjectContext
    from conformance.engine.job import PlannedCell
    from conformance.engine.preparation import Preparation
    from conformance.model.case import Case
    from conformance.search.answers import SearchStep
    from conformance.search.predicates import Predicate
    from conformance.triage.passes.pass_bisection import PassAnswer, SettingProber

    Report = Callable[[SearchStep[Setting]], None]
    Observe = Callable[[PlannedCell], StoredJob]
    OpenProber = Callable[[PlannedCell], AbstractContextManager[SettingProber]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOptions:
    """Options of `conformance passes`.

    Attributes:
        bad: Selector of the cell that shows the behaviour.
        good: Selector of a cell to compare with, None for none.
        when: The predicate, None for a deviation, or any difference between both cells.
        fact: A fact of the optimised HLO to ask about, maybe with its value.
        settings: Whether XLA flags and options of jax are tried too.
        timeout: Seconds that a script, test or command may take.
        wanted: Requirements in addition to the packages of the cells.
        is_command: Whether the target is a command line for sure.
    """

    bad: str
    good: str | None = None
    when: str | None = None
    fact: str = ""
    settings: bool = True
    timeout: float = TIMEOUT
    wanted: tuple[str, ...] = ()
    is_command: bool = False

    @property
    def selectors(self) -> tuple[str, ...]:
        """Selectors of the cells: of the bad one, or of the good and the bad one.

        Raises:
            UsageError: If both are the same.
        """
        if self.good == self.bad:
            raise UsageError(f"{self.good}: the same cell twice, expected two")
        return (self.good, self.bad) if self.good else (self.bad,)


@dataclass(frozen=True, kw_only=True)
class PassSearch:
    """A search whose cells are prepared.

    Attributes:
        context: The project.
        preparation: The locks of the cells.
        cells: The bad cell, or the good and the bad one.
        subject: The program: a case, or a script, test or command line.
        options: The options.
    """

    context: ProjectContext
    preparation: Preparation
    cells: Sequence[PlannedCell]
    subject: Case | ProgramTarget
    options: PassOptions

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
            UsageError: If a cell cannot run the program, or it gives no cause for the question.
            InfrastructureError: If it cannot be run.
        """
        bad_cell = self.cells[-1]
        with temporary_folder("passes") as folder:
            blobs = BlobStore(folder)
            observe, open_prober = (
                self._observe_program(self.subject, blobs)
                if isinstance(self.subject, ProgramTarget)
                else self._observe_case(self.subject, blobs)
            )
            good = observe(self.cells[0]) if len(self.cells) > 1 else None
            with (
                report() as progress,
                self._session.device_lock.acquire(bad_cell.cell.place, lambda: None),
                open_prober(bad_cell) as prober,
            ):
                bad = prober.compile(Setting().options)
                for side in filter(None, (good, bad)):
                    _refuse_not_run(side)
                predicate = self._make_predicate(good, bad)
                bisection = PassBisection(prober, bad_cell.cell, predicate, bad, progress)
                return bisection.run(settings=self.options.settings)

    @property
    def _session(self) -> Session:
        return Session(context=self.context)

    def _observe_case(self, case: Case, blobs: BlobStore) -> tuple[Observe, OpenProber]:
        """Return what observes a case in a cell, and what tries it there with settings."""
        locks, session = self.preparation.locks, self._session

        def job(planned: PlannedCell) -> Job:
            if reason := find_exclusion_reason(case, planned):
                raise UsageError(f"{case.id} on {planned.cell.id}: {reason}")
            return Job(case=case, planned=planned)

        executor, open_worker = session.make_executor(locks), session.make_opener(locks)
        return (
            lambda planned: judge_finished(next(executor.run([job(planned)])), blobs),
            lambda planned: PassProber(open_worker(planned), job(planned), blobs),
        )

    def _observe_program(
        self, target: ProgramTarget, blobs: BlobStore
    ) -> tuple[Observe, OpenProber]:
        """Return what observes a program in a cell, and what tries it there with settings."""
        options = self.options
        runner = ProgramRunner(
            target=target, locks=self.preparation.locks, cache=self.context.cache,
            outer=os.environ, blobs=blobs, timeout=options.timeout,
            wanted=self._session.build_requirements(options.wanted), facts=bool(options.fact),
        )  # fmt: skip
        return (
            lambda planned: StoredJob(runner.run(planned), blobs),
            lambda planned: ProgramPasses(runner, planned),
        )

    def _make_predicate(self, good: StoredJob | None, bad: StoredJob) -> Predicate:
        options = PredicateOptions(self.options.when or "", self.options.fact)
        tolerance = get_tolerance(self.subject)
        if good is None:
            return make_cell_predicate(bad, tolerance, options)
        names = (self.cells[0].cell.id, self.cells[-1].cell.id)
        ends = Endpoints(good=good, bad=bad, names=names, tolerance=tolerance)
        return make_pair_predicate(ends, options)


def prepare_pass_search(context: ProjectContext, target: str, options: PassOptions) -> PassSearch:
    """Prepare the cells of a search.

    Args:
        context: The project.
        target: A case, script, test or command line.
        options: The options.

    Raises:
        UsageError: If the target is no program, or there is no such cell of one process.
        InfrastructureError: If a cell cannot be provided.
    """
    program = find_program(target, command=options.is_command)
    selectors = options.selectors
    chosen = [context.find_cell(text) for text in selectors]
    wanted = options.wanted if program is None else ()
    preparation = Session(context=context).prepare(chosen, wanted)
    cells = [_require_single_process(preparation, *named) for named in enumerate(selectors)]
    subject = _find_program_case(context, target) if program is None else program
    return PassSearch(
        context=context, preparation=preparation, cells=cells, subject=subject, options=options
    )


def _find_program_case(context: ProjectContext, text: str) -> Case:
    case = context.find_case(text)
    if case.kind != "program":
        raise UsageError(
            f"{text}: is a {case.kind}, expected a program: what it compiles is its own affair"
        )
    return case


def _require_single_process(preparation: Preparation, number: int, name: str) -> PlannedCell:
    """Return a prepared cell that is one process.

    Raises:
        UsageError: If the cell cannot be prepared, or has several processes.
    """
    for exclusion in preparation.exclusions:
        raise UsageError(f"{exclusion.cell}: {exclusion.reason}")
    planned = preparation.cells[number]
    if planned.cell.place.processes > 1:
        raise UsageError(f"{name}: passes are asked of one process, the cell has several")
    return planned


def _refuse_not_run(side: StoredJob) -> None:
    """Refuse a program that a cell cannot run."""
    said = f"{side.record.case} on {side.record.cell}: {shorten(format_ending(side.record))}"
    if side.record.outcome is Outcome.UNSUPPORTED:
        raise UsageError(said)
    if side.record.outcome in {Outcome.INFRA, Outcome.NOT_RUN}:
        raise InfrastructureError(said)
