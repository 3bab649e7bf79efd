"""Tables for spreadsheets: the matrix of verdicts, and a row for each job."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.model.outcome import Outcome, Verdict
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.report.report import Report

MOST: Final = 2_000
"""Characters of a text; a cell of Excel holds 32,767."""
_FORMULA: Final = tuple("=+-@＝＋－＠")  # noqa: RUF001 - some spreadsheets take the wide signs for the others
JOB: Final = (
    "case",
    "cell",
    "track",
    "release",
    "platform",
    "outcome",
    "conformance",
    "verdict",
    "reason",
    "signature",
    "seconds",
)
"""The columns of a row for a job."""


class _Place(NamedTuple):
    """Where a cell is."""

    track: str = ""
    release: str = ""
    platform: str = ""


def render_matrix_csv(report: Report) -> str:
    """Return the verdict of each case in each cell: `not_run` of a job that never ended.

    Cells are in the order of their tracks and releases; a field is empty where nothing was planned.

    Args:
        report: The runs to report.
    """
    verdicts: dict[tuple[str, str], str] = {
        key: side.record.verdict for key, side in report.jobs.items()
    }
    verdicts.update(dict.fromkeys(report.not_run, Outcome.NOT_RUN))
    verdicts.update({(e.case, e.cell): Verdict.EXCLUDED for e in report.exclusions if e.case})
    # An exclusion without a case excludes a whole cell.
    whole = {e.cell: str(Verdict.EXCLUDED) for e in report.exclusions if not e.case}
    # A cell that could not be planned is in no track, and still gets its column.
    cells = list(dict.fromkeys([*_find_places(report), *(cell for _, cell in verdicts), *whole]))
    rows = (
        [case, *(verdicts.get((case, cell), whole.get(cell, "")) for cell in cells)]
        for case in sorted({case for case, _ in verdicts})
    )
    return _write_csv(["case", *cells], rows)


def render_jobs_csv(report: Report) -> str:
    """Return a row for each job, for each that never ended, and for each that was left out.

    Args:
        report: The runs to report.
    """
    return _write_csv(JOB, _list_jobs(report))


def _list_jobs(report: Report) -> Iterator[Sequence[str | float]]:
    places = _find_places(report)
    nowhere = _Place()
    for (case, cell), side in report.jobs.items():
        yield [case, cell, *places.get(cell, nowhere), *_describe_record(side.record)]
    for case, cell in report.not_run:
        yield [case, cell, *places.get(cell, nowhere), Outcome.NOT_RUN, "", "", "", "", ""]
    for left_out in report.exclusions:
        place = places.get(left_out.cell, nowhere)
        result = ["", "", Verdict.EXCLUDED, left_out.reason, "", ""]
        yield [left_out.case, left_out.cell, *place, *result]


def _describe_record(record: Record) -> Iterator[str | float]:
    yield from (record.outcome, record.conformance, record.verdict)
    yield "; ".join(reason[:MOST] for reason in record.reasons)
    yield "" if record.error is None else record.error.signature
    # Empty instead of 0, which a spreadsheet would include in a mean.
    seconds = record.seconds.get("job")
    yield "" if seconds is None else round(seconds, 3)


def _find_places(report: Report) -> Mapping[str, _Place]:
    """Return where each cell is, in the order of tracks and releases."""
    return {
        cell.id: _Place(track.name, cell.release, track.kind)
        for track in report.tracks
        for cell in track.cells
    }


def _write_csv(heading: Sequence[str], rows: Iterable[Sequence[str | float]]) -> str:
    out = io.StringIO()
    # Texts are quoted, because spreadsheets guess the delimiter: a semicolon or a tab in a reason
    # would start another column.
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(map(_escape_field, heading))
    writer.writerows(map(_escape_field, row) for row in rows)
    return out.getvalue()


def _escape_field(field: str | float) -> str | float:
    """Return a field that a spreadsheet shows and does not calculate."""
    if not isinstance(field, str):
        return field
    text = flatten(field, MOST)
    # Reasons come from cases and shards of others: a formula in one would run when it is opened.
    return f"'{text}" if text.startswith(_FORMULA) else text
