"""Shrinking a case or a script: the cells that are compared, the workers, what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.app.output_files import write_file
from conformance.app.session import Session
from conformance.app.shrink_script import ScriptShrink, shrink_script
from conformance.app.targets import on_one_cpu, script_named
from conformance.cells.selectors import cell_python
from conformance.corpus.discover import discover
from conformance.engine.blobs import BlobStore
from conformance.engine.cache import ResultCache
from conformance.engine.local import CellWorker
from conformance.engine.plan import make_plan, why_not
from conformance.errors import UsageError
from conformance.scratch import temporary_folder
from conformance.triage.repro.run import run_now
from conformance.triage.repro.source import extract
from conformance.triage.repro.writing import write
from conformance.triage.shrink.inquiry import Inquiry, Wanted
from conformance.triage.shrink.telling import script_json, script_lines, shrunk_json, shrunk_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.model.case import Case, Deviation
    from conformance.triage.programs.target import Target
    from conformance.triage.shrink.inquiry import Shrunk
    from conformance.triage.shrink.scripts import ShrunkScript

NO_OTHER_CELL: Final = "none"
"""What --good-cell says where none is to be looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkOptions:
    """Options of `conformance shrink`.

    Attributes:
        target: A case, a script, or a report that holds one.
        cell: Selector of the cell in which it is wrong.
        good_cell: Selector of a cell in which it is right, None to look for one.
        fact: A fact of the optimised HLO to keep, empty for none.
        wanted: Requirements of a script in addition to the packages of the cells.
        out: File that is written, `-` for standard output.
        repro: File that needs nothing of the harness, None for none.
        probes: How many smaller programs may be tried.
        seconds: How long that may take.
        jobs: How many are tried at the same time.
    """

    target: str
    cell: str
    good_cell: str | None
    fact: str
    wanted: tuple[str, ...]
    out: Path
    repro: Path | None
    probes: int
    seconds: float
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkResult:
    """The smallest case or script that was found.

    Attributes:
        shrunk: It, and whether it was confirmed.
        lines: What to print about it.
        data: The same for `--json`.
    """

    shrunk: Shrunk | ShrunkScript
    lines: tuple[str, ...]
    data: Mapping[str, Any]


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _other_cells(
    context: ProjectContext, cell: Cell, good: str | None, deviations: Iterable[Deviation] = ()
) -> tuple[tuple[Cell, ...], bool]:
    """Return cells in which a target may be right, the likeliest first, and whether it is named."""
    if good == NO_OTHER_CELL:
        return (), False
    if good is not None:
        named = context.cell(good)
        if named == cell:
            raise UsageError(f"--good-cell {good}: the same cell twice, expected two")
        return (named,), True
    declared = tuple(deviations)
    found = [
        replace(cell, release=release, python=cell_python(release, context.releases))
        for release in context.releases.nearest_to(cell.release)
        if not any(one.covers(release, cell.platform, {"jax": release}) for one in declared)
    ]
    return tuple(found), False


def _opener(context: ProjectContext, case: Case) -> Callable[[Cell], CellWorker]:
    """Return what opens a worker of a cell, once it is known that the case runs there."""
    session = Session(context=context)

    def open_cell(cell: Cell) -> CellWorker:
        if cell.place.processes > 1:
            raise UsageError(f"{cell.id}: several processes; name one cell of one process")
        preparation = session.prepare([cell])
        for exclusion in preparation.exclusions:
            raise UsageError(f"{exclusion.cell}: {exclusion.reason}")
        (planned,) = preparation.cells
        if reason := why_not(case, planned):
            raise UsageError(f"{case.id} on {cell.id}: {reason}")
        return CellWorker(planned, session.opener(preparation.locks), session.device_lock)

    return open_cell


def _standalone(
    context: ProjectContext, wanted: Wanted, shrunk: Shrunk, folder: Path, name: str
) -> bytes:
    """Return what is left as one file that needs nothing of ours."""
    file = folder / "file" / wanted.case.family / f"{wanted.case.topic}.py"
    file.parent.mkdir(parents=True)
    file.write_text(shrunk.text, encoding="utf-8")
    (case,) = discover([file])
    session = Session(context=context)
    preparation = session.prepare([wanted.cell])
    plan = make_plan([case], preparation.cells, preparation.exclusions)
    executor = session.executor(preparation.locks)
    with run_now(plan, executor, ResultCache(folder / "cache")) as jobs:
        source = extract(file, case.name, _read)
        return write(jobs[0].job, source, jobs[0].seen, name).text.encode()


def shrink_target(
    context: ProjectContext, options: ShrinkOptions, progress: Callable[[str], None]
) -> ShrinkResult:
    """Shrink a case or a script, and write the file of `--repro`.

    Args:
        context: The project.
        options: The target and the limits of the search.
        progress: Called with a line for each step.

    Raises:
        UsageError: If there is nothing to keep, or an option does not go with the target.
        InfrastructureError: If a cell cannot be had.
    """
    script = script_named(context, options.target)
    if script is not None:
        return _shrink_script(context, options, script, progress)
    if options.wanted:
        raise UsageError(f"--with {options.wanted[0]}: goes with a script, got a case")
    case, cell = context.case(options.target), context.cell(options.cell)
    others, named = _other_cells(context, cell, options.good_cell, case.deviations)
    wanted = Wanted(
        case=case, cell=cell, others=others, named=named, fact=options.fact,
        probes=options.probes, seconds=options.seconds, width=options.jobs,
    )  # fmt: skip
    repro = options.repro
    with temporary_folder("shrink") as folder:
        shrunk = Inquiry(
            wanted=wanted, open_cell=_opener(context, case), read=_read, folder=folder,
            blobs=BlobStore(folder / "blobs"), progress=progress,
        ).run()  # fmt: skip
        if repro is not None:
            write_file("--repro", repro, _standalone(context, wanted, shrunk, folder, repro.name))
    data = shrunk_json(shrunk, case.id, str(options.out))
    return ShrinkResult(shrunk=shrunk, lines=tuple(shrunk_lines(shrunk)), data=data)


def _shrink_script(
    context: ProjectContext,
    options: ShrinkOptions,
    script: Target,
    progress: Callable[[str], None],
) -> ShrinkResult:
    if options.fact:
        raise UsageError(f"--fact {options.fact}: goes with a case, got a script")
    cell, good = context.cell(on_one_cpu(options.cell)), options.good_cell
    if good not in {None, NO_OTHER_CELL}:
        good = on_one_cpu(str(good))
    others, named = _other_cells(context, cell, good)
    shrunk = shrink_script(
        context,
        ScriptShrink(
            script=script, cell=cell, others=others, named=named, wanted=options.wanted,
            repro=options.repro, probes=options.probes, seconds=options.seconds,
            jobs=options.jobs,
        ),
        progress,
    )  # fmt: skip
    data = script_json(shrunk, script.text, str(options.out))
    return ShrinkResult(shrunk=shrunk, lines=tuple(script_lines(shrunk)), data=data)
