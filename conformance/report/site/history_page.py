"""The history's page and its feed: regressions, and every family and case by date."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.engine.runs.regression_tracker import RegressionStatus
from conformance.report.history import NOTHING, carry_forward, encode_run_lengths, find_verdict
from conformance.report.site.addresses import FEED, HISTORY, href, regression_anchor, run_page, slug
from conformance.report.site.rendering import render
from conformance.report.text import flatten, join_names, parse_time
from conformance.report.tracks import make_release_key
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.engine.runs.regression_tracker import Regression, RegressionEvent
    from conformance.model.outcome import Verdict
    from conformance.report.history import History, Ranks, RunPoint
    from conformance.report.report import Report


SEGMENTS: Final = 90
"""Segments of a row; a longer row combines neighbouring runs, and shows their worst verdict."""
TICKS: Final = 12
"""Dates above the rows."""
FIXED: Final = 200
"""Fixed regressions that are shown, those fixed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DateSpan:
    """Neighbouring runs with the same verdict.

    Attributes:
        state: The verdict, empty if nothing ran.
        length: Number of runs.
        label: The verdict and the dates, in words.
    """

    state: str
    length: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DateRow:
    """The verdicts of a family, a case or a cell by date.

    Attributes:
        name: Name of the family, case or cell.
        spans: Its verdicts, the oldest first.
        coarse: Number of runs that were combined, 1 if each run is drawn.
    """

    name: str
    spans: tuple[DateSpan, ...]
    coarse: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantVerdict:
    """Cases or cells that had the same verdict in every run."""

    verdict: Verdict
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyRows:
    """The rows of a family by date: the whole family, and its cases.

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
        report: The runs with pages: cases and runs of the history without a page get no link.

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
        "ticks": make_date_ticks(history.runs),
        "families": collect_families(history),
        "highest": max((run.unexpected for run in history.runs), default=0),
        "case_pages": report.cases.keys(),
        "run_pages": {run.id for run in report.runs},
        "run_page": run_page,
        "regression_anchor": regression_anchor,
        "releases_of": partial(_list_releases, history),
        "feed": FEED,
    }
    yield HISTORY, render("history.html", HISTORY, data)


def _list_releases(history: History, cells: Iterable[str]) -> list[str]:
    """Return the known releases of jax in some cells."""
    found = {history.releases[cell] for cell in cells}
    return sorted(filter(None, found), key=make_release_key)


def make_case_history(history: History, case: str) -> dict[str, Any] | None:
    """Return the history of a case for its page.

    Args:
        history: The history to show.
        case: Case id.

    Returns:
        `runs` (their number), `first` and `last` (dates), `ticks`, `rows` (cells whose verdict
        changed) and `constant` (the others, by verdict); None if fewer than two runs ran it.
    """
    if case not in history.cases:
        return None
    table = history.of_case(case)
    ran = np.nonzero((table != NOTHING).any(axis=1))[0].tolist()
    if len(ran) < 2:  # noqa: PLR2004 - one point is no history
        return None
    rows, constant = _make_rows(history.cells, table, history.runs)
    return {
        "runs": len(ran),
        "first": history.runs[ran[0]].date,
        "last": history.runs[ran[-1]].date,
        "ticks": make_date_ticks(history.runs),
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
        rows, constant = _make_rows([history.cases[place] for place in places], table, history.runs)
        whole = make_date_row(family, table.min(axis=1).tolist(), history.runs)
        anchor = f"family-{slug(family)}"
        made.append(FamilyRows(row=whole, anchor=anchor, rows=rows, constant=constant))
    return made


def _make_rows(
    names: Sequence[str], table: Ranks, runs: Sequence[RunPoint]
) -> tuple[tuple[DateRow, ...], tuple[ConstantVerdict, ...]]:
    """Return a row for each column whose verdict changes, and the other columns by verdict."""
    # The best rank ignores `NOTHING`, which is higher than any: a job that did not run in some
    # nights has not changed.
    best = np.where(table == NOTHING, 0, table).max(axis=0)
    worst = table.min(axis=0)
    rows: list[DateRow] = []
    constant: dict[Verdict, list[str]] = {}
    for name, column, high, low in zip(names, table.T, best, worst, strict=True):
        if low < high:
            rows.append(make_date_row(name, column.tolist(), runs))
        elif (verdict := find_verdict(int(low))) is not None:
            constant.setdefault(verdict, []).append(name)
    same = (ConstantVerdict(verdict=verdict, names=tuple(n)) for verdict, n in constant.items())
    return tuple(rows), tuple(same)


def make_date_row(name: str, ranks: Sequence[int], runs: Sequence[RunPoint]) -> DateRow:
    """Return ranks by run as a row, combining runs if it would have too many segments.

    Args:
        name: Name of the family, case or cell.
        ranks: Ranks by run.
        runs: The runs.
    """
    shown, coarse = carry_forward(ranks), 1
    # The worst of the runs, not the most frequent: a failure of a single night must stay visible.
    while len(encode_run_lengths(shown)) > SEGMENTS:
        coarse *= 2
        worst = [min(ranks[at : at + coarse]) for at in range(0, len(ranks), coarse)]
        shown = carry_forward(worst)
    spans, at = [], 0
    for rank, length in encode_run_lengths(shown):
        first, after = at * coarse, min((at + length) * coarse, len(runs))
        spans.append(_make_span(rank, first, after, runs))
        at += length
    return DateRow(name=name, spans=tuple(spans), coarse=coarse)


def _make_span(rank: int, first: int, after: int, runs: Sequence[RunPoint]) -> DateSpan:
    verdict = find_verdict(rank)
    begun, ended = runs[first].date, runs[after - 1].date
    dates = begun if begun == ended else f"{begun} to {ended}"
    state = "" if verdict is None else str(verdict)
    return DateSpan(state=state, length=after - first, label=f"{state or 'not run'}, {dates}")


def make_date_ticks(runs: Sequence[RunPoint]) -> tuple[DateSpan, ...]:
    """Return the dates above rows: months if the runs span more than two, otherwise days.

    Args:
        runs: The runs.
    """
    months = [run.date[:7] if run.time is not None else "" for run in runs]
    labels = months if len(set(months)) > 2 else [run.date for run in runs]  # noqa: PLR2004
    found = encode_run_lengths(labels)
    # Rounded up, so that there are at most `TICKS` labels. Without runs `every` is 0, which no
    # range accepts as its step.
    every = -(-len(found) // TICKS)
    joined = [found[at : at + every] for at in range(0, len(found), max(1, every))]
    return tuple(
        DateSpan(state=group[0][0], length=sum(n for _, n in group), label=group[0][0])
        for group in joined
    )


FEED_ENTRIES: Final = 100
"""Entries of the feed."""
FEED_CELLS: Final = 12
"""Cells that an entry names."""
_TAG: Final = "tag:jax-conformance.invalid,2025:"
"""Beginning of the ids: the same at every address of a site; the domain `.invalid` is reserved."""
_WORDS: Final = {
    RegressionStatus.NEW: "opened",
    RegressionStatus.FIXED: "fixed",
    RegressionStatus.REOPENED: "reopened",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def render_feed(history: History, base: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the feed.

    Args:
        history: The history to show.
        base: Address of the site's root, for absolute links; empty for relative links, which feed
            readers cannot follow.

    Yields:
        Path below the site's root, and content.
    """
    root = base if not base or base.endswith("/") else f"{base}/"
    known = {one.id: one for one in history.regressions}
    entries = [
        _make_entry(event, known[event.regression], history.runs[event.run], root)
        for event in history.events[: -FEED_ENTRIES - 1 : -1]
    ]
    # Atom requires a time, even of a feed without entries.
    times = [entry["updated"] for entry in entries] or [
        _format_end(run) for run in history.runs[-1:]
    ]
    data = {
        "id": f"{root}{FEED}" if root else f"{_TAG}history",
        "updated": max(times, default=_format_rfc3339(_EPOCH)),
        "self_link": f"{root}{FEED}",
        "page_link": f"{root}{HISTORY}",
        "entries": entries,
    }
    yield FEED, render("feed.xml", FEED, data)


def _make_entry(
    event: RegressionEvent, about: Regression, run: RunPoint, root: str
) -> dict[str, str]:
    """Return the entry of an event for the template."""
    word = _WORDS[event.kind]
    many = plural(len(event.places), "cell")
    state = "no longer seen" if event.kind is RegressionStatus.FIXED else "seen"
    why = about.state.reason or about.state.verdict
    return {
        # A tag URI, the same each time the feed is made: readers show an entry with a new id again.
        "id": f"{_TAG}{word}/{event.regression}/{href(run.id)}",
        "title": flatten(f"{word}: {about.case} {about.state.verdict} on {many}", 300),
        "updated": _format_end(run),
        "link": href(HISTORY, regression_anchor(event.regression), root=root),
        "category": word,
        "summary": flatten(f"{why} ({state} in {run.id}: {join_names(event.places, FEED_CELLS)})"),
    }


def _format_end(run: RunPoint) -> str:
    """Return the time at which a run ended, or began if it did not end, in RFC 3339 for Atom."""
    return _format_rfc3339(parse_time(run.finished) or run.time or _EPOCH)


def _format_rfc3339(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
