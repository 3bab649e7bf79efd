"""The nightlies of a run: a resumed or divided run keeps those it began with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from conformance.cells.cell import is_unresolved_id, parse_cell
from conformance.cells.nightly import night_of, stable_cell_ids
from conformance.cells.releases import is_nightly

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.cells.cell import Cell
    from conformance.cells.releases import Releases
    from conformance.engine.plan import Plan
    from conformance.engine.run_directory import RunDirectory


def nights_of(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return the ids of those cells that are of a nightly."""
    return tuple(c.id for c in cells if c.is_unresolved or is_nightly(c.release))


def newest_night(cells: Iterable[Cell]) -> str:
    """Return the day of the newest nightly of some cells, empty if there is none."""
    releases = [cell.release for cell in cells if is_nightly(cell.release)]
    days = (night_of(Version(release)) for release in releases)
    return max((day.isoformat() for day in days if day is not None), default="")


def with_its_nights(
    cells: Sequence[Cell], nights: Iterable[str], releases: Releases
) -> tuple[Cell, ...]:
    """Return the cells of a run that goes on: its nightlies are those that it began with.

    Of those that could not be told then, what is meant now.

    Args:
        cells: The cells as they are meant now.
        nights: Ids of the nightly cells that the run began with.
        releases: Known releases.
    """
    began = {place: cell for cell, place in stable_cell_ids(nights).items()}
    known = {place: cell for place, cell in began.items() if not is_unresolved_id(cell)}
    meant = stable_cell_ids(nights_of(cells))
    return tuple(
        parse_cell(known[meant[cell.id]], releases) if meant.get(cell.id) in known else cell
        for cell in cells
    )


def drop_untold(directory: RunDirectory, plan: Plan) -> None:
    """Remove the records of nightlies that could not be told, and are known since.

    Args:
        directory: The run.
        plan: What it runs now.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    planned = {job.id for job in plan.jobs}
    records = directory.read_records()
    kept = [
        record
        for record in records
        if (record.case, record.cell) in planned or not is_unresolved_id(record.cell)
    ]
    if len(kept) < len(records):
        directory.write_records(kept)
