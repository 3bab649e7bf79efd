"""`conformance accept`: make what a run saw the golden."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from conformance.cells.suggest import did_you_mean
from conformance.cli.preparing import prepare_in
from conformance.cli.run import request_of
from conformance.cli.setting import here
from conformance.corpus.select import matches
from conformance.engine.blobs import CorruptBlobError
from conformance.engine.irs import neutral_text
from conformance.engine.judging import Judge, golden_at_fault, observation_of, variant
from conformance.engine.plan import make_plan
from conformance.engine.rundir import RunDirectory, latest_run
from conformance.errors import NothingSelectedError, UsageError
from conformance.golden.accept import AcceptPlan, Candidate, Change, apply, plan_accept
from conformance.model.outcome import Conformance, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.cli.setting import Setting
    from conformance.engine.job import Job
    from conformance.golden.store import GoldenStore
    from conformance.model.record import Record

NEVER = frozenset(
    {Verdict.INFRA, Verdict.EXCLUDED, Verdict.FLAKY, Verdict.CRASHED, Verdict.TIMED_OUT}
)
CASE_ERROR = "CaseError"
"""Exception by which the harness says that the case itself is wrong."""


@click.command("accept", short_help="Make what a run saw the golden.")
@click.argument("select", nargs=-1)
@click.option(
    "--run", "run_dir", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Run directory; the newest by default.",
)  # fmt: skip
@click.option("--cell", multiple=True, metavar="ID", help="Only these cells of the run.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    select: tuple[str, ...],
    run_dir: Path | None,
    cell: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> int:
    """Make what a run saw the golden.

    What deviates from its reference undeclared, crashed, timed out or was flaky is not accepted:
    declare a deviation first, or fix the case. Cases, cells and releases that are not in the run
    keep their goldens. Nothing is written when the variable CI is set.

    \b
    conformance accept                                   all of the newest run
    conformance accept shard_map_while/fixed_point       one case
    conformance accept --run reports/runs/ID --dry-run
    """  # noqa: D301 - \b is click's own mark
    setting = here()
    directory = RunDirectory(run_dir) if run_dir else latest_run(setting.project.root)
    seen = [
        (job, record)
        for job, record in judged(setting, directory, select)
        if not cell or record.cell in cell
    ]
    if not seen:
        raise NothingSelectedError(_nothing(directory, select, cell))
    chosen = [(job, record) for job, record in seen if acceptable(record)]
    refused = [record for _, record in seen if not acceptable(record)]
    plans = _plans(setting, directory, chosen)
    if not dry_run:
        _check_writable(setting, chosen)
        for plan in plans:
            apply(plan)
    _say(plans, refused, as_json=as_json)
    return 1 if refused else 0


def judged(
    setting: Setting, directory: RunDirectory, select: Sequence[str] = ()
) -> list[tuple[Job, Record]]:
    """Return the records of a run with their jobs, judged against the goldens as they are now.

    Args:
        setting: Surroundings of the command.
        directory: The run.
        select: Families, case ids or globs; empty is every case of the run.

    Returns:
        Job and record, in the plan's order; jobs that have no record yet are left out, and a
        record whose blobs are gone is `infra`.

    Raises:
        UsageError: If a case changed since the run.
        CorruptRunError: If the directory cannot be read.
    """
    request = request_of(directory)
    cells, _ = setting.cells(request.matrix, request.cell)
    preparation = prepare_in(setting, cells)
    plan = make_plan(setting.cases(request.select), preparation.cells)
    records = {(record.case, record.cell): record for record in directory.read_records()}
    judge = Judge(directory.blobs)
    pairs = []
    for job in plan.jobs:
        record = records.get(job.id)
        if record is None or not _wanted(job, select):
            continue
        if record.case_hash != job.case.content_hash:
            raise UsageError(
                f"{job.case.file} changed since {directory.path}: run {job.case.id} again first"
            )
        try:
            settled = judge.rejudge(job, record)
        except CorruptBlobError as error:
            reason = f"{error}; run it again: conformance run {job.case.id}"
            settled = replace(
                record, outcome=Outcome.INFRA, verdict=Verdict.INFRA, reasons=(reason,)
            )
        pairs.append((job, settled))
    return pairs


def _nothing(directory: RunDirectory, select: Sequence[str], cells: Sequence[str]) -> str:
    wanted = f" of {', '.join(select)}" if select else ""
    where = f" on {', '.join(cells)}" if cells else ""
    known = sorted({record.case for record in directory.read_records()})
    near = did_you_mean(select[0], known) if select else ""
    return (
        f"{directory.path} holds no record{wanted}{where}{near}, expected one; "
        "`conformance run` makes it"
    )


def acceptable(record: Record) -> bool:
    """Say whether a record may become golden.

    What its case did wrong is nothing about jax; a golden that cannot be read is put right.
    """
    if record.error is not None and record.error.type == CASE_ERROR:
        return False
    if golden_at_fault(record):
        return True
    undeclared = record.verdict is Verdict.REGRESSED and record.conformance is Conformance.DEVIATES
    return record.verdict not in NEVER and not undeclared


def _wanted(job: Job, select: Sequence[str]) -> bool:
    return not select or any(matches(job.case, name) for name in select)


def _plans(
    setting: Setting, directory: RunDirectory, chosen: Iterable[tuple[Job, Record]]
) -> list[AcceptPlan]:
    judge = Judge(directory.blobs)
    by_store: dict[Path, tuple[GoldenStore, list[Candidate]]] = {}
    for job, record in chosen:
        store = judge.store(job)
        candidate = Candidate(
            case=job.case,
            variant=variant(job),
            release=job.planned.release,
            observation=observation_of(record, directory.blobs),
            text=partial(neutral_text, record, directory.blobs),
        )
        by_store.setdefault(store.root, (store, []))[1].append(candidate)
    known = setting.releases.versions
    return [plan_accept(store, candidates, known) for store, candidates in by_store.values()]


def _check_writable(setting: Setting, chosen: Iterable[tuple[Job, Record]]) -> None:
    own = setting.project.cases
    if not setting.project.writable and any(own in job.case.file.parents for job, _ in chosen):
        raise UsageError(
            f"{own}: goldens of an installed package cannot be changed; accept in a checkout, or "
            "keep the cases in a folder of yours"
        )


def _say(plans: Iterable[AcceptPlan], refused: Sequence[Record], *, as_json: bool) -> None:
    plans = list(plans)
    entries = [entry for plan in plans for entry in plan.entries]
    if as_json:
        data = {
            "entries": entries,
            "refused": [
                {"case": r.case, "cell": r.cell, "verdict": r.verdict, "reasons": r.reasons}
                for r in refused
            ],
            "conflicts": [conflict for plan in plans for conflict in plan.conflicts],
        }
        click.echo(msgspec.json.format(msgspec.json.encode(data), indent=1))
        return
    for conflict in (conflict for plan in plans for conflict in plan.conflicts):
        click.echo(conflict)
    for record in refused:
        reason = record.reasons[0] if record.reasons else ""
        click.echo(f"not accepted: {record.case} on {record.cell}: {record.verdict}: {reason}")
    found = Counter(entry.change for entry in entries)
    click.echo(", ".join(f"{found[change]} {change}" for change in Change))
