"""Blame: the search for the package at fault, among the packages that differ between two cells."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.search.bisect import find_requirements, open_trials
from conformance.app.session import Session
from conformance.app.suites.target import SuiteTest
from conformance.app.target import (
    Target,
    get_tolerance,
    make_log_name,
    make_preparer,
    select_platform,
)
from conformance.cells.cell import is_cell_id
from conformance.cells.uvtool import NoSolutionError
from conformance.model.case import Case
from conformance.search.endpoints import ANY_PREDICATE, EndpointsError, PredicateOptions
from conformance.search.prober import CaseProber
from conformance.search.trials import CellTrials
from conformance.triage.blame.blame import Blame
from conformance.triage.blame.ends import add_requirements, make_ends, provide_mixture
from conformance.triage.blame.mixtures import Mixtures, find_suspects, read_sources
from conformance.triage.blame.render import format_step
from conformance.triage.programs.program import ProgramTarget
from conformance.triage.programs.requirements import find_common_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.app.context import ProjectContext
    from conformance.app.search.options import SearchOptions
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job_runner import JobRunner
    from conformance.engine.workers.preparation import Preparation
    from conformance.search.answers import SearchStep
    from conformance.triage.blame.blame import BlameAnswer, MovedUnits
    from conformance.triage.blame.mixtures import BlameEnd

LOGS: Final = Path("reports") / "blame"
"""Folder of the logs of searches, below the project."""


def find_package(
    context: ProjectContext, target: Target, options: SearchOptions, say: Callable[[str], None]
) -> BlameAnswer:
    """Find the package that makes a difference, resuming an earlier search for the same.

    Args:
        context: The project.
        target: The target.
        options: The options, whose ends are the two environments.
        say: Called with a line for each trial.

    Raises:
        UsageError: If options contradict each other, or an end does not exist.
        EndpointsError: If no predicate separates the ends.
        InfrastructureError: If an index does not answer, an end cannot be tried now, or the disk
            refuses.
    """
    # Reading the metric validates the options before any look-up. Measured trials run alone,
    # because a second one would slow down the first.
    width = 1 if options.measured_metric else 2
    names = options.good, options.bad
    before, after = (_select_cell(context, target, text) for text in names)
    locks: dict[str, Lock] = {}
    session = Session(context=context)
    ends, wanted = _prepare_ends(session, target, options, (before, after), locks)
    originals = [end.original for end in ends if end.original is not None]
    for original in originals:
        say(f"{original.planned.cell.id}: {original.stand_in} stands for it")
    # Requirements are part of the name: they decide which packages are candidates.
    name = make_log_name(target, " ".join((*names, options.words, *options.wanted)))
    # A program finds its requirements where it runs.
    layered = () if isinstance(target, ProgramTarget) else wanted
    mixtures = _make_mixtures(context, target, ends, locks, layered)
    with open_trials(
        session, target, LOGS / name, options, locks, ends=[end.planned for end in ends],
        cell_of=mixtures.cell_of, progress=partial(_report_step, say, len(mixtures.packages)),
        width=width, wanted=wanted,
    ) as trials:  # fmt: skip
        blame = Blame(mixtures=mixtures, trials=trials, options=options.predicate)
        try:
            return blame.run()
        except EndpointsError as error:
            # The ends were tried in replacements, which may be why they do not differ.
            remarks = "; ".join(f"{env.stand_in} stands for an end" for env in originals)
            raise EndpointsError(f"{error}; {remarks}" if remarks else str(error)) from error


def blame_case(
    context: ProjectContext,
    case: Case,
    cells: tuple[Cell, Cell],
    predicate: PredicateOptions = ANY_PREDICATE,
    *,
    prepare: Callable[[Iterable[Cell]], Preparation],
    runner: JobRunner,
    locks: dict[str, Lock],
    wanted: tuple[str, ...] = (),
    say: Callable[[str], None] = lambda _: None,
) -> BlameAnswer:
    """Find the package that changed a case, as a step of another search; results are cached.

    Args:
        context: The project.
        case: The case.
        cells: The cells before and after the change.
        predicate: The options that name the predicate.
        prepare: Looks up locks.
        runner: Runs jobs.
        locks: Locks that the runner uses, by cell id; receives those of mixtures.
        wanted: Requirements of the cells in addition to their own packages.
        say: Called with a line for each trial.

    Raises:
        UsageError: If the ends differ in no package or in more than packages.
        EndpointsError: If no predicate separates the ends, or an end is inconclusive.
        OtherwiseError: If an end behaves differently from the environment that it replaces.
        InfrastructureError: If something cannot be tried now, or the disk refuses.
    """
    ends = make_ends(
        cells, context.releases, prepare, locks=locks, cache=context.cache, wanted=wanted
    )
    ends, wanted = add_requirements(ends, wanted, locks=locks, cache=context.cache)
    mixtures = _make_mixtures(context, case, ends, locks, wanted)
    trials = CellTrials(
        cell_of=mixtures.cell_of, prober=CaseProber(case=case, runner=runner), blobs=runner.blobs,
        # No log: the result cache of the runner already recalls repeated trials.
        keep=lambda _: None, tolerance=get_tolerance(case),
        progress=partial(_report_step, say, len(mixtures.packages)),
    )  # fmt: skip
    return Blame(mixtures=mixtures, trials=trials, options=predicate).run()


def _make_mixtures(
    context: ProjectContext,
    target: Target,
    ends: tuple[BlameEnd, BlameEnd],
    locks: dict[str, Lock],
    wanted: tuple[str, ...],
) -> Mixtures:
    return Mixtures(
        ends=ends, suspects=find_suspects(_collect_sources(target), ends), locks=locks,
        provide=partial(provide_mixture, ends=ends, cache=context.cache, wanted=wanted),
    )  # fmt: skip


def _prepare_ends(
    session: Session,
    target: Target,
    options: SearchOptions,
    cells: tuple[Cell, Cell],
    locks: dict[str, Lock],
) -> tuple[tuple[BlameEnd, BlameEnd], tuple[str, ...]]:
    """Return both ends, and the requirements of the target in addition to them.

    If a requirement resolves to different versions at the ends, its packages become part of the
    ends, so that the search can blame them. For a script or a command, a version that fits both
    ends is preferred, so that this happens only where it must.
    """
    context = session.context
    wanted = (
        target.wanted
        if isinstance(target, SuiteTest)
        else session.build_requirements(options.wanted)
    )
    layered = () if isinstance(target, ProgramTarget) else wanted
    ends = make_ends(
        cells, context.releases, make_preparer(session, target, layered),
        locks=locks, cache=context.cache, wanted=layered,
    )  # fmt: skip
    if isinstance(target, ProgramTarget):
        both = {end.planned.cell.id: end.lock for end in ends}
        wanted = find_requirements(target, wanted, both.values())
        if find_common_versions([end.planned for end in ends], both, wanted, context.cache):
            return ends, wanted
    # Without a solution, the trial of that end fails with the reason, which is the better report.
    with suppress(NoSolutionError):
        return add_requirements(ends, wanted, locks=locks, cache=context.cache)
    return ends, wanted


def _report_step(say: Callable[[str], None], packages: int, step: SearchStep[MovedUnits]) -> None:
    say(format_step(step, packages))


def _select_cell(context: ProjectContext, target: Target, text: str) -> Cell:
    """Return the cell of the newest release that a selector names.

    A script or a command runs on its own platform, unless the selector names another.
    """
    if is_cell_id(text):
        # A cell id names its platform, packages and options: nothing is added to it.
        return context.find_cell(text)
    text = select_platform(text, target) if isinstance(target, ProgramTarget) else text
    found, _ = context.select_cells(None, [text])
    return found[-1]


def _collect_sources(target: Target) -> list[str]:
    """Return the texts of a target's Python files, and of a case's helpers; none for a command."""
    if isinstance(target, Case):
        # Packages that the source imports are suspected first, which saves environments.
        return read_sources(target)
    source = target.source if isinstance(target, ProgramTarget) else ""
    return [source] if source else []
