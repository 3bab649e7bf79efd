"""`conformance passes`: which pass, flag or option makes a program do what it does."""

from __future__ import annotations

import os
import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

from conformance.app.context import load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.session import Session
from conformance.cli.console import open_console
from conformance.cli.options import json_option
from conformance.cli.target_options import program_options
from conformance.cli.words import CASES, CELLS
from conformance.engine.blobs import BlobStore
from conformance.engine.comparing import Side
from conformance.engine.job import Job
from conformance.engine.plan import why_not
from conformance.errors import InfrastructureError, UsageError
from conformance.files import readable_json
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import ExitCode, Outcome
from conformance.scratch import temporary_folder
from conformance.triage.passes.inquiry import Answers, Inquiry, Step
from conformance.triage.passes.prober import DISABLED, PassProber, judged
from conformance.triage.passes.programs import ProgramPasses
from conformance.triage.passes.question import WHEN, question_between, question_within
from conformance.triage.passes.telling import answer_json, answer_lines, lines_to_paste, step_line
from conformance.triage.programs.running import ProgramRunner
from conformance.triage.programs.target import target_of
from conformance.triage.questions.predicate import Ends, ending, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rich.console import Console

    from conformance.app.context import ProjectContext
    from conformance.cells.accelerators import Turns
    from conformance.engine.job import PlannedCell
    from conformance.engine.prepare import Preparation
    from conformance.model.case import Case
    from conformance.triage.passes.inquiry import Prober
    from conformance.triage.questions.predicate import Predicate


@click.command("passes")
@click.argument("target", type=CASES)
@click.option(
    "--cell", metavar="SELECTOR", type=CELLS, help="The cell in which TARGET does what is asked."
)
@click.option(
    "--good-cell", metavar="SELECTOR", type=CELLS, help="A cell in which it does what it should."
)
@click.option(
    "--bad-cell", metavar="SELECTOR", type=CELLS, help="The same as --cell, beside --good-cell."
)
@click.option(
    "--when", type=click.Choice(WHEN), default=None,
    help="What is asked about.  [default: that it deviates, or whatever tells both cells apart]",
)  # fmt: skip
@click.option(
    "--fact", default="", metavar="NAME[=JSON]",
    help="Ask about a fact of the optimised HLO, e.g. collectives.all-reduce=1.",
)  # fmt: skip
@click.option(
    "--settings/--no-settings", default=True, show_default=True,
    help="Also try XLA flags and options of jax, each alone.",
)  # fmt: skip
@program_options
@click.option("--verbose", "-v", is_flag=True, help="Show every probe.")
@json_option("what was found")
def command(
    *,
    target: str,
    cell: str | None,
    good_cell: str | None,
    bad_cell: str | None,
    when: str | None,
    fact: str,
    settings: bool,
    timeout: float,
    wanted: tuple[str, ...],
    is_command: bool,
    verbose: bool,
    json_file: Path | None,
) -> int:
    """Find the HLO pass, XLA flag or option of jax that makes a program do what it does.

    TARGET is the id of a case that is a program, a Python script, the node id of a pytest test,
    or a command line. Its passes are disabled, many at a time, until a smallest set is known
    without which it does otherwise; then flags and options are tried, each alone.

    \b
    conformance passes my_family/division --cell 0.8.3            why it deviates there
    conformance passes my_family/division --good-cell 0.4.38 --bad-cell 0.8.3
    conformance passes my_family/step --cell 0.8.3 --fact collectives.all-reduce
    conformance passes my_family/step --cell 0.8.3 --when bits    what makes the last bits so
    conformance passes my_family/step --cell '0.8.3@tpu:v5e:2x2' --fact collectives.all-gather=0
    conformance passes report.py --cell 0.8.3                     why a script fails there

    Exit status: 0 found and confirmed, 1 nothing found or flaky, 2 usage, 4 infrastructure,
    70 internal error, 130 interrupted.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    console = open_console(json_file)
    program = target_of(target, command=is_command)
    names = _cells(cell, good_cell, bad_cell)
    cells = [context.cell(name) for name in names]
    session = Session(context=context)
    preparation = session.prepare(cells, wanted if program is None else ())
    places = [_place(preparation, number, name) for number, name in enumerate(names)]
    try:
        with _blobs() as blobs:
            tried: Tried
            if program is None:
                tried = TriedCase(context, preparation, _case(context, target), blobs)
            else:
                runner = ProgramRunner(
                    target=program, locks=preparation.locks, cache=context.cache, outer=os.environ,
                    blobs=blobs, timeout=timeout, wanted=session.requirements(wanted),
                    facts=bool(fact),
                )  # fmt: skip
                tried = TriedProgram(runner)
            answers = _asked(
                tried, places, turns=session.device_lock, when=when or "", fact=fact,
                console=console, verbose=verbose, settings=settings,
            )  # fmt: skip
            console.print(f"{tried.name} on {' and '.join(place.cell.id for place in places)}")
            for line in answer_lines(answers):
                console.print(_wrapped(line, console.width), soft_wrap=True)
            for line in lines_to_paste(answers, places[-1].release):
                console.print(f"paste: {line}", soft_wrap=True)
    except KeyboardInterrupt:
        click.echo("conformance: interrupted; nothing is left running", err=True)
        return ExitCode.INTERRUPTED
    if json_file is not None:
        good = places[0].cell.id if len(places) > 1 else ""
        found = answer_json(answers, target=tried.name, cell=places[-1].cell.id, good_cell=good)
        write_file("--json", json_file, readable_json(found))
    return ExitCode.OK if answers.confirmed else ExitCode.UNEXPECTED


@contextmanager
def _blobs() -> Iterator[BlobStore]:
    with temporary_folder("passes") as folder:
        yield BlobStore(folder)


def _wrapped(line: str, width: int) -> str:
    return textwrap.fill(
        line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _case(context: ProjectContext, text: str) -> Case:
    case = context.case(text)
    if case.kind != "program":
        raise UsageError(
            f"{text}: is a {case.kind}, expected a program: what it compiles is its own affair"
        )
    return case


def _cells(cell: str | None, good: str | None, bad: str | None) -> tuple[str, ...]:
    """Return the selectors of the cells: of the bad one, or of the good and the bad one."""
    if cell and bad:
        raise UsageError("--cell and --bad-cell are the same: give one of them")
    last = cell or bad
    if good and good == last:
        raise UsageError(f"{good}: the same cell twice, expected two")
    if not last:
        raise UsageError("give --cell, or --good-cell and --bad-cell")
    return (good, last) if good else (last,)


def _place(preparation: Preparation, number: int, name: str) -> PlannedCell:
    """Return a cell that is to be had, and is one process.

    Raises:
        UsageError: If it is not.
    """
    for exclusion in preparation.exclusions:
        raise UsageError(f"{exclusion.cell}: {exclusion.reason}")
    planned = preparation.cells[number]
    if planned.cell.place.processes > 1:
        raise UsageError(f"{name}: passes are asked of one process, the cell has several")
    return planned


class Tried(Protocol):
    """What is asked about."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def tolerance(self) -> Tolerance:
        """How far its values may differ."""
        ...

    def seen(self, planned: PlannedCell) -> Side:
        """Return what comes of it in a cell."""
        ...

    def prober(self, planned: PlannedCell) -> AbstractContextManager[Prober]:
        """Return what tries it in a cell again and again."""
        ...


class TriedCase:
    """A case that is a program."""

    def __init__(
        self, context: ProjectContext, preparation: Preparation, case: Case, blobs: BlobStore
    ) -> None:
        self.name = case.id
        self.tolerance = Tolerance.of(case)
        self._case, self._blobs = case, blobs
        session = Session(context=context)
        self._open = session.opener(preparation.locks)
        self._executor = session.executor(preparation.locks)

    def seen(self, planned: PlannedCell) -> Side:
        """Return what comes of it in a cell."""
        return judged(next(self._executor.run([self._job(planned)])), self._blobs)

    def prober(self, planned: PlannedCell) -> PassProber:
        """Return what tries it in a cell again and again."""
        return PassProber(self._open(planned), self._job(planned), self._blobs)

    def _job(self, planned: PlannedCell) -> Job:
        if reason := why_not(self._case, planned):
            raise UsageError(f"{self._case.id} on {planned.cell.id}: {reason}")
        return Job(case=self._case, planned=planned)


class TriedProgram:
    """A script, a test or a command."""

    tolerance = Tolerance()

    def __init__(self, runner: ProgramRunner) -> None:
        self.name = runner.target.text
        self._runner = runner

    def seen(self, planned: PlannedCell) -> Side:
        """Return what comes of it in a cell."""
        return Side(self._runner.run(planned), self._runner.blobs)

    def prober(self, planned: PlannedCell) -> ProgramPasses:
        """Return what tries it in a cell again and again."""
        return ProgramPasses(self._runner, planned)


def _asked(
    tried: Tried,
    places: list[PlannedCell],
    *,
    turns: Turns,
    when: str,
    fact: str,
    console: Console,
    verbose: bool,
    settings: bool,
) -> Answers:
    planned = places[-1]
    good = tried.seen(places[0]) if len(places) > 1 else None
    with (
        console.status("trying the program as it is", spinner="line") as status,
        turns.of(planned.cell.place, lambda: None),
        tried.prober(planned) as prober,
    ):
        bad = prober.compiled({DISABLED: ""})
        for side in filter(None, (good, bad)):
            _check(side)
        predicate = _predicate(places, good, bad, tried.tolerance, when=when, fact=fact)

        def progress(step: Step) -> None:
            status.update(f"tried {step_line(step)[: console.width - 10]}")
            if verbose:
                console.print(step_line(step), soft_wrap=True)

        inquiry = Inquiry(prober, planned.cell, predicate, bad, progress)
        return inquiry.run(settings=settings)


def _check(side: Side) -> None:
    """Refuse a program that a cell cannot run."""
    said = f"{side.record.case} on {side.record.cell}: {quoted(ending(side.record))}"
    if side.record.outcome is Outcome.UNSUPPORTED:
        raise UsageError(said)
    if side.record.outcome in {Outcome.INFRA, Outcome.NOT_RUN}:
        raise InfrastructureError(said)


def _predicate(
    places: list[PlannedCell],
    good: Side | None,
    bad: Side,
    tolerance: Tolerance,
    *,
    when: str,
    fact: str,
) -> Predicate:
    if good is None:
        return question_within(bad, tolerance, when=when, fact=fact)
    names = (places[0].cell.id, places[-1].cell.id)
    ends = Ends(good=good, bad=bad, names=names, tolerance=tolerance)
    return question_between(ends, when=when, fact=fact)
