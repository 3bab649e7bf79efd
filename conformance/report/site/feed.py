"""The Atom feed: an entry whenever something unexpected begins, ends or comes back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from conformance.engine.regression_tracker import RegressionStatus
from conformance.report.site.addresses import FEED, HISTORY, href, regression_anchor
from conformance.report.site.rendering import render
from conformance.report.text import flatten, join_names, parse_time
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.regression_tracker import Regression, RegressionEvent
    from conformance.report.history import History, RunPoint

NEWEST: Final = 100
"""Entries of the feed."""
CELLS: Final = 12
"""Cells that an entry names."""
_TAG: Final = "tag:jax-conformance.invalid,2025:"
"""Beginning of the ids: the same wherever a site is put; `.invalid` is nobody's domain."""
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
        base: Address of the site's root, for links that hold wherever the feed is read; without
            it they are relative.

    Yields:
        Path below the site's root, and content.
    """
    root = base if not base or base.endswith("/") else f"{base}/"
    known = {one.id: one for one in history.regressions}
    entries = [
        _make_entry(event, known[event.regression], history.runs[event.run], root)
        for event in history.events[: -NEWEST - 1 : -1]
    ]
    times = [entry["updated"] for entry in entries] or [
        _format_end(run) for run in history.runs[-1:]
    ]
    data = {
        "id": f"{root}{FEED}" if root else f"{_TAG}history",
        "updated": max(times, default=_rfc3339(_EPOCH)),
        "self_link": f"{root}{FEED}",
        "page_link": f"{root}{HISTORY}",
        "entries": entries,
    }
    yield FEED, render("feed.xml", FEED, data)


def _make_entry(
    event: RegressionEvent, about: Regression, run: RunPoint, root: str
) -> dict[str, str]:
    """Return what the template shows of an event."""
    word = _WORDS[event.kind]
    many = plural(len(event.places), "cell")
    seen = "no longer seen" if event.kind is RegressionStatus.FIXED else "seen"
    why = about.state.reason or about.state.verdict
    return {
        # A tag URI, the same each time the feed is made.
        "id": f"{_TAG}{word}/{event.regression}/{href(run.id)}",
        "title": flatten(f"{word}: {about.case} {about.state.verdict} on {many}", 300),
        "updated": _format_end(run),
        "link": href(HISTORY, regression_anchor(event.regression), root=root),
        "category": word,
        "summary": flatten(f"{why} ({seen} in {run.id}: {join_names(event.places, CELLS)})"),
    }


def _format_end(run: RunPoint) -> str:
    """Return when a run ended, or else began, as Atom wants it."""
    return _rfc3339(parse_time(run.finished) or run.time or _EPOCH)


def _rfc3339(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
