"""Blame: the search for the package at fault, of all that two environments differ in."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.bisect import needed_by, open_trials
from conformance.app.session import Session
from conformance.app.suite_target import SuiteTest
from conformance.app.target import Target, log_name_of, preparer_of
from conformance.app.target_lookup import on_one_cpu
from conformance.cells.cell_id import is_cell_id
from conformance.cells.uvtool import NoSolutionError
from conformance.model.case import Case
from conformance.search.predicates import EndpointsError
from conformance.triage.blame.additions import with_additions
from conformance.triage.blame.blame import Blame
from conformance.triage.blame.ends import ends_of, provide
from conformance.triage.blame.mixtures import Mixtures
from conformance.triage.blame.render import step_line
from conformance.triage.blame.suspects import sources_of, suspects
from conformance.triage.programs.common_versions import common_versions
from conformance.triage.programs.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.app.bisect import BisectOptions
    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.search.trials import SearchStep
    from conformance.triage.blame.answer import BlameAnswer, MovedUnits
    from conformance.triage.blame.mixtures import End

LOGS: Final = Path("reports") / "blame"
"""Folder of the logs of searches, below the project."""


def find_package(
    context: ProjectContext, target: Target, asked: BisectOptions, say: Callable[[str], None]
) -> BlameAnswer:
    """Find the package that makes a difference, resuming an earlier search for the same.

    Args:
        context: The project.
        target: The target.
        asked: The question, whose ends are the two environments.
        say: Called with a line for each trial.

    Raises:
        UsageError: If options contradict each other, or an end does not exist.
        EndpointsError: If nothing tells the ends apart.
        InfrastructureError: If an index does not answer, an end cannot be tried now, or the disk
            refuses.
    """
    # Options that contradict each other are refused before any look-up.
    width = 1 if asked.measured else 2
    cells = (_select_cell(context, target, asked.good), _select_cell(context, target, asked.bad))
    locks: dict[str, Lock] = {}
    ends, wanted = _prepare_ends(context, target, asked, cells, locks)
    originals = [end.original for end in ends if end.original is not None]
    for original in originals:
        say(f"{original.planned.cell.id}: {original.stand_in} stands for it")
    name = log_name_of(target, " ".join((asked.good, asked.bad, asked.words, *asked.wanted)))
    mixtures = Mixtures(
        ends=ends, suspects=suspects(_collect_sources(target), ends), locks=locks,
        provide=partial(
            # A program finds its requirements where it runs.
            provide, ends=ends, cache=context.cache,
            wanted=() if isinstance(target, Program) else wanted,
        ),
    )  # fmt: skip
    with open_trials(
        context, target, LOGS / name, asked, locks, ends=[end.planned for end in ends],
        cell_of=mixtures.cell_of, progress=partial(_report_step, say, len(mixtures.packages)),
        width=width, wanted=wanted,
    ) as trials:  # fmt: skip
        blame = Blame(
            mixtures=mixtures, trials=trials, when=asked.predicate, fact=asked.fact
        )  # fmt: skip
        try:
            return blame.run()
        except EndpointsError as error:
            stands = "; ".join(f"{one.stand_in} stands for an end" for one in originals)
            raise EndpointsError(f"{error}; {stands}" if stands else str(error)) from error


def _prepare_ends(
    context: ProjectContext,
    target: Target,
    asked: BisectOptions,
    cells: tuple[Cell, Cell],
    locks: dict[str, Lock],
) -> tuple[tuple[End, End], tuple[str, ...]]:
    """Return both ends, and the requirements of the target in addition to them.

    A requirement that resolves to other versions at both ends is part of them. A program has one
    version at both where one goes with both.
    """
    wanted = (
        target.wanted
        if isinstance(target, SuiteTest)
        else Session(context=context).requirements(asked.wanted)
    )
    layered = () if isinstance(target, Program) else wanted
    ends = ends_of(
        cells, context.releases, preparer_of(context, target, layered),
        locks=locks, cache=context.cache, wanted=layered,
    )  # fmt: skip
    if isinstance(target, Program):
        both = {end.planned.cell.id: end.lock for end in ends}
        wanted = needed_by(target, wanted, both.values())
        if common_versions([end.planned for end in ends], both, wanted, context.cache):
            return ends, wanted
    with suppress(NoSolutionError):  # then the record of that end says so
        return with_additions(ends, wanted, locks=locks, cache=context.cache)
    return ends, wanted


def _report_step(say: Callable[[str], None], packages: int, step: SearchStep[MovedUnits]) -> None:
    say(step_line(step, packages))


def _select_cell(context: ProjectContext, target: Target, text: str) -> Cell:
    """Return the cell that a selector names: of its newest release, for a program on one CPU."""
    if is_cell_id(text):
        return context.cell(text)
    text = on_one_cpu(text) if isinstance(target, Program) else text
    found, _ = context.cells(None, [text])
    return found[-1]


def _collect_sources(target: Target) -> list[str]:
    """Return the Python text of a target and of the helpers of a case; none where it has none."""
    if isinstance(target, Case):
        return sources_of(target)
    source = target.source if isinstance(target, Program) else ""
    return [source] if source else []
