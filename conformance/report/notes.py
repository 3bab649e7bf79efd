"""Notes on jobs and cells, independent of verdicts: near a timeout, run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.report.text import LISTED, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.model.record import Record
    from conformance.model.run import RunCell
    from conformance.report.report import Report


def collect_notes(records: Iterable[Record]) -> list[str]:
    """Return the notes of jobs, a line each, the longest jobs first.

    Args:
        records: Jobs of any runs.
    """
    noted = [record for record in records if record.notes]
    noted.sort(key=lambda record: -record.seconds.get("job", 0.0))
    return [visible(f"{one.case} on {one.cell} {note}") for one in noted for note in one.notes]


def render_notes(records: Iterable[Record]) -> list[str]:
    """Return the first notes of jobs, with how many more there are.

    Args:
        records: Jobs of any runs.
    """
    lines = [f"note: {line}" for line in collect_notes(records)]
    more = len(lines) - LISTED
    return [*lines[:LISTED], f"note: and {more} more like these"] if more > 0 else lines


def collect_cell_notes(cells: Iterable[RunCell]) -> list[str]:
    """Return the notes of cells, a line each.

    Args:
        cells: Cells of any runs.
    """
    return [visible(f"{cell.id}: {cell.note}") for cell in cells if cell.note]


def not_compared(report: Report) -> str:
    """Return why the newest run was not compared with an earlier one, empty if it was.

    Args:
        report: The report on it.
    """
    return visible(report.runs[-1].info.not_compared) if report.runs else ""


def exit_reason(report: Report) -> str:
    """Return why a run has its exit status, empty if there is nothing to say.

    Args:
        report: The report; of several runs together, no run's own exit status holds.
    """
    return visible(report.runs[0].info.exit_reason) if len(report.runs) == 1 else ""


def render_exit(report: Report) -> list[str]:
    """Return a line with the exit status of a run and its reason, if there is something to say.

    Args:
        report: The report.
    """
    reason = exit_reason(report)
    return [f"exit status {report.runs[0].info.exit}: {reason}"] if reason else []
