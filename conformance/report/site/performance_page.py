"""The page of time and memory: a plot of each case over the releases, and what differs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.bench.measured import Clock
from conformance.report.site.addresses import PERFORMANCE
from conformance.report.site.rendering import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.bench.stored import StoredBench
    from conformance.report.report import Report


def render_performance_page(report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield the page of time and memory with its data, none without measurements.

    Args:
        report: The runs to report.

    Yields:
        Path below the site's root, and content.
    """
    if report.bench is None:
        return
    data = {"bench": report.bench, "cases": report.cases}
    yield PERFORMANCE, render("performance.html", PERFORMANCE, data)
    text = json.dumps(make_plot_data(report.bench), separators=(",", ":"))
    yield "data/performance.js", f"window.PERFORMANCE = {text};\n".encode()


def make_plot_data(bench: StoredBench) -> dict[str, Any]:
    """Return the data of the plots: for each case its releases, and the points of each phase.

    Args:
        bench: Measurements over cells.
    """
    cases: dict[str, Any] = {}
    for series in bench.series:
        if series.clock is Clock.INSTRUCTIONS:
            continue
        case = cases.setdefault(series.case, {"size": series.size, "series": {}})
        case["series"].setdefault(series.phase, {})[series.clock] = [
            [bench.releases.index(point.release), *_round(point.median, point.low, point.high)]
            for point in series.points
        ]
    return {"releases": list(bench.releases), "cases": cases}


def _round(*values: float) -> list[float]:
    """Return numbers with four digits, which no plot can tell from all of them."""
    return [float(f"{value:.4g}") for value in values]
