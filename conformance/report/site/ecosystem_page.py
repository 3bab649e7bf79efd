"""The page of libraries: their outcomes by release, root causes, and a badge for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.report.ecosystem.summary import POLICIES, describe_record
from conformance.report.site.addresses import ECOSYSTEM
from conformance.report.site.badges import render_library_badges
from conformance.report.site.rendering import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.report.report import Report


def render_ecosystem_page(report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield the page of libraries and their badges, none without outcomes.

    Args:
        report: The runs to report.

    Yields:
        Path below the site's root, and content.
    """
    summary = report.ecosystem
    if summary is None:
        return
    data = {"summary": summary, "titles": POLICIES, "describe": describe_record}
    yield ECOSYSTEM, render("ecosystem.html", ECOSYSTEM, data)
    yield from render_library_badges(summary)
