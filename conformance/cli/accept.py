"""`conformance accept`: make what a run saw the golden."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import click

from conformance.app.context import load_context
from conformance.app.notes import print_note
from conformance.cells.suggest import did_you_mean
from conformance.cli.options import recorded_options
from conformance.cli.run import request_of
from conformance.cli.words import CASES
from conformance.corpus.select import matches, select_cases
from conformance.engine.rundir import RunDirectory, latest_run
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import readable_json
from conformance.golden.accept import AcceptPlan, Change, apply, refuse_in_ci
from conformance.golden.sweep import of_no_case, remove
from conformance.locking import locked
from conformance.report.text import visible
from conformance.review.judged import judged_run
from conformance.review.refusing import passed_over, refusal
from conformance.review.writing import accept_plans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.engine.job import Job
    from conformance.model.record import Record


class Left(NamedTuple):
    """A job that is not accepted, and why."""

    record: Record
    reason: str


@click.command("accept")
@click.argument("select", nargs=-1, type=CASES)
@recorded_options
@click.option("--gone", is_flag=True, help="Remove the goldens of cases that are gone instead.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    select: tuple[str, ...],
    run_dir: Path | None,
    cell: tuple[str, ...],
    gone: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Make what a run saw the golden.

    What deviates from its reference undeclared, crashed, timed out or was flaky is not accepted:
    declare a deviation first, or fix the case. What a nightly or a development build showed is
    never golden. Cases, cells and releases that are not in the run keep their goldens. Nothing is
    written when the variable CI is set. To look at changes first: conformance review.

    \b
    conformance accept                                   all of the newest run
    conformance accept shard_map_while/fixed_point       one case
    conformance accept --run reports/runs/ID --dry-run
    conformance accept --gone                            after cases were renamed or removed
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if gone:
        if select or run_dir or cell:
            raise UsageError("--gone is about all cases of the project: no SELECT, --run or --cell")
        remove_gone(context, dry_run=dry_run, as_json=as_json)
        return 0
    directory = RunDirectory(run_dir) if run_dir else latest_run(context.project.root)
    seen = [
        (job, record)
        for job, record in judged(context, directory, select)
        if not cell or record.cell in cell
    ]
    if not seen:
        raise NothingSelectedError(_nothing(directory, select, cell))
    reasons = [refusal(record, job.planned.versions) for job, record in seen]
    chosen = [pair for pair, reason in zip(seen, reasons, strict=True) if not reason]
    refused = [
        Left(record, reason)
        for (job, record), reason in zip(seen, reasons, strict=True)
        if reason and not passed_over(record, job.planned.versions)
    ]
    known = context.releases.versions
    if dry_run:
        plans = accept_plans(chosen, directory.blobs, known)
    else:
        check_goldens_writable(context, (job.case.file for job, _ in chosen))
        with locked({job.case.families for job, _ in chosen}, print_note):
            plans = accept_plans(chosen, directory.blobs, known)
            for plan in plans:
                apply(plan)
    _say(plans, refused, as_json=as_json)
    return 1 if refused else 0


def remove_gone(context: ProjectContext, *, dry_run: bool, as_json: bool) -> None:
    """Remove the goldens of cases that the project's folder of cases has no more.

    Args:
        context: Surroundings of the command.
        dry_run: Only say which they are.
        as_json: Say it as JSON.

    Raises:
        UsageError: If they are data of an installed package, the variable CI is set, or a case
            file is broken: its goldens may be in use.
    """
    folder = context.project.cases
    found = of_no_case(folder, select_cases((), folder))
    if found and not dry_run:
        check_goldens_writable(context, found)
        refuse_in_ci()
        with locked({folder}, print_note):
            remove(found)
    if as_json:
        data = {"removed": [str(file.relative_to(folder)) for file in found]}
        click.echo(readable_json(data))
        return
    for file in found:
        click.echo(visible(str(file.relative_to(folder))))
    click.echo(f"{len(found)} {'to remove' if dry_run else 'removed'}")


def judged(
    context: ProjectContext, directory: RunDirectory, select: Sequence[str] = ()
) -> list[tuple[Job, Record]]:
    """Return the records of a run with their jobs, judged against the goldens as they are now.

    Args:
        context: Surroundings of the command.
        directory: The run.
        select: Families, case ids or globs; empty is every case of the run.

    Returns:
        Job and record, in the plan's order; jobs that have no record yet are left out, and a
        record whose blobs are gone is `infra`.

    Raises:
        UsageError: If a case changed since the run.
        CorruptRunError: If the directory cannot be read.
    """
    cases = context.cases(request_of(directory).select)
    wanted = [case for case in cases if not select or any(matches(case, s) for s in select)]
    found = judged_run(directory, wanted, context.releases)
    if found.changed:
        case = found.changed[0]
        raise UsageError(f"{case.file} changed since {directory.path}: run {case.id} again first")
    return list(found.jobs)


def _nothing(directory: RunDirectory, select: Sequence[str], cells: Sequence[str]) -> str:
    wanted = f" of {', '.join(select)}" if select else ""
    where = f" on {', '.join(cells)}" if cells else ""
    known = sorted({record.case for record in directory.read_records()})
    near = did_you_mean(select[0], known) if select else ""
    return (
        f"{directory.path} holds no record{wanted}{where}{near}, expected one; "
        "`conformance run` makes it"
    )


def check_goldens_writable(context: ProjectContext, files: Iterable[Path]) -> None:
    """Make sure that goldens beside some case files may be written.

    Args:
        context: Surroundings of the command.
        files: The case files, or files of their goldens.

    Raises:
        UsageError: If they are data of an installed package.
    """
    own = context.project.cases
    if not context.project.writable and any(own in file.parents for file in files):
        raise UsageError(
            f"{own}: goldens of an installed package cannot be changed; accept in a checkout, or "
            "keep the cases in a folder of yours"
        )


def _say(plans: Iterable[AcceptPlan], refused: Sequence[Left], *, as_json: bool) -> None:
    plans = list(plans)
    entries = [entry for plan in plans for entry in plan.entries]
    if as_json:
        data = {
            "entries": entries,
            "refused": [
                {
                    "case": record.case,
                    "cell": record.cell,
                    "verdict": record.verdict,
                    "reasons": (*record.reasons, reason),
                }
                for record, reason in refused
            ],
            "conflicts": [conflict for plan in plans for conflict in plan.conflicts],
        }
        click.echo(readable_json(data))
        return
    for conflict in (conflict for plan in plans for conflict in plan.conflicts):
        click.echo(conflict)
    for record, why in refused:
        reason = record.reasons[0] if record.reasons else ""
        told = f"{record.verdict}: {reason}" if reason else str(record.verdict)
        click.echo(visible(f"not accepted: {record.case} on {record.cell}: {told} ({why})"))
    found = Counter(entry.change for entry in entries)
    click.echo(", ".join(f"{found[change]} {change}" for change in Change))
