"""The page of time and memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from conformance.bench.measured import Clock
from conformance.bench.series import Point, Series
from conformance.bench.stored import StoredBench, StoredDifference, load_stored_bench
from conformance.errors import UsageError
from conformance.report.report import Report
from conformance.report.site.performance_page import render_performance_page

if TYPE_CHECKING:
    from pathlib import Path

CELLS = ("jax0.11.0-py312-cpu8", "jax0.11.1-py312-cpu8")
POINTS = (
    Point(CELLS[0], "0.11.0", 1e-4, 9e-5, 1.1e-4),
    Point(CELLS[1], "0.11.1", 0.012345678, 0.01, 0.02),
)
BENCH = StoredBench(
    host="2 cores",
    releases=("0.11.0", "0.11.1"),
    series=(Series("family/loop", 64, "run", Clock.CPU, POINTS),),
    differences=(
        StoredDifference("family/loop", 64, CELLS, ("0.11.0", "0.11.1"), "run <100> times"),
    ),
)


def test_what_differs_is_listed_by_release() -> None:
    """Text from elsewhere is no markup."""
    pages = dict(render_performance_page(Report((), bench=BENCH)))
    text = pages["performance.html"].decode()
    assert "jax 0.11.1" in text
    assert "<code>family/loop</code> at 64: run &lt;100&gt; times" in text
    assert "since 0.11.0" in text


def test_plots_have_the_spread_of_each_release() -> None:
    """Median, smallest and largest, with four digits, by number of the release."""
    pages = dict(render_performance_page(Report((), bench=BENCH)))
    script = pages["data/performance.js"].decode()
    data = json.loads(script.removeprefix("window.PERFORMANCE = ").removesuffix(";\n"))
    assert data["releases"] == ["0.11.0", "0.11.1"]
    assert data["cases"]["family/loop"]["series"]["run"]["cpu"][1] == [1, 0.01235, 0.01, 0.02]


def test_a_site_without_measurements_has_no_page() -> None:
    """Nor a link to it."""
    assert list(render_performance_page(Report(()))) == []


def test_a_file_reads_back(tmp_path: Path) -> None:
    """What else is in it, such as the comparisons, is not needed."""
    file = tmp_path / "performance.json"
    file.write_bytes(msgspec.json.encode({**msgspec.to_builtins(BENCH), "comparisons": []}))
    assert load_stored_bench(file) == BENCH


@pytest.mark.parametrize("text", ["{", "{}", '{"host": 1}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    """With its name, and what was expected."""
    file = tmp_path / "performance.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="expected what conformance bench --json writes"):
        load_stored_bench(file)
