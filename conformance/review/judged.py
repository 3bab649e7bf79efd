"""A run's records with their jobs, judged by the goldens as they are now; nothing is run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING, Final

from conformance.cells.cell_id import is_cell_id, parse_cell
from conformance.engine.blobs import CorruptBlobError
from conformance.engine.job import Job, PlannedCell
from conformance.engine.record_judge import Judge
from conformance.model.outcome import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.cells.cell import Cell
    from conformance.cells.releases import Releases
    from conformance.engine.run_directory import RunDirectory
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.model.run import RunCell

_ANY: Final = "0.dev0"
"""A release that no table is asked for."""
_PATH_FACTORS: Final = 3
"""What the id of a `path:` cell begins with: `path`, a name, a hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a run showed.

    Attributes:
        jobs: Jobs with their records, in the run's order.
        changed: Cases whose file is no longer as it ran: nothing of theirs is among the jobs.
    """

    jobs: tuple[tuple[Job, Record], ...]
    changed: tuple[Case, ...] = ()


def judged_run(
    directory: RunDirectory,
    cases: Iterable[Case],
    releases: Releases,
    same: Mapping[str, str] | None = None,
) -> Judged:
    """Return the records of a run with their jobs, judged against the goldens as they are now.

    Cells are those that the run had, not what a selector such as `nightly` means today.

    Args:
        directory: The run.
        cases: Cases as they are now; records of others are left out.
        releases: Known releases.
        same: By hash of a case's content as it ran, that of a content that observes the same.

    Returns:
        The jobs; of a record whose blobs are gone the verdict is `infra`.

    Raises:
        CorruptRunError: If the directory cannot be read.
    """
    info = directory.read_run()
    records = {(record.case, record.cell): record for record in directory.read_records()}
    known = {case.id: case for case in cases}
    cells = {cell.id: cell for cell in info.cells}
    planned: dict[str, PlannedCell] = {}
    judge = Judge(directory.blobs)
    pairs: list[tuple[Job, Record]] = []
    changed: dict[str, Case] = {}
    for key in info.plan or tuple(records):
        record, case = records.get(key), known.get(key[0])
        if record is None or case is None or key[1] not in cells:
            continue
        if case.content_hash not in {record.case_hash, (same or {}).get(record.case_hash)}:
            changed[case.id] = case
            continue
        if key[1] not in planned:
            planned[key[1]] = planned_as_run(cells[key[1]], releases)
        job = Job(case=case, planned=planned[key[1]])
        pairs.append((job, _judged(judge, job, record)))
    return Judged(jobs=tuple(pairs), changed=tuple(changed.values()))


def planned_as_run(cell: RunCell, releases: Releases) -> PlannedCell:
    """Return a cell of a run as it was planned for, told by `run.json` alone.

    Args:
        cell: What the run says of it.
        releases: Known releases.

    Raises:
        UsageError: If its id is not understood.
    """
    made = _cell(cell, releases)
    return PlannedCell(
        cell=made,
        versions=cell.versions or {"jax": made.release},
        lock_hash=cell.lock,
        cell_hash=cell.hash,
    )


def _cell(cell: RunCell, releases: Releases) -> Cell:
    if is_cell_id(cell.id):
        return parse_cell(cell.id, releases)
    # The interpreter of a `path:` cell need not be here: what it has is said in `run.json`.
    factors = cell.id.split("-")[_PATH_FACTORS:]
    made = parse_cell("-".join([f"jax{_ANY}", *factors]), releases)
    return replace(made, release=cell.release or made.release)


def _judged(judge: Judge, job: Job, record: Record) -> Record:
    try:
        return judge.rejudge(job, record)
    except CorruptBlobError as error:
        target = job.case.arguments or quote(job.case.id)
        reason = f"{error}; run it again: conformance run {target}"
        return replace(record, outcome=Outcome.INFRA, verdict=Verdict.INFRA, reasons=(reason,))
