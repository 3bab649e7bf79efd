"""`conformance blame`: which of the packages that two environments differ in is at fault."""

from __future__ import annotations

from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.app.bisect import FIGURES, Asked, needed_by, prober_of
from conformance.app.context import load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.session import Session
from conformance.app.targets import on_one_cpu, subject_named
from conformance.cells.cell_id import is_cell_id
from conformance.cells.uvtool import NoSolutionError
from conformance.cli.console import open_console
from conformance.cli.options import json_option
from conformance.cli.suite_options import in_suite_options
from conformance.cli.target_options import measure_options, program_options
from conformance.cli.words import CASES, RELEASES
from conformance.engine.rundir import RESULTS, Results, RunDirectory
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.triage.bisect.points import RESTART
from conformance.triage.bisect.prober import known_of
from conformance.triage.blame.additions import with_additions
from conformance.triage.blame.blaming import Blame
from conformance.triage.blame.ends import ends_of, provide
from conformance.triage.blame.suspects import sources_of, suspects
from conformance.triage.blame.telling import answer_json, answer_lines, step_line
from conformance.triage.programs.common_versions import common_versions
from conformance.triage.questions.predicate import EndsError
from conformance.triage.questions.question import PREDICATES

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.app.bisect import Subject
    from conformance.app.context import ProjectContext
    from conformance.app.suite_target import InSuite
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.triage.blame.additions import Originals
    from conformance.triage.blame.blamed import Blamed, Step
    from conformance.triage.blame.mixture import End

LOGS: Final = Path("reports") / "blame"
"""Where searches are logged, below the project."""


@click.command("blame")
@click.argument("target", type=CASES)
@click.argument("before", metavar="FROM", type=RELEASES)
@click.argument("after", metavar="TO", type=RELEASES)
@click.option(
    "--when", type=click.Choice([*PREDICATES, *FIGURES]), default=None,
    help="What tells the two apart.  [default: whatever does]",
)  # fmt: skip
@click.option(
    "--fact", default="", metavar="NAME",
    help="A fact of the optimised HLO that does, e.g. collectives.all-gather.",
)  # fmt: skip
@measure_options
@program_options
@in_suite_options
@click.option("--fresh", is_flag=True, help="Try also what the log of an earlier search knows.")
@json_option("what was found")
def command(
    *,
    target: str,
    before: str,
    after: str,
    is_command: bool,
    suite: InSuite,
    json_file: Path | None,
    **options: Any,
) -> int:
    """Find the package that changed what a target does, of all that two environments differ in.

    TARGET is a case id, a Python script, the node id of a pytest test, or a command line, as for
    `conformance bisect`. FROM and TO each name one cell: a release, latest, a specifier for its
    newest release, path:/env/bin/python, maybe with @PLATFORM, or a cell id.

    \b
    conformance blame report.py 0.9.0.1 0.9.2
    conformance blame shard_map_while/fori_from[zeros] 0.5.3 0.8.3
    conformance blame report.py jax0.6.2-py311-cpu1-numpy1.26.4 0.6.2 --when output
    conformance blame report.py path:/env/bin/python latest
    conformance blame my_package:loss 0.9.0 0.9.2 --with ./my-package
    conformance blame CASE '0.8.2@tpu:v5e:2x2' '0.8.3@tpu:v5e:2x2' --fact collectives.all-gather

    Both ends are tried first, then mixtures of both: the versions of FROM, and of some packages
    those of TO. What is found is tried once more. Every trial is logged: a search that was
    interrupted goes on where it was. Exit status: 0 found, 1 flaky or not to be found, 2 usage,
    4 infrastructure, 70 internal error, 130 interrupted.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    asked = Asked(good=before, bad=after, **options)
    console = open_console(json_file)
    subject = subject_named(context, target, asked, suite, is_command=is_command)
    try:
        found = _blamed(context, subject, asked, console.print)
    except KeyboardInterrupt:
        click.echo(f"conformance: interrupted; {RESTART}", err=True)
        return ExitCode.INTERRUPTED
    for line in ("", *answer_lines(found)):
        console.print(line)
    if json_file is not None:
        write_file("--json", json_file, readable_json(answer_json(found, target)))
    return ExitCode.OK if found.confirmed else ExitCode.UNEXPECTED


def _blamed(
    context: ProjectContext, subject: Subject, asked: Asked, say: Callable[[str], None]
) -> Blamed:
    """Search, going on where an earlier search with the same question was."""
    figure = asked.figure
    cells = (_cell(context, subject, asked.good), _cell(context, subject, asked.bad))
    locks: dict[str, Lock] = {}
    ends, originals, wanted = _ends(context, subject, asked, cells, locks)
    locks |= {end.planned.cell.id: end.lock for end in ends}
    for original in filter(None, originals):
        say(f"{original.planned.cell.id}: {original.stand_in} stands for it")
    name = subject.log_name(" ".join((asked.good, asked.bad, asked.words, *asked.wanted)))
    directory = RunDirectory(context.project.root / LOGS / name)
    if asked.fresh:
        (directory.path / RESULTS).unlink(missing_ok=True)
    width = 1 if figure is not None else len(ends)
    prober = prober_of(
        context, subject, locks, directory, asked,
        width=width, ends=[end.planned for end in ends], wanted=wanted,
    )  # fmt: skip
    with closing(Results(directory)) as log:
        blame = Blame(
            ends=ends, originals=originals, suspects=suspects(_sources(subject), ends),
            prober=prober, locks=locks,
            provide=partial(
                # A program finds its requirements where it runs.
                provide, ends=ends, cache=context.cache, wanted=() if subject.program else wanted
            ),
            blobs=directory.blobs, keep=log.append,
            known=known_of(prober, directory.read_records(), directory.blobs),
            tolerance=subject.tolerance, when="" if figure else asked.when or "", fact=asked.fact,
            figure=figure, progress=partial(_tell, say),
        )  # fmt: skip
        try:
            return blame.run()
        except EndsError as error:
            stands = "; ".join(f"{one.stand_in} stands for an end" for one in originals if one)
            raise EndsError(f"{error}; {stands}" if stands else str(error)) from error


def _ends(
    context: ProjectContext,
    subject: Subject,
    asked: Asked,
    cells: tuple[Cell, Cell],
    locks: dict[str, Lock],
) -> tuple[tuple[End, End], Originals, tuple[str, ...]]:
    """Return both ends, what they stand for, and what else the target needs there.

    A requirement that resolves to other versions at both ends is part of them. A program has one
    version at both where one goes with both.
    """
    test = subject.test
    wanted = (
        test.wanted if test is not None else Session(context=context).requirements(asked.wanted)
    )
    layered = () if subject.program is not None else wanted
    ends, originals = ends_of(
        cells, context.releases, subject.prepare(context, layered),
        locks=locks, cache=context.cache, wanted=layered,
    )  # fmt: skip
    if subject.program is not None:
        both = {end.planned.cell.id: end.lock for end in ends}
        wanted = needed_by(subject.program, wanted, both.values())
        if common_versions([end.planned for end in ends], both, wanted, context.cache):
            return ends, originals, wanted
    with suppress(NoSolutionError):  # then the record of that end says so
        return with_additions(ends, originals, wanted, locks=locks, cache=context.cache)
    return ends, originals, wanted


def _tell(say: Callable[[str], None], step: Step, packages: int) -> None:
    say(step_line(step, packages))


def _cell(context: ProjectContext, subject: Subject, text: str) -> Cell:
    """Return the cell that a selector names: of its newest release, for a program on one CPU."""
    if is_cell_id(text):
        return context.cell(text)
    text = on_one_cpu(text) if subject.program is not None else text
    found, _ = context.cells(None, [text])
    return found[-1]


def _sources(subject: Subject) -> list[str]:
    """Return the Python text of a target and of the helpers of a case; none where it has none."""
    if subject.case is not None:
        return sources_of(subject.case)
    source = subject.program.source if subject.program is not None else ""
    return [source] if source else []
