"""`conformance shrink`: a case cut down to what makes it fail."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.app.context import default_jobs, load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.session import Session
from conformance.app.shrink_script import ScriptShrink, shrink_script
from conformance.app.targets import on_one_cpu, script_named
from conformance.cells.selectors import cell_python
from conformance.cli.console import open_console
from conformance.cli.options import json_option, with_option
from conformance.cli.words import CASES, CELLS
from conformance.corpus.discover import discover
from conformance.engine.blobs import BlobStore
from conformance.engine.cache import ResultCache
from conformance.engine.local import CellWorker
from conformance.engine.plan import make_plan, why_not
from conformance.errors import UsageError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.scratch import temporary_folder
from conformance.triage.repro.run import run_now
from conformance.triage.repro.source import extract
from conformance.triage.repro.writing import write
from conformance.triage.shrink.inquiry import Inquiry, Wanted
from conformance.triage.shrink.telling import (
    script_json,
    script_lines,
    shrunk_json,
    shrunk_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rich.console import Console

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.model.case import Case, Deviation
    from conformance.triage.shrink.inquiry import Shrunk
    from conformance.triage.shrink.scripts import ShrunkScript

INTERVAL: Final = 2.0
"""Seconds between two lines where there is no terminal."""
NONE: Final = "none"
"""What --good-cell says where none is to be looked for."""


@click.command("shrink")
@click.argument("case", type=CASES)
@click.option(
    "--cell", required=True, metavar="SELECTOR", type=CELLS, help="Where the case deviates."
)
@click.option(
    "--good-cell", metavar="SELECTOR", type=CELLS,
    help="Where it is right: what is left must be right there too. `none` asks of no other cell.  "
    "[default: the nearest release in which it does]",
)  # fmt: skip
@click.option(
    "--fact", default="", metavar="NAME",
    help="Keep a fact of the optimised HLO instead, e.g. collectives.all-reduce.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path, allow_dash=True), default="-", metavar="FILE",
    help="Case file to write.  [default: standard output]",
)  # fmt: skip
@click.option(
    "--repro", type=click.Path(path_type=Path), metavar="FILE",
    help="Also write one file that needs nothing of ours, as `conformance repro` does.",
)  # fmt: skip
@with_option
@json_option("what was found")
@click.option(
    "--probes", type=click.IntRange(min=1), default=400, show_default=True,
    help="How many smaller programs may be tried.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=300.0, show_default=True,
    help="How long they may take.",
)  # fmt: skip
@click.option(
    "--jobs", "-j", type=click.IntRange(min=1), default=default_jobs,
    help="How many are tried at the same time.  [default: one a core]",
)  # fmt: skip
def command(
    *,
    case: str,
    cell: str,
    good_cell: str | None,
    fact: str,
    out: Path,
    repro: Path | None,
    wanted: tuple[str, ...],
    json_file: Path | None,
    probes: int,
    seconds: float,
    jobs: int,
) -> int:
    """Cut a case or a script down to what makes it fail, give a wrong value, or state a fact.

    CASE may be a script, or a report that holds one, as for `conformance bisect`. Shrinking a
    script keeps its error, or the difference between its output here and in the other cell. Each
    candidate runs as a process of its own.

    What is left is a case file: fewer statements and operations, smaller shapes, fewer devices,
    and the same error, raised by the same function; or a value that is wrong in the same way.
    Each cut is tried where the case deviates and where it conforms. The code is read and rewritten,
    never edited in place: comments are lost.

    \b
    conformance shrink 'shard_map_while/fori_from[zeros]' --cell 0.6.2
    conformance shrink CASE --cell 0.6.2 --good-cell 0.5.3 --out cases/my_family/small.py
    conformance shrink CASE --cell 0.6.2 --repro bug.py
    conformance shrink report.py --cell 0.6.2 --out small.py
    conformance shrink CASE --cell '0.8.3@tpu:v5e:2x2' --fact collectives.all-gather

    Exit status: 0 done and confirmed, 1 what is left is flaky, 2 usage, or nothing to keep,
    4 infrastructure, 70 internal error, 130 interrupted: the smallest so far is written.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    _check_outputs(out, json_file, repro)
    console = open_console(stderr=True)
    if (script := script_named(context, case)) is not None:
        if fact:
            raise UsageError(f"--fact {fact}: goes with a case, got a script")
        place = context.cell(on_one_cpu(cell))
        good = good_cell if good_cell in {None, NONE} else on_one_cpu(str(good_cell))
        others, named = _others(context, place, good)
        asked = ScriptShrink(
            script=script, cell=place, others=others, named=named, wanted=wanted, repro=repro,
            probes=probes, seconds=seconds, jobs=jobs,
        )  # fmt: skip
        with console.status("", spinner="line") as status:
            progress = status.update if console.is_terminal else _Lines(console).tell
            left = shrink_script(context, asked, progress)
        data = script_json(left, script.text, str(out))
        return _end(console, left, script_lines(left), data, out=out, json_file=json_file)
    if wanted:
        raise UsageError(f"--with {wanted[0]}: goes with a script, got a case")
    chosen, place = context.case(case), context.cell(cell)
    others, named = _others(context, place, good_cell, chosen.deviations)
    question = Wanted(
        case=chosen, cell=place, others=others, named=named, fact=fact, probes=probes,
        seconds=seconds, width=jobs,
    )  # fmt: skip
    with temporary_folder("shrink") as folder:
        with console.status("", spinner="line") as status:
            inquiry = Inquiry(
                wanted=question, open_cell=_opener(context, chosen), read=_read, folder=folder,
                blobs=BlobStore(folder / "blobs"),
                progress=status.update if console.is_terminal else _Lines(console).tell,
            )  # fmt: skip
            shrunk = inquiry.run()
        if repro is not None:
            write_file("--repro", repro, _standalone(context, question, shrunk, folder, repro.name))
    data = shrunk_json(shrunk, chosen.id, str(out))
    return _end(console, shrunk, shrunk_lines(shrunk), data, out=out, json_file=json_file)


def _end(
    console: Console,
    shrunk: Shrunk | ShrunkScript,
    lines: Iterable[str],
    data: Mapping[str, Any],
    *,
    out: Path,
    json_file: Path | None,
) -> int:
    """Write what is left, report it, and return the exit status."""
    if str(json_file) != "-" or str(out) != "-":
        write_file("--out", out, shrunk.text.encode())
    if json_file is not None:
        write_file("--json", json_file, readable_json(data))
    for line in lines:
        console.print(line, soft_wrap=True)
    if shrunk.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.OK if shrunk.confirmed else ExitCode.UNEXPECTED


class _Lines:
    """Tells what is done where there is no terminal, now and then."""

    def __init__(self, console: Console) -> None:
        self._console, self._next = console, 0.0

    def tell(self, text: str) -> None:
        """Print what is done, unless something was printed just now."""
        if time.monotonic() >= self._next:
            self._console.print(text, soft_wrap=True)
            self._next = time.monotonic() + INTERVAL


def _check_outputs(out: Path, json_file: Path | None, repro: Path | None) -> None:
    """Find out early that something cannot be written."""
    for option, path in (("--out", out), ("--json", json_file), ("--repro", repro)):
        if path is not None and str(path) != "-":
            check_writable(option, path)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _others(
    context: ProjectContext, cell: Cell, good: str | None, deviations: Iterable[Deviation] = ()
) -> tuple[tuple[Cell, ...], bool]:
    """Return cells in which a target may be right, the likeliest first, and whether it is named."""
    if good == NONE:
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
