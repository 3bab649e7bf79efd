"""The layout of pages in a real browser: nothing is cut, broken or on top of other text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.model.outcome import Verdict
from tests.report.runs import Directory

from .examples import CPU, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .browsing import Visit

    Open = Callable[..., Visit]


PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}
ENDS_SEEN = """names => names.map(name => {
  const text = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
  let last = null;
  while (text.nextNode()) if (text.currentNode.data.trim()) last = text.currentNode;
  const range = document.createRange();
  const end = last.data.trimEnd().length;
  range.setStart(last, end - 1);
  range.setEnd(last, end);
  const sign = range.getBoundingClientRect();
  const box = name.getBoundingClientRect();
  return sign.right <= box.right + 1 && sign.left >= box.left - 1;
})"""
"""Whether the last character of each element's text lies within the element."""


def test_the_legend_keeps_each_key_with_its_words(visit: Open, full_site: Path) -> None:
    """On a phone no entry breaks, and none is wider than the window."""
    seen = visit(full_site, **PHONE)
    for entry in seen.all(".legend .entry").all():
        box = entry.bounding_box()
        assert box is not None
        assert box["height"] < 30
        assert box["x"] + box["width"] <= PHONE["viewport"]["width"]
    assert seen.all(".legend .entry").count() == 11
    assert not seen.sideways


def test_long_names_keep_their_ends(visit: Open, tmp_path: Path) -> None:
    """Parameters distinguish cases: the beginning is cut, and only where there is no room."""
    run = Directory(tmp_path / "long")
    for end in "ab":
        run.job(f"signs/{'a_rather_long_name_of_a_test_' * 2}[param-{end}]", CPU[0])
    folder = write(run.report(), tmp_path)
    few = visit(folder)
    link = ".row:not(.sum) .head a"
    assert few.page.locator(link).evaluate_all(ENDS_SEEN) == [True, True]
    assert few.page.locator(link).evaluate_all(
        "all => all.every(one => one.scrollWidth <= one.clientWidth)"
    )
    narrow = visit(folder, **PHONE)
    assert narrow.page.locator(link).evaluate_all(ENDS_SEEN) == [True, True]


def test_names_of_platforms_are_whole_where_there_is_room(visit: Open, tmp_path: Path) -> None:
    """Also where a platform has a single release, in the heads and in the filter."""
    run = Directory(tmp_path / "platforms")
    for cell in (CPU[0], "jax0.8.3-py311-cpu8-mp2", "jax0.10.2-py311-cuda.h100.1x1x4"):
        run.job("signs/one", cell)
    seen = visit(write(run.report(), tmp_path), viewport={"width": 1280, "height": 800})
    for names in (".place span", ".filters select"):
        assert seen.page.locator(names).evaluate_all(
            "all => all.length > 1 && all.every(one => one.scrollWidth <= one.clientWidth)"
        )


@pytest.mark.parametrize("width", [1280, 390])
def test_rows_of_a_suite_keep_the_ends_of_names(visit: Open, suite_site: Path, width: int) -> None:
    """The part of a test's name after its file is visible at each width."""
    seen = visit(suite_site, "suites/signs.html", viewport={"width": width, "height": 800})
    seen.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    names = seen.page.locator(".by-release .name")
    names.first.locator("a, bdi").last.evaluate(
        "one => { one.textContent = 'tests/' + 'deep/'.repeat(40) + 'test.py::test_add[b]'; }"
    )
    assert all(names.evaluate_all(ENDS_SEEN))


def test_columns_of_lists_do_not_collide(visit: Open, tmp_path: Path) -> None:
    """Markers of the second column have room beside the text of the first."""
    run = Directory(tmp_path / "many")
    for number in range(12):
        run.job(
            f"f/{'long_' * 20}{number}", CPU[0], verdict=Verdict.REGRESSED, reasons=("same",),
            error=("ValueError", "same"),
        )  # fmt: skip
    seen = visit(
        write(run.report(), tmp_path), "causes.html", viewport={"width": 1280, "height": 800}
    )
    lefts = seen.page.locator(".members li").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right])"
    )
    first = min(left for left, _ in lefts)
    second = [left for left, _ in lefts if left > first + 100]
    edge = max(right for left, right in lefts if left < first + 100)
    assert second
    assert min(second) - edge > 40


def test_histories_are_visible_on_a_phone(visit: Open, full_site: Path) -> None:
    """Segments stand below the name of their row, and share the width."""
    seen = visit(full_site, "cases/shapes/broken.html", **PHONE)
    widths = seen.page.locator(".strip.verdict .segment").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().width)"
    )
    assert min(widths) > 50
    assert sum(widths) > 300


def test_reasons_have_room_on_a_phone(visit: Open, suite_site: Path) -> None:
    """A reason is not broken into columns of three characters; its table scrolls instead."""
    seen = visit(suite_site, "suites/signs.html", **PHONE)
    seen.ask("document.querySelectorAll('.group details').forEach(one => { one.open = true; })")
    widths = seen.page.locator(".span td:nth-child(3)").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().width)"
    )
    assert min(widths) > 150
    assert not seen.sideways
