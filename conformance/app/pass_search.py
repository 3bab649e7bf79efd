"""The search of `conformance passes` in one program: which pass, flag or option is the cause."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from conformance.app.context import TIMEOUT
from conformance.app.session import Session
from conformance.engine.blobs import BlobStore
from conformance.engine.job import Job
from conformance.engine.job_comparison import StoredJob
from conformance.engine.plan import why_not
from conformance.errors import InfrastructureError, UsageError
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import Outcome
from conformance.scratch import temporary_folder
from conformance.triage.passes.inquiry import Inquiry
from conformance.triage.passes.prober import DISABLED, PassProber, judged
from conformance.triage.passes.programs import ProgramPasses
from conformance.triage.passes.question import question_between, question_within
from conformance.triage.programs.program import Program, program_named
from conformance.triage.programs.running import ProgramRunner
from conformance.triage.questions.predicate import Ends, ending, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from conformance.app.context import ProjectContext
    from conformance.engine.job import PlannedCell
    from conformance.engine.preparation import Preparation
    from conformance.model.case import Case
    from conformance.triage.passes.inquiry import Answers, Prober, Step
    from conformance.triage.questions.predicate import Predicate

    Report = Callable[[Step], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOptions:
    """Options of `conformance passes`.

    Attributes:
        cell: The cell in which the target does what is asked about.
        good_cell: A cell in which it does what it should.
        bad_cell: The same as `cell`.
        when: What is asked about, None for a deviation, or whatever differs between both cells.
        fact: A fact of the optimised HLO to ask about, maybe with its value.
        settings: Whether XLA flags and options of jax are tried too.
        timeout: Seconds that a script, test or command may take.
        wanted: Requirements in addition to the packages of the cells.
        is_command: Whether the target is a command line for sure.
    """

    cell: str | None = None
    good_cell: str | None = None
    bad_cell: str | None = None
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
            UsageError: If the options contradict each other, or name no cell.
        """
        if self.cell and self.bad_cell:
            raise UsageError("--cell and --bad-cell are the same: give one of them")
        last = self.cell or self.bad_cell
        if self.good_cell and self.good_cell == last:
            raise UsageError(f"{self.good_cell}: the same cell twice, expected two")
        if not last:
            raise UsageError("give --cell, or --good-cell and --bad-cell")
        return (self.good_cell, last) if self.good_cell else (last,)


class PassTarget(Protocol):
    """A program that is tried with passes disabled."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    @property
    def tolerance(self) -> Tolerance:
        """How far its values may differ."""
        ...

    def observe(self, planned: PlannedCell) -> StoredJob:
        """Return its result in a cell."""
        ...

    def prober(self, planned: PlannedCell) -> AbstractContextManager[Prober]:
        """Return a prober that tries it in a cell again and again."""
        ...


class CasePasses:
    """A case that is a program.

    Args:
        session: Runs it.
        preparation: The locks of the cells.
        case: The case.
        blobs: Where artifacts go.
    """

    def __init__(
        self, session: Session, preparation: Preparation, case: Case, blobs: BlobStore
    ) -> None:
        self.name = case.id
        self.tolerance = Tolerance.of(case)
        self._case, self._blobs = case, blobs
        self._open = session.opener(preparation.locks)
        self._executor = session.executor(preparation.locks)

    def observe(self, planned: PlannedCell) -> StoredJob:
        """Return its result in a cell."""
        return judged(next(self._executor.run([self._job(planned)])), self._blobs)

    def prober(self, planned: PlannedCell) -> PassProber:
        """Return a prober that tries it in a cell again and again."""
        return PassProber(self._open(planned), self._job(planned), self._blobs)

    def _job(self, planned: PlannedCell) -> Job:
        if reason := why_not(self._case, planned):
            raise UsageError(f"{self._case.id} on {planned.cell.id}: {reason}")
        return Job(case=self._case, planned=planned)


class RunnerPasses:
    """A script, a test or a command.

    Args:
        runner: Runs it.
    """

    tolerance = Tolerance()

    def __init__(self, runner: ProgramRunner) -> None:
        self.name = runner.target.text
        self._runner = runner

    def observe(self, planned: PlannedCell) -> StoredJob:
        """Return its result in a cell."""
        return StoredJob(self._runner.run(planned), self._runner.blobs)

    def prober(self, planned: PlannedCell) -> ProgramPasses:
        """Return a prober that tries it in a cell again and again."""
        return ProgramPasses(self._runner, planned)


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
    subject: Case | Program
    options: PassOptions

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.subject.text if isinstance(self.subject, Program) else self.subject.id

    def run(self, report: Callable[[], AbstractContextManager[Report]]) -> Answers:
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
            target = self._target(BlobStore(folder))
            good = target.observe(self.cells[0]) if len(self.cells) > 1 else None
            with (
                report() as progress,
                self._session.device_lock.of(bad_cell.cell.place, lambda: None),
                target.prober(bad_cell) as prober,
            ):
                bad = prober.compiled({DISABLED: ""})
                for side in filter(None, (good, bad)):
                    _refuse_not_run(side)
                predicate = self._predicate(good, bad, target.tolerance)
                inquiry = Inquiry(prober, bad_cell.cell, predicate, bad, progress)
                return inquiry.run(settings=self.options.settings)

    @property
    def _session(self) -> Session:
        return Session(context=self.context)

    def _target(self, blobs: BlobStore) -> PassTarget:
        if not isinstance(self.subject, Program):
            return CasePasses(self._session, self.preparation, self.subject, blobs)
        runner = ProgramRunner(
            target=self.subject, locks=self.preparation.locks, cache=self.context.cache,
            outer=os.environ, blobs=blobs, timeout=self.options.timeout,
            wanted=self._session.requirements(self.options.wanted), facts=bool(self.options.fact),
        )  # fmt: skip
        return RunnerPasses(runner)

    def _predicate(self, good: StoredJob | None, bad: StoredJob, tolerance: Tolerance) -> Predicate:
        when, fact = self.options.when or "", self.options.fact
        if good is None:
            return question_within(bad, tolerance, when=when, fact=fact)
        names = (self.cells[0].cell.id, self.cells[-1].cell.id)
        ends = Ends(good=good, bad=bad, names=names, tolerance=tolerance)
        return question_between(ends, when=when, fact=fact)


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
    program = program_named(target, command=options.is_command)
    selectors = options.selectors
    chosen = [context.cell(text) for text in selectors]
    wanted = options.wanted if program is None else ()
    preparation = Session(context=context).prepare(chosen, wanted)
    cells = [_single_process(preparation, *named) for named in enumerate(selectors)]
    subject = _program_case(context, target) if program is None else program
    return PassSearch(
        context=context, preparation=preparation, cells=cells, subject=subject, options=options
    )


def _program_case(context: ProjectContext, text: str) -> Case:
    case = context.case(text)
    if case.kind != "program":
        raise UsageError(
            f"{text}: is a {case.kind}, expected a program: what it compiles is its own affair"
        )
    return case


def _single_process(preparation: Preparation, number: int, name: str) -> PlannedCell:
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
    said = f"{side.record.case} on {side.record.cell}: {quoted(ending(side.record))}"
    if side.record.outcome is Outcome.UNSUPPORTED:
        raise UsageError(said)
    if side.record.outcome in {Outcome.INFRA, Outcome.NOT_RUN}:
        raise InfrastructureError(said)
