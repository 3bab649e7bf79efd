"""The data of the matrix page: cells in tracks, cases in families, histories in segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.runs.transitions import TransitionKind
from conformance.model.outcome import Verdict
from conformance.report.site.addresses import case_page, href, slug
from conformance.report.text import flatten
from conformance.report.verdicts import LETTERS, MEANINGS, WORST_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.engine.runs.stored_job import StoredJob
    from conformance.engine.runs.transitions import Timeline, Transition
    from conformance.model.record import Record
    from conformance.report.report import Report
    from conformance.report.tracks import Track

EDGES: Final = {
    TransitionKind.REGRESSED: "r",
    TransitionKind.FIXED: "f",
    TransitionKind.CHANGED: "c",
    TransitionKind.SAME: "s",
}
"""Letter of a change point at the beginning of a segment."""
TICKS: Final = frozenset({"jaxpr", "stablehlo"})
"""IRs whose change is drawn even if nothing else changes.

Optimised HLO changes in most releases, and a mark for it at almost every release marks nothing.
"""
NOT_RUN: Final = "not_run"
"""State of a job that was planned and has no result, because its run did not end."""
NOT_RUN_LETTER: Final = "…"
NOT_RUN_MEANING: Final = "planned, and its run did not end"
MOST_REASON: Final = 240
"""Characters of a reason."""
MOST_TITLE: Final = 160
"""Characters of the first line of a case's docstring."""
ROOM: Final = 300_000
"""Characters of all reasons, because a browser loads them with the first page.

Further segments refer to the page of their case.
"""
BEYOND: Final = "the page of the case says why"


@dataclass(frozen=True, slots=True)
class MatrixSegment:
    """Neighbouring cells of a track in which a case has the same state.

    Attributes:
        length: Number of cells.
        state: Number of the state in the table of states, 0 if nothing was planned.
        edge: Letter of the change at its beginning, empty for none.
        reason: Number of the first job's first reason in the table of reasons, 0 for none.
    """

    length: int
    state: int
    edge: str = ""
    reason: int = 0


@dataclass
class Tables:
    """The tables that segments refer to by number, since most segments share a few states.

    Attributes:
        states: Number by verdict, outcome, conformance, whether it is unexpected, type of error.
        reasons: Number by reason of a verdict.
        room: Characters that further reasons may take.
    """

    # Number 0 of both tables is a cell in which nothing was planned.
    states: dict[tuple[str, str, str, bool, str], int] = field(
        default_factory=lambda: {("", "", "", False, ""): 0}
    )
    reasons: dict[str, int] = field(default_factory=lambda: {"": 0})
    room: int = ROOM

    def number_job(self, record: Record) -> tuple[int, int]:
        """Return the numbers of the state and the reason of a job.

        Args:
            record: Record of the job.
        """
        error = "" if record.error is None else flatten(record.error.type, 60)
        verdict, outcome = str(record.verdict), str(record.outcome)
        state = (verdict, outcome, str(record.conformance), record.unexpected, error)
        reason = record.reasons[0] if record.reasons else ""
        return self._number_state(state), self.number_reason(reason)

    def number_exclusion(self, reason: str) -> tuple[int, int]:
        """Return the numbers of the state and the reason of an exclusion.

        Args:
            reason: Reason of the exclusion.
        """
        state = (str(Verdict.EXCLUDED), NOT_RUN, "unknown", False, "")
        return self._number_state(state), self.number_reason(reason)

    def number_not_run(self) -> tuple[int, int]:
        """Return the numbers of the state and the reason of a job without a result."""
        return self._number_state((NOT_RUN, NOT_RUN, "unknown", False, "")), 0

    def number_reason(self, text: str) -> int:
        """Return the number of a reason.

        Args:
            text: The reason.
        """
        reason = flatten(text, MOST_REASON)
        if reason not in self.reasons and len(reason) > self.room:
            reason = BEYOND
        if reason not in self.reasons:
            self.room -= len(reason)
            self.reasons[reason] = len(self.reasons)
        return self.reasons[reason]

    def _number_state(self, state: tuple[str, str, str, bool, str]) -> int:
        return self.states.setdefault(state, len(self.states))


def make_matrix_data(report: Report) -> dict[str, Any]:
    """Return the data of the script of the matrix page.

    Args:
        report: The runs to report.
    """
    drawing = _MatrixDrawing(report)
    families = [
        {"name": flatten(family), "cases": [drawing.case(name) for name in names]}
        for family, names in report.families.items()
    ]
    return {
        "tracks": [_make_track(track) for track in report.tracks],
        "verdicts": _list_verdicts(),
        "states": [[*state[:3], int(state[3]), state[4]] for state in drawing.tables.states],
        "reasons": list(drawing.tables.reasons),
        "families": families,
    }


def _list_verdicts() -> list[tuple[str, str, str]]:
    """Return name, letter and meaning of each verdict and of `NOT_RUN`, the worst first."""
    # A job without a result is next to a fault of the host: both say nothing about JAX.
    found = [(str(v), LETTERS[v], MEANINGS[v]) for v in WORST_FIRST]
    after = WORST_FIRST.index(Verdict.INFRA) + 1
    return [*found[:after], (NOT_RUN, NOT_RUN_LETTER, NOT_RUN_MEANING), *found[after:]]


def _make_track(track: Track) -> dict[str, Any]:
    cells = [
        [flatten(label), slug(label), flatten(cell.id)]
        for label, cell in zip(track.labels, track.compared_cells, strict=True)
    ]
    return {
        "name": flatten(track.name),
        "slug": slug(track.name),
        "kind": track.kind or "other",
        "cells": cells,
    }


class _MatrixDrawing:
    """Draws the cases of a report.

    Args:
        report: The runs to report.
    """

    def __init__(self, report: Report) -> None:
        self.tables = Tables()
        self._report = report
        self._left_out = {(e.case, e.cell): e.reason for e in report.exclusions}
        self._not_run = frozenset(report.not_run)

    def case(self, name: str) -> dict[str, Any]:
        """Return a case with a row for each track.

        Args:
            name: Case id.
        """
        timelines = self._report.timelines(name)
        return {
            "name": flatten(name),
            "title": find_title(self._report.cases[name].doc),
            "page": href(case_page(name)),
            "rows": [
                self._make_row(name, track, timelines.get(track.name))
                for track in self._report.tracks
            ],
        }

    def _make_row(self, name: str, track: Track, history: Timeline | None) -> list[int | str]:
        cells = [cell.id for cell in track.compared_cells]
        # A case without any job on the track has a row too, with its exclusions.
        jobs = history.jobs if history is not None else (None,) * len(cells)
        points = history.points if history is not None else ()
        edges = {point.after.record.cell: EDGES[point.kind] for point in points if is_drawn(point)}
        shown = [self._number_job(name, cell, job) for cell, job in zip(cells, jobs, strict=True)]
        found = make_segments(shown, [edges.get(cell, "") for cell in cells])
        # A flat list: keys, or a list for each segment, would enlarge the data.
        return [part for s in found for part in (s.length, s.state, s.edge, s.reason)]

    def _number_job(self, case: str, cell: str, job: StoredJob | None) -> tuple[int, int]:
        """Return the numbers of the state and the reason of a case in a cell."""
        if job is not None:
            return self.tables.number_job(job.record)
        if (case, cell) in self._not_run:
            return self.tables.number_not_run()
        # An exclusion without a case excludes the whole cell.
        reason = self._left_out.get((case, cell), self._left_out.get(("", cell)))
        return (0, 0) if reason is None else self.tables.number_exclusion(reason)


def find_title(doc: str) -> str:
    """Return the first line of a case's docstring.

    Args:
        doc: The docstring.
    """
    return flatten(doc.strip().partition("\n")[0], MOST_TITLE)


def is_drawn(point: Transition) -> bool:
    """Say whether a change is drawn: a change of optimised HLO alone is not.

    Args:
        point: The change.
    """
    return point.kind is not TransitionKind.SAME or bool(TICKS & {*point.changed})


def make_segments(shown: Iterable[tuple[int, int]], edges: Iterable[str]) -> list[MatrixSegment]:
    """Return a row of cells as segments, each beginning with another state or with an edge.

    Args:
        shown: Numbers of the state and the reason of each cell.
        edges: Letter of the change that begins in each cell, empty for none.
    """
    # Reasons may differ within a segment, e.g. by a number: only the first is shown.
    found: list[MatrixSegment] = []
    for (state, reason), edge in zip(shown, edges, strict=True):
        if found and not edge and found[-1].state == state:
            last = found[-1]
            found[-1] = MatrixSegment(last.length + 1, state, last.edge, last.reason)
        else:
            found.append(MatrixSegment(1, state, edge, reason))
    return found
