"""`conformance repro`: one file to send upstream."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from conformance.app.bisect import Asked, Subject, searched
from conformance.app.context import load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.session import Session
from conformance.app.targets import on_one_cpu, script_named
from conformance.cli.options import json_option, with_option
from conformance.cli.repro_script import ScriptRepro, repro_script
from conformance.cli.words import CASES, CELLS
from conformance.engine.comparing import compare
from conformance.engine.plan import make_plan
from conformance.engine.rundir import RunDirectory
from conformance.errors import (
    ConformanceError,
    InfrastructureError,
    NothingSelectedError,
    UsageError,
)
from conformance.files import readable_json
from conformance.judge.ways import SAME_AS
from conformance.model.outcome import Conformance
from conformance.report.upstream import Upstream, issue_text
from conformance.triage.bisect.telling import answer_lines
from conformance.triage.repro.carried import LARGEST, load_source
from conformance.triage.repro.check import NotReproducedError, difference
from conformance.triage.repro.header import of_nightlies
from conformance.triage.repro.run import recorded, recorded_span, run_now
from conformance.triage.repro.writing import Written, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.engine.plan import Plan
    from conformance.engine.prepare import Preparation
    from conformance.model.case import Case
    from conformance.triage.repro.run import SeenJob

MOST = 2
TEST = ".py::"
"""What stands in the name of a test, and of no case."""
_NO_NAME = re.compile(r"[^A-Za-z0-9]+")


@click.command("repro")
@click.argument("case", type=CASES)
@click.option(
    "--cell", multiple=True, required=True, metavar="SELECTOR", type=CELLS,
    help="Where it is seen: a cell id, release or latest, maybe with @PLATFORM. A second one, "
    "where it is not, is compared with in --issue.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
    help="File to write; - is standard output.  [default: repro_CASE_RELEASE.py]",
)  # fmt: skip
@click.option("--issue", is_flag=True, help="Print text for upstream's bug template, too.")
@click.option(
    "--good", metavar="RELEASE",
    help="Where it was right: the first bad release from there on is searched for, for --issue.",
)  # fmt: skip
@click.option(
    "--run", "run_dir", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Take what was seen from a run instead of running the case.",
)  # fmt: skip
@click.option(
    "--no-check", is_flag=True,
    help="Write the file without running it alone first.",
)  # fmt: skip
@with_option
@json_option("{file, cell, command, checked}")
def command(
    *,
    case: str,
    cell: tuple[str, ...],
    out: Path | None,
    issue: bool,
    good: str | None,
    run_dir: Path | None,
    no_check: bool,
    wanted: tuple[str, ...],
    json_file: Path | None,
) -> int:
    """Write one Python file that does what a case or a script does on a cell.

    CASE may be a script, or a report that holds one, as for `conformance bisect`: its file is the
    script with a header.

    Its header pins the packages of the cell (PEP 723), so that `uv run FILE` is all it takes. It
    ends with status 0 where the case conforms, else as was seen: by the same exception, or by an
    assertion on the value or the facts. The command runs it in an empty folder to check that.
    The file carries the modules that no index has: those of --with, and those beside a script.

    \b
    conformance repro 'shard_map_while/while_carry[check_on]' --cell 0.5.3
    conformance repro CASE --cell 0.6.2 --out bug.py --issue > issue.md
    conformance repro report.py --cell 0.6.2 --good 0.5.3 --issue > issue.md
    conformance repro CASE --cell 0.8.3 --cell 0.8.2 --issue     with how their IRs differ
    conformance repro CASE --cell 0.8.3 --good 0.5.3 --issue     with the first bad release
    conformance repro CASE --cell 'latest@tpu:v5e:2x2'           compiled, no TPU needed
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if (script := script_named(context, case)) is not None:
        _refuse_of_script(cell, run_dir, good, issue=issue)
        asked = ScriptRepro(
            script=script, cell=context.cell(on_one_cpu(cell[0])), out=out, issue=issue, good=good,
            wanted=wanted, check=not no_check, json_file=json_file,
        )  # fmt: skip
        return repro_script(context, asked)
    if TEST in case and not context.snapshots(case):
        raise UsageError(
            f"{case}: is a test of a suite, expected a case; its own file shows it: "
            f"conformance suite run --cell {cell[0]} --shrink {quote(case)}"
        )
    chosen = context.case(case)
    cells = [context.cell(text) for text in cell]
    if len(cells) > MOST:
        raise UsageError(f"got {len(cells)} cells, expected the one, and maybe one to compare with")
    if good is not None and not issue:
        raise UsageError(f"--good {good}: goes with --issue")
    file = out or Path(_file_name(chosen, cells[0]))
    name = _file_name(chosen, cells[0]) if str(file) == "-" else file.name
    beside = Session(context=context).requirements(wanted)
    source, own = load_source(chosen, beside, _read)
    plan, preparation = _plan(context, chosen, cells, beside)
    _check_outputs(file, json_file, issue=issue)
    with _seen(context, plan, preparation, run_dir) as jobs:
        if no_check:
            written, failure = write(jobs[0].job, source, jobs[0].seen, name, own), None
        else:
            written, failure = _checked(context, jobs[0], beside, name)
        write_file("--out", file, written.text.encode())
        if failure is not None:
            raise failure
        if issue:
            history = "" if good is None else _history(context, chosen, cells[0], good)
            click.echo(issue_text(_upstream(jobs, written, history)), nl=False)
    run_by = _run_by(cells[0], file)
    if json_file is not None:
        told = {
            "file": str(file), "cell": cells[0].id, "command": run_by, "checked": not no_check,
        }  # fmt: skip
        write_file("--json", json_file, readable_json(told))
    _tell(file, jobs[0], written, run_by)
    return 0


def _refuse_of_script(
    cells: tuple[str, ...], run_dir: Path | None, good: str | None, *, issue: bool
) -> None:
    """Refuse what is asked of cases alone."""
    if len(cells) > 1:
        raise UsageError(f"got {len(cells)} cells, expected one for a script; --good compares")
    if run_dir is not None:
        raise UsageError("--run: goes with a case, got a script")
    if good is not None and not issue:
        raise UsageError(f"--good {good}: goes with --issue")


def _run_by(cell: Cell, file: Path) -> str:
    """Return the command that runs a file."""
    python = "uv run" if cell.interpreter is None else quote(str(cell.interpreter))
    return f"{python} {quote(str(file))}"


def _checked(
    context: ProjectContext, job: SeenJob, beside: tuple[str, ...], name: str
) -> tuple[Written, ConformanceError | None]:
    """Return the file, and the error if it does not end alone as the case did.

    One that carries packages in vain is tried with packages that are required: they may come with
    more than their modules.
    """
    index = context.settings.nightly_index if of_nightlies(job.job.planned.versions) else ""
    tried: list[tuple[Written, ConformanceError]] = []
    for largest in (LARGEST, 0):
        source, own = load_source(job.job.case, beside, _read, largest=largest)
        written = write(job.job, source, job.seen, name, own)
        try:
            with Session(context=context).device_lock.of(job.job.planned.cell.place, lambda: None):
                told = difference(written, job, name, index)
        except InfrastructureError as error:
            tried.append((written, InfrastructureError(f"{name}: could not be checked: {error}")))
            break
        if not told:
            return written, None
        said = f"{name}: does not show alone what {job.job.case.id} showed: {told}"
        tried.append((written, NotReproducedError(said)))
        if not own.packages:
            break
    return tried[0]


def _check_outputs(file: Path, json_file: Path | None, *, issue: bool) -> None:
    """Find out early that something cannot be written, or that two things go to one place."""
    printed = {"--out -": str(file) == "-", "--json -": str(json_file) == "-", "--issue": issue}
    if sum(printed.values()) > 1:
        names = " and ".join(name for name, given in printed.items() if given)
        raise UsageError(f"{names} both print; expected one of them, name files for the others")
    for option, path in (("--out", file), ("--json", json_file)):
        if path is not None:
            check_writable(option, path)


def _tell(file: Path, job: SeenJob, written: Written, run_by: str) -> None:
    if str(file) != "-":
        click.echo(f"wrote {file}; run it with: {run_by}", err=True)
    if written.unasserted:
        names = ", ".join(written.unasserted)
        silent = "ends with status 0 although the case deviates there: it "
        told = f"does not assert {names}, which takes more than a plain look"
        ways = all(name.startswith(f"{SAME_AS} ") for name in written.unasserted)
        told += "" if ways else "; it prints the HLO"
        click.echo(f"it {silent if written.silent else ''}{told}", err=True)
    if job.seen.conformance is Conformance.CONFORMS:
        click.echo(f"{job.job.case.id} conforms there: the file shows no fault", err=True)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _file_name(case: Case, cell: Cell) -> str:
    name = _NO_NAME.sub("_", case.id.partition("/")[2]).strip("_")
    place = "" if cell.platform == "cpu" else f"_{_NO_NAME.sub('_', cell.platform)}"
    release = "path" if cell.interpreter is not None else cell.release.replace(".", "_")
    return f"repro_{name}_{release}{place}.py"


def _plan(
    context: ProjectContext, case: Case, cells: list[Cell], wanted: tuple[str, ...]
) -> tuple[Plan, Preparation]:
    preparation = Session(context=context).prepare(cells, wanted)
    plan = make_plan([case], preparation.cells, preparation.exclusions)
    for left_out in plan.exclusions:
        raise NothingSelectedError(f"{case.id} on {left_out.cell}: {left_out.reason}")
    if cells[0].place.processes > 1:
        raise UsageError(
            f"{cells[0].id}: a file of its own is one process; "
            f"name a cell of one, e.g. --cell {cells[0].release}"
        )
    return plan, preparation


@contextlib.contextmanager
def _seen(
    context: ProjectContext, plan: Plan, preparation: Preparation, run_dir: Path | None
) -> Iterator[list[SeenJob]]:
    if run_dir is not None:
        yield recorded(plan, RunDirectory(run_dir))
        return
    session = Session(context=context)
    with run_now(plan, session.executor(preparation.locks), session.results) as jobs:
        yield jobs


def _history(context: ProjectContext, case: Case, cell: Cell, good: str) -> str:
    """Search for the release from which on a case does what it does in a cell."""
    if not cell.is_plain:
        raise UsageError(f"--good {good}: goes with a plain cell of a release, got {cell.id}")
    place = f"cpu{cell.devices}" if cell.platform == "cpu" else cell.platform
    asked = Asked(good=good, bad=cell.release, platform=place)
    found = searched(context, Subject(case=case), asked, lambda line: click.echo(line, err=True))
    return "\n".join(answer_lines(found.answer, asked.find, found.axis))


def _upstream(jobs: list[SeenJob], written: Written, history: str) -> Upstream:
    compared = compare(jobs[1].side, jobs[0].side) if len(jobs) == MOST else None
    job = jobs[0].job
    return Upstream(
        case=job.case,
        planned=job.planned,
        observation=jobs[0].seen.observation,
        reasons=jobs[0].seen.reasons,
        file=written.text,
        compared=compared,
        span=recorded_span(job, jobs[0].seen.observation),
        history=history,
    )
