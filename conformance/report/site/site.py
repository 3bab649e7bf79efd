"""All files of the site."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.report.site.addresses import MATRIX, UPGRADE
from conformance.report.site.badges import badges
from conformance.report.site.case_page import case_pages, pairs_of
from conformance.report.site.causes_page import causes_by_case, causes_pages
from conformance.report.site.feed import feed
from conformance.report.site.history_page import case_history, history_pages
from conformance.report.site.matrix_page import matrix_pages
from conformance.report.site.page_selection import select_pages
from conformance.report.site.run_pages import run_pages
from conformance.report.site.suite_page import suite_pages
from conformance.report.site.upgrade_page import addresses_of, mentions_of, upgrade_pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.diff_cache import DiffCache
    from conformance.report.history import History
    from conformance.report.report import Report


def site(
    report: Report, history: History, diffs: DiffCache, *, address: str = ""
) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the site.

    Args:
        report: The runs to report.
        history: What these runs and earlier ones say by date.
        diffs: Differences of IRs.
        address: Where the site is to be, for the links of the feed; empty where nobody knows.

    Yields:
        Path below the site's root, and content.
    """
    shown = select_pages(report)
    with diffs.preparing(pairs_of(shown)):
        yield from matrix_pages(shown, report)
        yield from upgrade_pages(report)
        yield from causes_pages(report)
        yield from suite_pages(report, shown.cases.keys())
        yield from run_pages(report.runs, addresses_of(report))
        yield from history_pages(history, shown)
        yield from feed(history, address)
        yield from badges(report)
        yield from assets()
        # Last, for they wait for the differences.
        by_date = {case: case_history(history, case) for case in shown.cases}
        yield from case_pages(
            shown, diffs.get, by_date, mentions_of(report), causes_by_case(report)
        )


def first_page(report: Report) -> str:
    """Return the page that says most of the newest run: an upgrade's own, else the matrix.

    Args:
        report: The runs to report.
    """
    newest = report.runs[-1].id if report.runs else ""
    return UPGRADE if newest in report.upgrades else MATRIX


def assets() -> Iterator[tuple[str, bytes]]:
    """Yield the files that are the same for every report."""
    folder = files("conformance.report.site") / "assets"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        yield f"assets/{file.name}", file.read_bytes()
