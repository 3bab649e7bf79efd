"""All files of the site."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.report.site.addresses import MATRIX, UPGRADE
from conformance.report.site.badges import render_badges
from conformance.report.site.case_page import collect_pairs, render_case_pages
from conformance.report.site.causes_page import collect_causes_by_case, render_causes_pages
from conformance.report.site.feed import render_feed
from conformance.report.site.history_page import make_case_history, render_history_pages
from conformance.report.site.matrix_page import render_matrix_pages
from conformance.report.site.page_selection import select_pages
from conformance.report.site.run_pages import render_run_pages
from conformance.report.site.suite_page import render_suite_pages
from conformance.report.site.upgrade_page import (
    collect_mentions,
    list_addresses,
    render_upgrade_pages,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.diff_cache import DiffCache
    from conformance.report.history import History
    from conformance.report.report import Report


def render_site(
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
    with diffs.preparing(collect_pairs(shown)):
        yield from render_matrix_pages(shown, report)
        yield from render_upgrade_pages(report)
        yield from render_causes_pages(report)
        yield from render_suite_pages(report, shown.cases.keys())
        yield from render_run_pages(report.runs, list_addresses(report))
        yield from render_history_pages(history, shown)
        yield from render_feed(history, address)
        yield from render_badges(report)
        yield from load_assets()
        # Last, for they wait for the differences.
        by_date = {case: make_case_history(history, case) for case in shown.cases}
        yield from render_case_pages(
            shown, diffs.get, by_date, collect_mentions(report), collect_causes_by_case(report)
        )


def find_first_page(report: Report) -> str:
    """Return the page that says most of the newest run: an upgrade's own, else the matrix.

    Args:
        report: The runs to report.
    """
    newest = report.runs[-1].id if report.runs else ""
    return UPGRADE if newest in report.upgrades else MATRIX


def load_assets() -> Iterator[tuple[str, bytes]]:
    """Yield the files that are the same for every report."""
    folder = files("conformance.report.site") / "assets"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        yield f"assets/{file.name}", file.read_bytes()
