"""Accepting: the observations of a run become goldens, and goldens of no case are removed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.app.case_choice import list_cases
from conformance.app.output_files import print_note
from conformance.app.run_request import load_request
from conformance.app.session import Session
from conformance.corpus.case_selection import matches_name, select_cases
from conformance.errors import NothingSelectedError, UsageError
from conformance.golden.accept import apply
from conformance.golden.accept_plan import AcceptEffect
from conformance.golden.cleanup import find_orphans, remove_goldens
from conformance.golden.migration import find_old_documents, migrate_goldens
from conformance.golden.writing import refuse_in_ci
from conformance.locking import lock_folders
from conformance.report.text import sanitize
from conformance.review.judged_jobs import judge_run, needs_no_golden
from conformance.review.outcomes import plan_acceptance
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.engine.runs.directory import RunDirectory
    from conformance.golden.accept_plan import AcceptPlan
    from conformance.model.record import Record
    from conformance.review.judged_jobs import JudgedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The result of accepting a run.

    Attributes:
        plans: The goldens that were written, or would be.
        refused: Records that cannot become golden, each with the reason.
    """

    plans: Sequence[AcceptPlan]
    refused: Sequence[tuple[Record, str]]


def accept_run(
    context: ProjectContext,
    directory: RunDirectory,
    *,
    select: Sequence[str] = (),
    cells: Sequence[str] = (),
    dry_run: bool = False,
) -> Acceptance:
    """Store the results of a run as goldens.

    Args:
        context: The project.
        directory: The run.
        select: Families, case ids or globs to accept; empty is every case of the run.
        cells: Cells to accept; empty is every cell of the run.
        dry_run: Whether to write nothing.

    Raises:
        NothingSelectedError: If the run holds no such record.
        UsageError: If a case changed since the run, or the goldens may not be written.
        CorruptRunError: If the directory cannot be read.
    """
    judged = [
        one
        for one in _judge_records(context, directory, select)
        if not cells or one.record.cell in cells
    ]
    if not judged:
        raise NothingSelectedError(_describe_missing(directory, select, cells))
    # A refused record stops no other: a run with one crash still yields the goldens of the rest.
    chosen = [one for one in judged if not one.refusal]
    refused = [
        (one.record, one.refusal)
        for one in judged
        # A nightly that is as recorded needs no golden: as a refusal it would fail every accept.
        if one.refusal and not needs_no_golden(one.record, one.job.planned.versions)
    ]
    if not directory.read_run().finished:
        print_note(f"run {directory.id} is not finished: jobs without a result keep their goldens")
    known = context.releases.versions
    # Together: one by one, the artifacts of a large run would take minutes.
    directory.blobs.fetch_missing(name for one in chosen for name in one.record.artifacts.values())
    if dry_run:
        # Without the lock: it would create missing golden folders, and a dry run writes nothing.
        return Acceptance(plans=plan_acceptance(chosen, directory.blobs, known), refused=refused)
    # Before the lock: refusing an installed package must not wait for another process.
    check_goldens_writable(context, (one.job.case.file for one in chosen))
    with lock_folders({one.job.case.families for one in chosen}, print_note):
        # Goldens are read and written under one lock, so no change of another writer is lost.
        plans = plan_acceptance(chosen, directory.blobs, known)
        for plan in plans:
            apply(plan)
    return Acceptance(plans=plans, refused=refused)


def remove_goldens_of_no_case(context: ProjectContext, *, dry_run: bool) -> list[str]:
    """Remove the goldens of cases that are no longer in the project's folder of cases.

    Args:
        context: The project.
        dry_run: Whether to remove nothing.

    Returns:
        The files, relative to the folder of cases.

    Raises:
        UsageError: If they are data of an installed package, the variable CI is set, or a case
            file is broken: its goldens may be in use.
    """
    folder = context.project.cases
    # Without a selection: goldens of a case that is merely not selected are no orphans.
    orphans = find_orphans(folder, select_cases((), folder))
    if orphans and not dry_run:
        check_goldens_writable(context, orphans)
        refuse_in_ci()
        with lock_folders({folder}, print_note):
            remove_goldens(orphans)
    return [str(file.relative_to(folder)) for file in orphans]


def convert_goldens(
    context: ProjectContext, selects: Sequence[str], *, dry_run: bool
) -> dict[str, Any]:
    """Convert goldens of an older format.

    Args:
        context: The project.
        selects: Families, case ids, globs, functions or scripts; empty is all of the project.
        dry_run: Whether to list the cases only.

    Returns:
        The result as JSON has it: ids of the cases in `converted`, files in `removed`.

    Raises:
        UsageError: If the goldens are data of an installed package, or the variable CI is set.
        GoldenError: If a golden is corrupt.
    """
    cases = context.select_cases(selects)
    outdated = find_old_documents(cases)
    removed: tuple[Path, ...] = ()
    if outdated and not dry_run:
        check_goldens_writable(context, outdated.values())
        refuse_in_ci()
        with lock_folders({case.families for case in cases}, print_note):
            # Documents are read again under the lock; `outdated` is only the list to report.
            _, removed = migrate_goldens(cases)
    return {"converted": list(outdated), "removed": [str(file) for file in removed]}


def check_goldens_writable(context: ProjectContext, files: Iterable[Path]) -> None:
    """Make sure that goldens next to some case files may be written.

    Args:
        context: The project.
        files: The case files, or files of their goldens.

    Raises:
        UsageError: If they are data of an installed package.
    """
    # Cases outside of the folder of the project are the user's own, also where the project is
    # installed.
    own = context.project.cases
    if not context.project.writable and any(own in file.parents for file in files):
        raise UsageError(
            f"{own}: goldens of an installed package cannot be changed; accept in a checkout, or "
            "keep the cases in a folder of yours"
        )


def make_acceptance_json(acceptance: Acceptance) -> dict[str, Any]:
    """Return the result of accepting as JSON has it.

    Args:
        acceptance: The result.
    """
    return {
        "entries": [entry for plan in acceptance.plans for entry in plan.entries],
        "refused": [
            {
                "case": record.case,
                "cell": record.cell,
                "verdict": record.verdict,
                "reasons": (*record.reasons, reason),
            }
            for record, reason in acceptance.refused
        ],
        "conflicts": [conflict for plan in acceptance.plans for conflict in plan.conflicts],
    }


def render_acceptance(acceptance: Acceptance) -> Iterator[str]:
    """Yield the result of accepting in lines: conflicts, refusals and counts.

    Args:
        acceptance: The result.
    """
    for plan in acceptance.plans:
        yield from plan.conflicts
    for record, why in acceptance.refused:
        reason = record.reasons[0] if record.reasons else ""
        shown = f"{record.verdict}: {reason}" if reason else str(record.verdict)
        # A record is untrusted input: its reason may contain control codes.
        yield sanitize(f"not accepted: {record.case} on {record.cell}: {shown} ({why})")
    counts = Counter(entry.change for plan in acceptance.plans for entry in plan.entries)
    yield ", ".join(f"{counts[change]} {change}" for change in AcceptEffect)


def _judge_records(
    context: ProjectContext, directory: RunDirectory, select: Sequence[str]
) -> tuple[JudgedJob, ...]:
    """Return the selected records of a run with their jobs, judged by the goldens as they are now.

    Jobs without a record are left out; a record whose blobs are gone is `infra`.
    """
    selected = [
        case
        # The request of the run is selected from first, so that paths and generated cases mean the
        # same cases as in the run.
        for case in list_cases(context, load_request(directory))
        if not select or any(matches_name(case, text) for text in select)
    ]
    # The verdicts in the records are those at the time of the run; the goldens may have changed.
    judge = Session(context=context).make_judge(directory.blobs)
    judged = judge_run(directory, selected, context.releases, judge)
    # The record shows the old code of the case: accepting it would vouch for code that never ran.
    if judged.changed:
        case = judged.changed[0]
        raise UsageError(f"{case.file} changed since {directory.path}: run {case.id} again first")
    return judged.jobs


def _describe_missing(directory: RunDirectory, select: Sequence[str], cells: Sequence[str]) -> str:
    """Return the message for a selection that the run holds no record of."""
    wanted = f" of {', '.join(select)}" if select else ""
    where = f" on {', '.join(cells)}" if cells else ""
    known = sorted({record.case for record in directory.read_records()})
    near = did_you_mean(select[0], known) if select else ""
    return (
        f"{directory.path} holds no record{wanted}{where}{near}, expected one; "
        "`conformance run` makes it"
    )
