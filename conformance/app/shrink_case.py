"""`conformance shrink` of a case: workers of its cells try one candidate after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.app.output_files import write_file
from conformance.app.session import Session
from conformance.app.shrink_options import ShrinkResult, find_good_cells
from conformance.corpus.discover import discover
from conformance.engine.blobs import BlobStore
from conformance.engine.local import CellWorker
from conformance.engine.plan import make_plan, why_not
from conformance.engine.result_cache import ResultCache
from conformance.errors import UsageError
from conformance.scratch import temporary_folder
from conformance.triage.repro.run import run_now
from conformance.triage.repro.source import extract
from conformance.triage.repro.writing import write
from conformance.triage.shrink.inquiry import Inquiry, Wanted
from conformance.triage.shrink.telling import shrunk_json, shrunk_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.app.shrink_options import Report, ShrinkOptions
    from conformance.cells.cell import Cell
    from conformance.model.case import Case
    from conformance.triage.shrink.inquiry import Shrunk


def shrink_case(
    context: ProjectContext, target: str, options: ShrinkOptions, report: Report
) -> ShrinkResult:
    """Cut a case down, and write the file of `--repro`.

    Args:
        context: The project.
        target: The case.
        options: The options.
        report: Opens the progress display of the search; yields a function that is called with
            each step, in a line.

    Raises:
        UsageError: If there is nothing to keep, or an option goes with a script.
        InfrastructureError: If a cell cannot be provided.
    """
    if options.wanted:
        raise UsageError(f"--with {options.wanted[0]}: goes with a script, got a case")
    case, cell = context.case(target), context.cell(options.cell)
    others, named = find_good_cells(context, cell, options.good_cell, case.deviations)
    wanted = Wanted(
        case=case, cell=cell, others=others, named=named, fact=options.fact, probes=options.probes,
        seconds=options.seconds, width=options.jobs,
    )  # fmt: skip
    with temporary_folder("shrink") as folder:
        with report() as progress:
            shrunk = Inquiry(
                wanted=wanted, open_cell=_opener(context, case), read=_read, folder=folder,
                blobs=BlobStore(folder / "blobs"), progress=progress,
            ).run()  # fmt: skip
        if options.repro is not None:
            content = _standalone(context, wanted, shrunk, folder, options.repro.name)
            write_file("--repro", options.repro, content)
    data = shrunk_json(shrunk, case.id, str(options.out))
    return ShrinkResult(shrunk=shrunk, lines=tuple(shrunk_lines(shrunk)), data=data)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _opener(context: ProjectContext, case: Case) -> Callable[[Cell], CellWorker]:
    """Return a function that opens a worker of a cell, if the case runs there."""
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
    with run_now(plan, executor, ResultCache(folder / "cache"), session.judge) as jobs:
        source = extract(file, case.name, _read)
        return write(jobs[0].job, source, jobs[0].seen, name).text.encode()
