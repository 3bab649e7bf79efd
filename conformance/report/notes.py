"""What is to be known of how jobs ran, whatever their verdicts: near a timeout, run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.report.text import LISTED, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.model.record import Record


def notes(records: Iterable[Record]) -> list[str]:
    """Return the notes of jobs, a line each, the longest jobs first.

    Args:
        records: Jobs of any runs.
    """
    noted = [record for record in records if record.notes]
    noted.sort(key=lambda record: -record.seconds.get("job", 0.0))
    return [visible(f"{one.case} on {one.cell} {note}") for one in noted for note in one.notes]


def note_lines(records: Iterable[Record]) -> list[str]:
    """Return the first notes of jobs, with how many more there are.

    Args:
        records: Jobs of any runs.
    """
    lines = [f"note: {line}" for line in notes(records)]
    more = len(lines) - LISTED
    return [*lines[:LISTED], f"note: and {more} more like these"] if more > 0 else lines
