"""The page of fuzzing: campaigns, and their findings by release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.report.site.addresses import FUZZ
from conformance.report.site.rendering import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.report.report import Report


def render_fuzz_page(report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield the page of fuzzing, none without campaigns.

    Args:
        report: The runs to report.

    Yields:
        Path below the site's root, and content.
    """
    if report.fuzz is not None:
        yield FUZZ, render("fuzz.html", FUZZ, {"fuzz": report.fuzz, "cases": report.cases})
