"""All files of the site."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.report.site.case_page import case_pages, pairs_of
from conformance.report.site.causes_page import causes_pages
from conformance.report.site.matrix_page import matrix_pages
from conformance.report.site.run_pages import run_pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.diff_cache import DiffCache
    from conformance.report.report import Report


def site(report: Report, diffs: DiffCache) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the site.

    Args:
        report: What is told.
        diffs: Differences of IRs.

    Yields:
        Path below the site's root, and content.
    """
    diffs.prepare(pairs_of(report))
    yield from matrix_pages(report)
    yield from case_pages(report, diffs.get)
    yield from causes_pages(report)
    yield from run_pages(report.runs)
    yield from assets()


def assets() -> Iterator[tuple[str, bytes]]:
    """Yield the files that are the same for every report."""
    folder = files("conformance.report.site") / "assets"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        yield f"assets/{file.name}", file.read_bytes()
