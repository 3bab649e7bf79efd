"""`conformance shrink` of a script: it runs as a process of its own, cut after cut."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.app.bisect import needed_by
from conformance.app.context import TIMEOUT
from conformance.app.output_files import write_file
from conformance.app.session import Session
from conformance.app.shrink_options import NONE, ShrinkResult, find_good_cells
from conformance.app.target_lookup import on_one_cpu
from conformance.engine.blobs import BlobStore
from conformance.errors import NothingSelectedError, UsageError
from conformance.scratch import temporary_folder
from conformance.triage.programs.running import ProgramRunner
from conformance.triage.programs.single_file import refuse_other_files
from conformance.triage.repro.script_file import ScriptRun, script_file
from conformance.triage.shrink.inquiry import NEAR
from conformance.triage.shrink.scripts import ScriptShrinker
from conformance.triage.shrink.telling import script_json, script_lines

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.app.shrink_options import Report, ShrinkOptions
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell
    from conformance.triage.programs.program import Program
    from conformance.triage.shrink.scripts import ShrunkScript


def shrink_script(
    context: ProjectContext, script: Program, options: ShrinkOptions, report: Report
) -> ShrinkResult:
    """Cut a script down, and write the file of `--repro`.

    Args:
        context: The project.
        script: The script.
        options: The options.
        report: Opens the progress display of the search; yields a function that is called with
            each step, in a line.

    Raises:
        UsageError: If there is nothing to keep, an option goes with a case, or the script reads
            files of its own.
        InfrastructureError: If a cell cannot be provided.
    """
    if options.fact:
        raise UsageError(f"--fact {options.fact}: goes with a case, got a script")
    cell = context.cell(on_one_cpu(options.cell))
    good = options.good_cell
    good = good if good is None or good == NONE else on_one_cpu(good)
    others, named = find_good_cells(context, cell, good)
    with report() as progress, temporary_folder("shrink") as folder:
        locks: dict[str, Lock] = {}
        planned = _planned(context, cell, locks)
        given = Session(context=context).requirements(options.wanted)
        blobs = BlobStore(folder / "blobs")
        runner = ProgramRunner(
            target=script, locks=locks, cache=context.cache, outer=os.environ, blobs=blobs,
            timeout=TIMEOUT, wanted=needed_by(script, given, [locks[planned.cell.id]]),
        )  # fmt: skip
        refuse_other_files(runner.run(planned), blobs, script)
        shrunk = ScriptShrinker(
            runner=runner, cell=planned, named=named, folder=folder, probes=options.probes,
            others=(_planned(context, one, locks) for one in others[:NEAR]),
            seconds=options.seconds, width=options.jobs, progress=progress,
        ).run()  # fmt: skip
        if options.repro is not None:
            text = _standalone(runner, planned, shrunk, folder / options.repro.name)
            write_file("--repro", options.repro, text.encode())
    data = script_json(shrunk, script.text, str(options.out))
    return ShrinkResult(shrunk=shrunk, lines=tuple(script_lines(shrunk)), data=data)


def _planned(context: ProjectContext, cell: Cell, locks: dict[str, Lock]) -> PlannedCell:
    if cell.place.processes > 1 or cell.place.compile_only:
        raise UsageError(f"{cell.id}: expected a release on cpu for a script")
    preparation = Session(context=context).prepare([cell])
    for left_out in preparation.exclusions:
        raise NothingSelectedError(f"{cell.id}: {left_out.reason}")
    locks |= preparation.locks
    return preparation.cells[0]


def _standalone(runner: ProgramRunner, cell: PlannedCell, shrunk: ShrunkScript, file: Path) -> str:
    """Return what is left with a header that pins its packages."""
    file.write_text(shrunk.text, encoding="utf-8")
    runner = replace(runner, target=replace(runner.target, text=str(file)))
    record = runner.run(cell)
    run = ScriptRun(
        name=file.name, source=shrunk.text, planned=cell, versions=runner.versions(cell),
        outcome=record.outcome, error=record.error,
        stdout=runner.blobs.get(record.artifacts["stdout"]).decode("utf-8", "replace"),
        variables=runner.target.variables,
    )  # fmt: skip
    return script_file(run, file.name)
