"""`conformance shrink`: a case or a script is reduced while it still fails in the same way."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.app.context import TIMEOUT
from conformance.app.output_files import write_file
from conformance.app.search.bisect import find_requirements
from conformance.app.session import Session
from conformance.app.target import find_script, select_platform
from conformance.cells.selectors import find_python
from conformance.corpus.discovery import discover
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.local_executor import CellWorker
from conformance.engine.plan import find_exclusion_reason, make_plan
from conformance.errors import NothingSelectedError, UsageError
from conformance.model.outcome import ExitCode
from conformance.scratch import temporary_folder
from conformance.search.metrics import MEMORY, make_phase_metric
from conformance.triage.programs.program import refuse_other_files
from conformance.triage.programs.runner import ProgramRunner
from conformance.triage.repro.case_source import extract_source
from conformance.triage.repro.observed_jobs import run_plan
from conformance.triage.repro.script_file import make_script_run, render_script_file
from conformance.triage.repro.writer import write_reproduction
from conformance.triage.shrink.case import CaseShrinker
from conformance.triage.shrink.report import make_json, render_lines
from conformance.triage.shrink.script import ScriptShrinker
from conformance.triage.shrink.search import ShrinkLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell
    from conformance.model.case import Case, Deviation
    from conformance.search.metrics import Metric
    from conformance.triage.programs.program import ProgramTarget
    from conformance.triage.shrink.report import ShrunkProgram

    Report = Callable[[], AbstractContextManager[Callable[[str], None]]]

NEAR: Final = 4
"""Releases that are tried in turn as the good cell, nearest first."""
NONE: Final = "none"
"""The value of `--good` for no good cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkOptions:
    """Options of `conformance shrink`.

    Attributes:
        bad: Selector of the cell in which the target fails.
        good: Selector of a cell in which the target is right, `none` for no such cell, None to
            search for one.
        fact: The fact to keep, empty for none.
        phase: The phase of a case whose ratio of processor times to keep, None for none.
        memory: Whether to keep the ratio of memory.
        out: File for the smallest target.
        repro: File for a reproduction without the harness, None for none.
        wanted: Requirements in addition to the packages of the cells.
        probes: Maximum number of candidates that are tried.
        timeout: Maximum time of the search, in seconds.
        jobs: Candidates at the same time.
    """

    bad: str
    good: str | None
    fact: str
    phase: str | None
    memory: bool
    out: Path
    repro: Path | None
    wanted: tuple[str, ...]
    probes: int
    timeout: float
    jobs: int

    @property
    def limits(self) -> ShrinkLimits:
        """The limits of the search."""
        # Candidates at the same time would slow each other down.
        width = self.jobs if self.metric is None else 1
        return ShrinkLimits(probes=self.probes, seconds=self.timeout, width=width)

    @property
    def kept(self) -> list[str]:
        """The options that name what to keep of a case."""
        named = {"--fact": self.fact, "--phase": self.phase}
        found = [f"{option} {value}" for option, value in named.items() if value]
        return [*found, *(["--memory"] if self.memory else [])]

    @property
    def metric(self) -> Metric | None:
        """The metric whose ratio is kept, None for none.

        Raises:
            UsageError: If the options contradict each other.
        """
        if len(self.kept) > 1:
            raise UsageError(f"{' and '.join(self.kept)}: expected one of them")
        if self.phase is not None:
            return make_phase_metric(self.phase)
        return MEMORY if self.memory else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkResult:
    """A target that was shrunk.

    Attributes:
        shrunk: The target.
        lines: The report on it.
        data: The report as JSON.
    """

    shrunk: ShrunkProgram
    lines: tuple[str, ...]
    data: Mapping[str, Any]

    @property
    def exit_code(self) -> ExitCode:
        """The exit status of the command."""
        # First: an interrupted search has not confirmed its result either.
        if self.shrunk.interrupted:
            return ExitCode.INTERRUPTED
        return ExitCode.OK if self.shrunk.confirmed else ExitCode.UNEXPECTED


def shrink(
    context: ProjectContext, target: str, options: ShrinkOptions, report: Report
) -> ShrinkResult:
    """Shrink a case or a script, and write the file of `--repro`.

    Args:
        context: The project.
        target: The case or script.
        options: The options.
        report: Opens the progress display of the search; yields a function that is called with
            each step, in a line.

    Raises:
        UsageError: If the target does not fail, an option does not apply to it, or a script reads
            other files.
        InfrastructureError: If a cell cannot be provided.
    """
    with temporary_folder("shrink") as folder:
        if (script := find_script(context, target)) is not None:
            name, shrunk = script.text, _shrink_script(context, script, options, report, folder)
        else:
            case = context.find_case(target)
            name, shrunk = case.id, _shrink_case(context, case, options, report, folder)
    data = make_json(shrunk, name, str(options.out))
    return ShrinkResult(shrunk=shrunk, lines=tuple(render_lines(shrunk)), data=data)


def _find_good_cells(
    context: ProjectContext, cell: Cell, good: str | None, deviations: Iterable[Deviation] = ()
) -> tuple[tuple[Cell, ...], bool]:
    """Return cells in which a target may be right, the likeliest first, and whether one is named.

    Args:
        context: The project.
        cell: The cell in which it fails.
        good: The value of `--good`.
        deviations: The declared deviations of the target.

    Raises:
        UsageError: If `--good` names the same cell, or several.
    """
    if good == NONE:
        return (), False
    if good is not None:
        named = context.find_cell(good)
        if named == cell:
            raise UsageError(f"--good {good}: the same cell twice, expected two")
        return (named,), True
    declared = tuple(deviations)
    nearest = [
        replace(cell, release=release, python=find_python(release, context.releases))
        for release in context.releases.sort_by_distance(cell.release)
        # A release with a declared deviation is known to fail as well.
        if not any(d.covers(release, cell.platform, {"jax": release}) for d in declared)
    ]
    return tuple(nearest[:NEAR]), False


def _read_text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _shrink_case(
    context: ProjectContext, case: Case, options: ShrinkOptions, report: Report, folder: Path
) -> ShrunkProgram:
    if options.wanted:
        raise UsageError(f"--with {options.wanted[0]}: goes with a script, got a case")
    cell, session = context.find_cell(options.bad), Session(context=context)
    others, named = _find_good_cells(context, cell, options.good, case.deviations)

    def open_cell(cell: Cell) -> CellWorker:
        if cell.place.processes > 1:
            raise UsageError(f"{cell.id}: several processes; name one cell of one process")
        planned, locks = session.prepare_cell(cell)
        if reason := find_exclusion_reason(case, planned):
            raise UsageError(f"{case.id} on {cell.id}: {reason}")
        # A worker per cell for all candidates: starting one takes seconds, a forked candidate does
        # not.
        return CellWorker(planned, session.make_opener(locks), session.device_lock)

    with report() as progress:
        shrunk = CaseShrinker(
            case=case, cell=cell, others=others, is_good_named=named, fact=options.fact,
            metric=options.metric,
            open_cell=open_cell, read=_read_text, folder=folder, blobs=BlobStore(folder / "blobs"),
            limits=options.limits, progress=progress,
        ).run()  # fmt: skip
    if options.repro is not None:
        file = folder / "file" / case.family / f"{case.topic}.py"
        # In a folder of the family, by which discovery finds the name of the case.
        file.parent.mkdir(parents=True)
        file.write_text(shrunk.text, encoding="utf-8")
        (smallest,) = discover([file])
        planned, locks = session.prepare_cell(cell)
        plan = make_plan([smallest], [planned])
        executor = session.make_executor(locks)
        # The result is no case of the project, so its results stay out of the user's cache.
        cache = replace(session, results_folder=folder / "cache").results
        with run_plan(plan, executor, cache, session.make_judge) as jobs:
            source = extract_source(file, smallest.name, _read_text)
            content = write_reproduction(jobs[0].job, source, jobs[0].seen, options.repro.name).text
        write_file("--repro", options.repro, content.encode())
    return shrunk


def _shrink_script(
    context: ProjectContext,
    script: ProgramTarget,
    options: ShrinkOptions,
    report: Report,
    folder: Path,
) -> ShrunkProgram:
    if options.kept:
        raise UsageError(f"{options.kept[0]}: goes with a case, got a script")
    cell, good = context.find_cell(select_platform(options.bad, script)), options.good
    # `none` is no selector, to which a platform could be added.
    good = good if good is None or good == NONE else select_platform(good, script)
    others, named = _find_good_cells(context, cell, good)
    locks: dict[str, Lock] = {}
    session = Session(context=context)
    with report() as progress:
        planned = _plan_cell(session, cell, locks)
        wanted = session.build_requirements(options.wanted)
        blobs = BlobStore(folder / "blobs")
        runner = ProgramRunner(
            target=script, locks=locks, cache=context.cache, outer=os.environ, blobs=blobs,
            timeout=TIMEOUT, wanted=find_requirements(script, wanted, [locks[planned.cell.id]]),
        )  # fmt: skip
        # The result is a single file, which cannot contain the others.
        refuse_other_files(runner.run(planned), blobs, script)
        shrunk = ScriptShrinker(
            runner=runner, cell=planned, is_good_named=named, folder=folder, limits=options.limits,
            # A generator: later cells are resolved only if the earlier ones do not serve.
            others=(_plan_cell(session, other, locks) for other in others), progress=progress,
        ).run()  # fmt: skip
    if options.repro is not None:
        file = folder / options.repro.name
        file.write_text(shrunk.text, encoding="utf-8")
        runner = replace(runner, target=replace(script, text=str(file)))
        run = make_script_run(runner, planned, runner.run(planned))
        write_file("--repro", options.repro, render_script_file(run, file.name).encode())
    return shrunk


def _plan_cell(session: Session, cell: Cell, locks: dict[str, Lock]) -> PlannedCell:
    if cell.place.processes > 1 or cell.place.compile_only:
        raise UsageError(f"{cell.id}: expected a release on cpu for a script")
    planned, cell_locks = session.prepare_cell(cell, refuse=NothingSelectedError)
    # The runner holds the dictionary, and finds the locks of the other cells in it.
    locks |= cell_locks
    return planned
