"""`conformance diff`: how two IRs, two cells or two runs differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click
from rich.progress import track

from conformance.app.context import load_context
from conformance.app.diff_inputs import (
    STDIN,
    cases_of,
    cells_of,
    is_file,
    named_run,
    no_cell,
    read_text,
    records_of,
    run_of,
    wrong,
)
from conformance.cli import diff_suite
from conformance.cli.console import open_console
from conformance.cli.words import CASES, CELLS
from conformance.engine.comparing import (
    NORMAL,
    ComparedIr,
    Level,
    Side,
    compare,
    compare_within,
    difference,
    grouped,
    text_of,
)
from conformance.engine.rundir import latest_run
from conformance.engine.transitions import Kind, transition
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import readable_json
from conformance.ir.analysis import analyse
from conformance.ir.change import IrDiff
from conformance.ir.graph import CROSS_LOWERED, IRS, IrSyntaxError, kind_of_artifact
from conformance.ir.normal.text import head_of
from conformance.ir.reading import PARSERS
from conformance.model.run import RunCase
from conformance.report.ir_terminal import Detail, DiffReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.engine.blobs import BlobStore
    from conformance.engine.comparing import ComparedJobs, IrText
    from conformance.engine.rundir import RunDirectory
    from conformance.engine.suite_changes import Changed
    from conformance.engine.transitions import Transition
    from conformance.model.record import Record

ARTIFACTS = (*IRS, *CROSS_LOWERED)
PAIR = 2
MANY = 50
"""Jobs from which it is shown how the comparison gets on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is compared, and how it is told.

    Attributes:
        cells: Selectors of cells.
        irs: The IRs to compare, by artifact; None for what says something of its own.
        between: Two IRs of each job, to be compared instead of jobs.
        level: What counts as equal.
        detail: How much is shown.
        as_json: Whether JSON is printed.
        only_changed: Whether IRs are left out, and jobs that are the same.
    """

    cells: tuple[str, ...]
    irs: tuple[str, ...] | None
    between: tuple[str, str] | None
    level: Level
    detail: Detail
    as_json: bool
    only_changed: bool = False


@click.command("diff")
@click.argument("what", nargs=-1, type=CASES, metavar="[A B | SELECT... | RUN RUN [SELECT...] | A]")
@click.option(
    "--cell", multiple=True, metavar="SELECTOR", type=CELLS,
    help="Cells of a run, by id, release or specifier; the first is compared with each other.",
)  # fmt: skip
@click.option("--run", "run_dir", metavar="RUN", help="Run with --cell; the newest by default.")
@click.option(
    "--ir", multiple=True, type=click.Choice(ARTIFACTS), metavar="ARTIFACT",
    help=f"IRs to compare, of {', '.join(ARTIFACTS)}; by default all that say something of their "
    "own.",
)  # fmt: skip
@click.option(
    "--between", nargs=2, type=click.Choice(ARTIFACTS), metavar="A B",
    help="Compare two IRs of each job, e.g. its StableHLO with that for another platform.",
)  # fmt: skip
@click.option(
    "--kind", type=click.Choice(tuple(PARSERS)), help="What files hold, if it is not recognised."
)
@click.option(
    "--level", type=click.Choice([level.value for level in Level]),
    default=Level.STRUCTURE.value, show_default=True,
    help="What counts as equal: the same structure, or the same work however it is grouped.",
)  # fmt: skip
@click.option(
    "--only-changed", is_flag=True,
    help="Jobs that regressed, changed or were fixed, by root cause; no IRs.",
)  # fmt: skip
@click.option("--patterns", is_flag=True, help="A line for each pattern, and nothing else.")
@click.option("--full", is_flag=True, help="Every line of the excerpts, every fact that differs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    what: tuple[str, ...],
    cell: tuple[str, ...],
    run_dir: str | None,
    ir: tuple[str, ...],
    between: tuple[str, str] | None,
    kind: str | None,
    level: str,
    only_changed: bool,
    patterns: bool,
    full: bool,
    as_json: bool,
) -> int:
    """Say how two IRs, two cells or two runs differ, in patterns.

    \b
    Two files: HLO, StableHLO in the generic form, jaxprs as runs keep them, or goldens;
    compressed ones (.zst) too; - is standard input.
        conformance diff before.hlo after.hlo
        conformance diff before.hlo after.hlo --level neutral --json
    \b
    Cases in two cells of a run, by default the newest. SELECT is a family, a case id or a glob.
        conformance diff shard_map_while/while_carry --cell 0.5.3 --cell 0.8.3
        conformance diff 'nnx_*' --cell 0.6.2 --cell '>=0.8' --ir hlo --run reports/runs/ID
    \b
    Two platforms: what a program is lowered to for its own cell and, without its wheels, for
    another: --between takes two of stablehlo, stablehlo-tpu, stablehlo-cuda and stablehlo-rocm.
        conformance diff --cell 0.10.2 --between stablehlo stablehlo-tpu
    \b
    Two runs, by folder or id: every job that both have, grouped by the same set of changes.
        conformance diff RUN_A RUN_B
        conformance diff RUN_A RUN_B --only-changed
        conformance diff RUN_A RUN_B aot_placement --cell 0.8.3 --patterns
    \b
    Tests of a suite, in two cells or two runs: what became of them; --full names every one.
        conformance diff --cell 0.5.3 --cell 0.8.3
    \b
    One file, or one case in one cell: its normal form as text, which is what goldens hold and
    what the claim `filecheck` of a case matches; with --json its facts as well.
        conformance diff after.hlo
        conformance diff shard_map_while/while_carry --cell 0.8.3 --ir hlo

    Exit status: 0 equal on the level asked for, 1 different, 2 usage, 3 nothing to compare.
    """  # noqa: D301 - \b is click's own mark
    if patterns and full:
        raise UsageError("--patterns and --full: give one of them")
    detail = Detail.PATTERNS if patterns else Detail.FULL if full else Detail.SHORT
    context = load_context()
    wanted = Wanted(
        cells=cell,
        irs=ir or None,
        between=between,
        level=Level(level),
        detail=detail,
        as_json=as_json,
        only_changed=only_changed,
    )
    if only_changed and (ir or between):
        raise UsageError("--only-changed leaves IRs out: give no --ir or --between with it")
    if any(map(is_file, what)):
        about_jobs = {
            "--cell": cell, "--run": run_dir, "--ir": ir, "--between": between,
            "--only-changed": only_changed,
        }  # fmt: skip
        for name, given in about_jobs.items():
            if given:
                raise UsageError(f"{name} is about jobs of runs, got files: {' '.join(what)}")
        return _files(what, kind, wanted)
    if kind is not None:
        raise UsageError("--kind says what files hold; jobs of runs are chosen with --ir")
    runs = [(name, run) for name in what[:PAIR] if (run := run_of(context, name)) is not None]
    if runs and run_dir is not None:
        raise UsageError(f"--run {run_dir}: {runs[0][0]} is a run already, expected only one")
    if len(runs) == PAIR:
        return _runs(context, runs[0][1], runs[1][1], what[PAIR:], wanted)
    if runs or not cell:
        raise UsageError(wrong(context, what, [name for name, _ in runs]))
    directory = named_run(context, run_dir) if run_dir else latest_run(context.project.root)
    return _cells(context, directory, what, wanted)


def _files(names: tuple[str, ...], kind: str | None, wanted: Wanted) -> int:
    if len(names) > PAIR:
        raise UsageError(f"got {len(names)} files, expected two to compare, or one to print")
    if names.count(STDIN) == PAIR:
        raise UsageError("- is standard input, which can be only one of the two")
    texts = [read_text(name, kind) for name in names]
    kinds = [text.kind for text in texts]
    if len(set(kinds)) > 1:
        said = ", ".join(f"{n} is {k}" for n, k in zip(names, kinds, strict=True))
        raise UsageError(f"{said}; expected two texts of one kind")
    for name, text in zip(names, texts, strict=True):
        try:
            if len(names) == 1:
                form = _normal_form(text)
                if wanted.as_json:
                    _print_json(form)
                else:
                    click.echo(form["text"], nl=False)
                return 0
            text.module()
        except IrSyntaxError as error:
            raise UsageError(f"{name}: {error}") from None
    diff = difference(*texts)
    if wanted.as_json:
        _print_json(_told(diff))
    else:
        _report(wanted).texts((names[0], names[1]), diff)
    return 0 if wanted.level.equal(diff) else 1


def _cells(
    context: ProjectContext, directory: RunDirectory, selects: Sequence[str], wanted: Wanted
) -> int:
    if wanted.between is not None:
        return _between(context, directory, selects, wanted.between, wanted)
    records = records_of(directory)
    cases = cases_of(selects, records, directory.id)
    base, *others = cells_of(context, directory, wanted.cells)
    if not others:
        found = [records[case, base] for case in cases if (case, base) in records]
        return _one_cell(found, directory, wanted)
    info = directory.read_run()
    if wanted.irs is None and diff_suite.is_of_tests(info, cases):
        changes = diff_suite.within(records, cases, base, others)
        return _tell_tests(changes, (base, " or ".join(others)), wanted)
    described = info.cases
    pairs = [
        Pair(
            (directory.blobs, directory.blobs),
            (records.get((case, base)), records.get((case, other))),
            described.get(case, RunCase()),
        )
        for case in cases
        for other in others
    ]
    return _tell(pairs, (base, " or ".join(others)), wanted)


def _between(
    context: ProjectContext,
    directory: RunDirectory,
    selects: Sequence[str],
    names: tuple[str, str],
    wanted: Wanted,
) -> int:
    """Compare two IRs of each job of the cells chosen."""
    if wanted.irs or len({kind_of_artifact(name) for name in names}) > 1:
        raise UsageError(f"--between {' '.join(names)}: expected two of one kind, and no --ir")
    records = records_of(directory)
    cases = cases_of(selects, records, directory.id)
    chosen = [
        Side(records[case, cell], directory.blobs)
        for case in cases
        for cell in cells_of(context, directory, wanted.cells)
        if (case, cell) in records
    ]
    jobs = [job for side in chosen if (job := compare_within(side, *names)) is not None]
    if not jobs:
        raise NothingSelectedError(
            f"no job selected of {directory.id} has both {names[0]} and {names[1]}, expected one"
        )
    return _print(jobs, names, wanted)


def _runs(
    context: ProjectContext,
    a: RunDirectory,
    b: RunDirectory,
    selects: Sequence[str],
    wanted: Wanted,
) -> int:
    if wanted.between is not None:
        raise UsageError(f"--between is about jobs of one run, got two; choose it: --run {a.id}")
    ours, theirs = records_of(a), records_of(b)
    both = {**ours, **theirs}
    cases = set(cases_of(selects, both, f"{a.id} and {b.id}"))
    cells = {cell for _, cell in both}
    if wanted.cells:
        named = [cells_of(context, run, wanted.cells, strict=False) for run in (a, b)]
        cells = {*named[0], *named[1]}
        if not cells:
            raise UsageError(no_cell(wanted.cells[0], f"{a.id} and {b.id}", {c for _, c in both}))
    keys = [key for key in both if key[0] in cases and key[1] in cells]
    infos = a.read_run(), b.read_run()
    if wanted.irs is None and all(diff_suite.is_of_tests(info, cases) for info in infos):
        changes = diff_suite.between(infos, (ours, theirs), keys)
        return _tell_tests(changes, (a.id, b.id), wanted)
    described = {**infos[0].cases, **infos[1].cases}
    pairs = [
        Pair(
            (a.blobs, b.blobs),
            (ours.get(key), theirs.get(key)),
            described.get(key[0], RunCase()),
        )
        for key in keys
    ]
    return _tell(pairs, (a.id, b.id), wanted)


def _tell_tests(changes: Sequence[Changed], names: tuple[str, str], wanted: Wanted) -> int:
    every = wanted.detail is Detail.FULL
    return diff_suite.tell(changes, names, json=wanted.as_json, every=every)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two jobs of one case, or the one there is."""

    blobs: tuple[BlobStore, BlobStore]
    records: tuple[Record | None, Record | None]
    case: RunCase

    @property
    def sides(self) -> tuple[Side, Side] | None:
        """Both jobs, None if one is missing."""
        a, b = self.records
        return None if a is None or b is None else (Side(a, self.blobs[0]), Side(b, self.blobs[1]))

    def alone(self, side: int) -> str:
        """Return the job in words if it is the only one of the two, else nothing."""
        one = self.records[side]
        return f"{one.case} on {one.cell}" if one is not None and self.sides is None else ""


def _tell(pairs: Sequence[Pair], names: tuple[str, str], wanted: Wanted) -> int:
    """Compare jobs, print how they differ, and return the exit status."""
    both = [(sides, pair.case) for pair in pairs if (sides := pair.sides) is not None]
    if not both:
        raise NothingSelectedError(
            f"no case selected has a job in both {names[0]} and {names[1]}, expected one; another "
            "run is named with --run, `conformance run` makes one"
        )
    console = open_console(stderr=True)
    silent = len(both) < MANY or not console.is_terminal
    irs = () if wanted.only_changed else wanted.irs
    jobs = [
        compare(*sides, irs, quick=not wanted.as_json)
        for sides, _ in track(both, "comparing", console=console, transient=True, disable=silent)
    ]
    changes = [transition(*sides, case) for sides, case in both]
    status = _print(jobs, names, wanted, changes)
    if not wanted.as_json:
        for side, name in enumerate(names):
            alone = list(dict.fromkeys(filter(None, (p.alone(side) for p in pairs))))
            _report(wanted).alone(name, alone)
    return status


def _print(
    jobs: Sequence[ComparedJobs],
    names: tuple[str, str],
    wanted: Wanted,
    changes: Sequence[Transition] = (),
) -> int:
    """Print how jobs differ, and return the exit status."""
    if wanted.as_json:
        kinds: list[Kind | None] = [change.kind for change in changes]
        kinds = kinds or [None] * len(jobs)  # of IRs of one job nothing changed
        told = _kinds_told if wanted.only_changed else _jobs_told
        _print_json(list(told(jobs, kinds)))
    elif len(jobs) == 1 and not wanted.only_changed:
        _report(wanted).job(jobs[0])
    else:
        _report(wanted).many(names, jobs, grouped(jobs, wanted.level), changes)
    if wanted.only_changed:
        return int(any(change.kind is not Kind.SAME for change in changes))
    return 0 if all(job.equal(wanted.level) for job in jobs) else 1


def _one_cell(records: Sequence[Record], directory: RunDirectory, wanted: Wanted) -> int:
    found = [
        (record, text)
        for record in records
        for ir in wanted.irs or IRS
        if (text := text_of(Side(record, directory.blobs), ir)) is not None
    ]
    if not found:
        raise NothingSelectedError(
            f"{directory.path} holds no {' or '.join(wanted.irs or IRS)} of what is selected, "
            "expected one to print; name a second --cell to compare"
        )
    forms = []
    for record, text in found:
        where = {"case": record.case, "cell": record.cell, "ir": text.kind}
        try:
            forms.append({**where, **_normal_form(text)})
        except IrSyntaxError as error:
            raise UsageError(f"{record.case} on {record.cell}: {error}") from None
    if wanted.as_json:
        _print_json(forms)
    else:
        click.echo("\n".join(form["text"] for form in forms), nl=False)
    return 0


def _normal_form(text: IrText) -> dict[str, Any]:
    """Return the form `neutral` of a text, with what else is known of it."""
    if text.text.startswith(NORMAL):
        return {"kind": text.kind, "neutral": head_of(text.text).fingerprint, "text": text.text}
    return {"kind": text.kind, **asdict(analyse(text.text, text.kind, with_text=True))}


def _report(wanted: Wanted) -> DiffReport:
    return DiffReport(open_console(), wanted.level, wanted.detail)


def _told(diff: IrDiff) -> dict[str, Any]:
    """Return a difference as the contract of `--json` has it."""
    return {
        "equal": diff.equal,
        "neutral_equal": diff.neutral_equal,
        "changes": diff.changes,
        "facts": diff.facts,
        "matched": diff.matched,
        "changed": diff.changed,
        "unmatched": diff.unmatched,
        "not_understood": diff.not_understood,
    }


def _jobs_told(
    jobs: Sequence[ComparedJobs], kinds: Sequence[Kind | None]
) -> Iterator[dict[str, Any]]:
    """Yield each IR of each job; one that has none, once."""
    for job, kind in zip(jobs, kinds, strict=True):
        for one in job.irs or (ComparedIr(ir="", problem="neither has an IR"),):
            diff = one.diff or IrDiff(kind=one.ir, equal=False, neutral_equal=False)
            yield {**_job_told(job, kind), "ir": one.ir, "problem": one.problem, **_told(diff)}


def _kinds_told(
    jobs: Sequence[ComparedJobs], kinds: Sequence[Kind | None]
) -> Iterator[dict[str, Any]]:
    """Yield each job that regressed, changed or was fixed."""
    for job, kind in zip(jobs, kinds, strict=True):
        if kind is not Kind.SAME:
            yield _job_told(job, kind)


def _job_told(job: ComparedJobs, kind: Kind | None) -> dict[str, Any]:
    return {
        "case": job.case,
        "cells": job.cells,
        "outcomes": job.outcomes,
        "transition": kind,
        "said": job.said,
    }


def _print_json(data: Any) -> None:
    click.echo(readable_json(data))
