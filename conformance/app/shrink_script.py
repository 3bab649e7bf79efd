"""`conformance shrink` of a script: it runs as a process of its own, cut after cut."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.app.bisect import needed_by
from conformance.app.context import TIMEOUT
from conformance.app.output_files import write_file
from conformance.app.session import Session
from conformance.engine.blobs import BlobStore
from conformance.errors import NothingSelectedError, UsageError
from conformance.scratch import temporary_folder
from conformance.triage.programs.running import ProgramRunner
from conformance.triage.programs.single_file import refuse_other_files
from conformance.triage.repro.script_file import ScriptRun, script_file
from conformance.triage.shrink.inquiry import NEAR
from conformance.triage.shrink.scripts import ScriptShrinker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell
    from conformance.triage.programs.target import Target
    from conformance.triage.shrink.scripts import ShrunkScript


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptShrink:
    """Options of `conformance shrink` for a script.

    Attributes:
        script: The script.
        cell: Where it fails, or prints something else.
        others: Cells in which it may be right, the likeliest first.
        named: Whether the other cell was named: then it must be right there.
        wanted: Requirements in addition to the packages of the cells.
        repro: File with a header that pins its packages, None for none.
        probes: How many candidates may be tried.
        seconds: How long that may take.
        jobs: How many are tried at the same time.
    """

    script: Target
    cell: Cell
    others: Sequence[Cell]
    named: bool
    wanted: tuple[str, ...]
    repro: Path | None
    probes: int
    seconds: float
    jobs: int


def shrink_script(
    context: ProjectContext, asked: ScriptShrink, progress: Callable[[str], None]
) -> ShrunkScript:
    """Cut a script down, and write the file of `--repro`.

    Raises:
        UsageError: If there is nothing to keep, or the script reads files of its own.
        InfrastructureError: If a cell cannot be had.
    """
    locks: dict[str, Lock] = {}
    cell = _planned(context, asked.cell, locks)
    wanted = needed_by(
        asked.script, Session(context=context).requirements(asked.wanted), [locks[cell.cell.id]]
    )
    with temporary_folder("shrink") as folder:
        blobs = BlobStore(folder / "blobs")
        runner = ProgramRunner(
            target=asked.script, locks=locks, cache=context.cache, outer=os.environ, blobs=blobs,
            timeout=TIMEOUT, wanted=wanted,
        )  # fmt: skip
        refuse_other_files(runner.run(cell), blobs, asked.script)
        shrunk = ScriptShrinker(
            runner=runner, cell=cell, named=asked.named, folder=folder, probes=asked.probes,
            others=(_planned(context, one, locks) for one in asked.others[:NEAR]),
            seconds=asked.seconds, width=asked.jobs, progress=progress,
        ).run()  # fmt: skip
        if asked.repro is not None:
            file = folder / asked.repro.name
            text = _standalone(runner, cell, shrunk, file)
            write_file("--repro", asked.repro, text.encode())
    return shrunk


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
