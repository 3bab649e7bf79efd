"""The history's page: what was unexpected since when, and every family and case by date."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.report.history import NOTHING, carry_forward, encode_run_lengths, find_verdict
from conformance.report.site.addresses import FEED, HISTORY, regression_anchor, run_page, slug
from conformance.report.site.rendering import render
from conformance.report.tracks import make_release_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.model.outcome import Verdict
    from conformance.report.history import History, Ranks, RunPoint
    from conformance.report.report import Report

SEGMENTS: Final = 90
"""Segments of a row; one that has more is drawn by several runs at a time, their worst verdict."""
TICKS: Final = 12
"""Dates above the rows."""
FIXED: Final = 200
"""Regressions that are fixed and shown, those fixed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DateSpan:
    """Neighbouring runs that show the same.

    Attributes:
        state: A verdict, empty where nothing ran.
        length: How many runs.
        said: The same in words, with the dates.
    """

    state: str
    length: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DateRow:
    """The verdicts of a family, a case or a cell by date.

    Attributes:
        name: Its name.
        spans: What it shows, the oldest first.
        coarse: How many runs were taken together, 1 where each is drawn.
    """

    name: str
    spans: tuple[DateSpan, ...]
    coarse: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantVerdict:
    """Cases or cells that showed one verdict throughout; empty if they never ran."""

    verdict: Verdict
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyRows:
    """A family by date: the whole, and its cases.

    Attributes:
        row: The worst verdict of any job of the family.
        anchor: Its anchor.
        rows: Cases whose worst verdict changed.
        constant: Cases whose worst verdict never changed, by verdict.
    """

    row: DateRow
    anchor: str
    rows: tuple[DateRow, ...]
    constant: tuple[ConstantVerdict, ...]


def render_history_pages(history: History, report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield the history's page.

    Args:
        history: The history to show.
        report: What other pages tell of, to link to those alone that are there.

    Yields:
        Path below the site's root, and content.
    """
    still = [regression for regression in history.regressions if regression.is_open]
    ended = [regression for regression in history.regressions if not regression.is_open]
    data = {
        "runs": history.runs,
        "open": still,
        "fixed": ended[:FIXED],
        "more_fixed": len(ended) - len(ended[:FIXED]),
        "ticks": make_ticks(history.runs),
        "families": collect_families(history),
        "highest": max((run.unexpected for run in history.runs), default=0),
        "case_pages": report.cases.keys(),
        "run_pages": {run.id for run in report.runs},
        "run_page": run_page,
        "regression_anchor": regression_anchor,
        "releases_of": partial(_releases, history),
        "feed": FEED,
    }
    yield HISTORY, render("history.html", HISTORY, data)


def _releases(history: History, cells: Iterable[str]) -> list[str]:
    """Return the releases of jax in some cells, where they are known."""
    found = {history.releases[cell] for cell in cells}
    return sorted(filter(None, found), key=make_release_key)


def make_case_history(history: History, case: str) -> dict[str, Any] | None:
    """Return what a case's page shows of its history.

    Args:
        history: The history to show.
        case: Case id.

    Returns:
        `runs` (how many), `first` and `last` (dates), `ticks`, `rows` (cells whose verdict
        changed) and `constant` (the others, by verdict); None where fewer than two runs ran it.
    """
    if case not in history.cases:
        return None
    table = history.of_case(case)
    ran = np.nonzero((table != NOTHING).any(axis=1))[0].tolist()
    if len(ran) < 2:  # noqa: PLR2004 - one point is no history
        return None
    rows, constant = _rows(history.cells, table, history.runs)
    return {
        "runs": len(ran),
        "first": history.runs[ran[0]].date,
        "last": history.runs[ran[-1]].date,
        "ticks": make_ticks(history.runs),
        "rows": rows,
        "constant": constant,
    }


def collect_families(history: History) -> list[FamilyRows]:
    """Return every family by date.

    Args:
        history: The history to show.
    """
    members: dict[str, list[int]] = {}
    for place, case in enumerate(history.cases):
        members.setdefault(case.partition("/")[0], []).append(place)
    worst = history.ranks.min(axis=2, initial=NOTHING)
    made = []
    for family, places in members.items():
        table = worst[:, places]
        rows, constant = _rows([history.cases[place] for place in places], table, history.runs)
        whole = make_row(family, table.min(axis=1).tolist(), history.runs)
        anchor = f"family-{slug(family)}"
        made.append(FamilyRows(row=whole, anchor=anchor, rows=rows, constant=constant))
    return made


def _rows(
    names: Sequence[str], table: Ranks, runs: Sequence[RunPoint]
) -> tuple[tuple[DateRow, ...], tuple[ConstantVerdict, ...]]:
    """Return a row for each column whose verdict changes, and the other columns by verdict."""
    best = np.where(table == NOTHING, 0, table).max(axis=0)
    worst = table.min(axis=0)
    rows: list[DateRow] = []
    constant: dict[Verdict, list[str]] = {}
    for name, column, high, low in zip(names, table.T, best, worst, strict=True):
        if low < high:
            rows.append(make_row(name, column.tolist(), runs))
        elif (verdict := find_verdict(int(low))) is not None:
            constant.setdefault(verdict, []).append(name)
    kept = (ConstantVerdict(verdict=verdict, names=tuple(n)) for verdict, n in constant.items())
    return tuple(rows), tuple(kept)


def make_row(name: str, ranks: Sequence[int], runs: Sequence[RunPoint]) -> DateRow:
    """Return ranks by run as a row, coarser where it would have too many segments.

    Args:
        name: What they are of.
        ranks: Ranks by run.
        runs: The runs.
    """
    shown, coarse = carry_forward(ranks), 1
    while len(encode_run_lengths(shown)) > SEGMENTS:
        coarse *= 2
        worst = [min(ranks[at : at + coarse]) for at in range(0, len(ranks), coarse)]
        shown = carry_forward(worst)
    spans, at = [], 0
    for rank, length in encode_run_lengths(shown):
        first, after = at * coarse, min((at + length) * coarse, len(runs))
        spans.append(_span(rank, first, after, runs))
        at += length
    return DateRow(name=name, spans=tuple(spans), coarse=coarse)


def _span(rank: int, first: int, after: int, runs: Sequence[RunPoint]) -> DateSpan:
    verdict = find_verdict(rank)
    begun, ended = runs[first].date, runs[after - 1].date
    dates = begun if begun == ended else f"{begun} to {ended}"
    state = "" if verdict is None else str(verdict)
    return DateSpan(state=state, length=after - first, said=f"{state or 'not run'}, {dates}")


def make_ticks(runs: Sequence[RunPoint]) -> tuple[DateSpan, ...]:
    """Return the dates above rows: months where there are several, else days.

    Args:
        runs: The runs.
    """
    months = [run.date[:7] if run.time is not None else "" for run in runs]
    labels = months if len(set(months)) > 2 else [run.date for run in runs]  # noqa: PLR2004
    found = encode_run_lengths(labels)
    every = -(-len(found) // TICKS)
    joined = [found[at : at + every] for at in range(0, len(found), max(1, every))]
    return tuple(
        DateSpan(state=group[0][0], length=sum(n for _, n in group), said=group[0][0])
        for group in joined
    )
