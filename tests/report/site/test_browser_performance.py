"""The page of time and memory in a real browser: its plots, its choices, its links."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.bench.series import BYTES, Point, Series
from conformance.bench.stored import StoredBench, StoredDifference
from tests.report.upgrades import OK, WRONG, Tried

from .examples import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .browsing import Visit

    Open = Callable[..., Visit]


RELEASES = ("0.6.0", "0.6.1")
SLOWER = "f/slower[one]"


def series(case: str, phase: str, clock: str, *values: float) -> Series:
    """Return a series with a point for each release."""
    points = tuple(
        Point(release, release, value, value * 0.9, value * 1.1)
        for release, value in zip(RELEASES, values, strict=True)
    )
    return Series(case, None, phase, clock, points)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with measurements of two cases."""
    folder = tmp_path_factory.mktemp("performance")
    tried = Tried(folder / "run-1").case(SLOWER, OK, OK, OK, WRONG).case("f/same", OK, OK, OK, OK)
    bench = StoredBench(
        host="2 cores",
        releases=RELEASES,
        series=(
            series(SLOWER, "run", "cpu", 1e-3, 2e-3),
            series(SLOWER, "memory of run", BYTES, 2**20, 2**24),
            series("f/same", "run", "cpu", 5e-6, 5e-6),
        ),
        differences=(StoredDifference(SLOWER, None, RELEASES, RELEASES, "run 2.00 times"),),
    )
    return write(replace(tried.report(), bench=bench), folder)


def plots(visit: Visit) -> list[str | None]:
    """Return what the plots of a page say of themselves."""
    return [one.get_attribute("aria-label") for one in visit.page.locator("figure.plot").all()]


def test_each_case_has_a_plot_of_the_chosen_phase(visit: Open, site: Path) -> None:
    """Memory has its own unit, and no clock."""
    visited = visit(site, "performance.html")
    assert plots(visited) == [
        f"{SLOWER}, run: 1.00 ms in 0.6.0, 2.00 ms in 0.6.1",
        "f/same, run: 5.00 µs in 0.6.0, 5.00 µs in 0.6.1",
    ]
    visited.page.select_option("#phase", "memory of run")
    assert plots(visited) == [f"{SLOWER}, memory of run: 1.00 MiB in 0.6.0, 16.0 MiB in 0.6.1"]
    assert visited.page.locator("#clock").is_disabled()
    visited.page.select_option("#phase", "run")
    visited.page.fill("#case", "same")
    assert len(plots(visited)) == 1


def test_the_page_of_a_case_links_to_its_plots(visit: Open, site: Path) -> None:
    """Its name is no pattern, and the list of differences links back."""
    visited = visit(site, "performance.html")
    with visited.led():
        visited.page.click("#differences ~ section a")
    assert visited.page.locator("h1").inner_text() == SLOWER
    with visited.led():
        visited.page.click("text=time and memory")
    assert [label.split(",")[0] for label in plots(visited) if label] == [SLOWER]
