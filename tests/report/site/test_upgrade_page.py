"""An upgrade's page: the paragraph, effects, groups and asides, and what leads to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from conformance.engine.cache.differences import DiffCache
from conformance.model.run import Exclusion
from conformance.report.history import make_history
from conformance.report.report import Report
from conformance.report.site.addresses import UPGRADE
from conformance.report.site.site import find_first_page, render_site
from conformance.report.site.upgrade_page import render_upgrade_pages
from conformance.report.upgrade.file import PackageUpdate, SearchedPackages
from conformance.triage.upgrade.comparison import ComparedCase
from conformance.triage.upgrade.costs import CostChange
from tests.builders import case, deviation, f32
from tests.report.raising import RAISED as TRACED
from tests.report.runs import CELLS, Directory
from tests.report.site.pages import Page
from tests.report.upgrades import AXIS, OK, RAISED, WRONG, Tried, file_of, told

if TYPE_CHECKING:
    from pathlib import Path


def page(report: Report) -> Page:
    """Return the page of the newest upgrade."""
    return Page(dict(render_upgrade_pages(report))[UPGRADE])


@pytest.fixture
def tried(tmp_path: Path) -> Tried:
    """An upgrade with something of most effects."""
    return (
        Tried(tmp_path / "run-1")
        .case("f/breaks", OK, OK, RAISED, RAISED, deviations=(deviation(">=0.6.1"),))
        .case("f/wrong", OK, WRONG, WRONG, WRONG)
        .case("f/mended", RAISED, RAISED, RAISED, OK)
        .case("f/back", OK, RAISED, OK, OK)
        .case("f/same", OK, None, None, OK)
    )


def test_a_page_has_the_summary_and_every_effect(tried: Tried) -> None:
    """The paragraph first, then the gravest effect; each with its release, thread and command."""
    found = page(tried.report())
    words = (
        "From jax 0.5.3 to 0.6.2 on cpu8, of 5 cases 1 breaks",
        "Broken 1", "since 0.6.1", "jax-ml/jax#1", "ok", "ValueError: bad shape", "f/breaks",
        "numpy 2.2.0 → 2.3.0", "conformance blame f/breaks", "conformance repro f/breaks",
        "Silently wrong 1", "since 0.6.0", "out[1] =", "f/wrong",
        "Fixed 1", "Unchanged 2", "1 case on cpu8 in which nothing changes",
        "Changed on the way, and back", "8 of 20",
    )  # fmt: skip
    at = 0
    for said in words:
        assert said in found.text[at:], said
        at = found.text.index(said, at)
    assert "https://github.com/jax-ml/jax/issues/1" in found.links
    assert "#broken" in found.links
    assert found.unclosed == []


def test_uncompared_cases_are_listed_with_their_reasons(tried: Tried) -> None:
    """What is flaky with its spread, what was not compared, fails alike, or was left out."""
    asides = (
        ComparedCase(case=case("f/flaky"), axis=AXIS, flaky="0.6.0: attempts disagree: 1.0, 2.0"),
        ComparedCase(case=case("f/large"), axis=AXIS, refusal="0.5.3: needs 16 devices"),
    )
    tried.case("f/fails", RAISED, RAISED, RAISED, RAISED)
    left_out = (Exclusion(case="", cell="jax0.6.3-py311-cpu8", reason="mine 1.0 asks for jax<0.6"),)
    upgrade = file_of(told(*tried.compared, *asides, left_out=left_out))
    said = page(tried.report(upgrade)).text
    assert "f/flaky on cpu8: 0.6.0: attempts disagree: 1.0, 2.0" in said
    assert "1 case: 0.5.3: needs 16 devices f/large" in said
    assert "Fails alike at both ends 1 1 case: ValueError: bad shape f/fails" in said
    assert "jax0.6.3-py311-cpu8 : mine 1.0 asks for jax<0.6" in said


def test_culprits_and_suspects_are_named(tried: Tried) -> None:
    """Where that was searched, it is told in place of what may be; with what could not be told."""
    guilty = (PackageUpdate(package="numpy", from_="2.2.0", to="2.3.0"),)
    found = SearchedPackages(case="f/other", guilty=(guilty,), untold="whether scipy, too")
    upgrade = file_of(tried.upgraded())
    changes = (replace(upgrade.transitions[0], searched=found), *upgrade.transitions[1:])
    said = page(tried.report(replace(upgrade, transitions=changes))).text
    told_of = said.partition("Silently wrong")[0]
    assert "To blame: numpy 2.2.0 → 2.3.0 (searched with f/other)" in told_of
    assert "whether scipy, too" in told_of
    assert "In addition to jax" not in told_of


def test_changes_of_time_and_memory_are_listed(tried: Tried) -> None:
    """The slower first, with release and layer; a text from elsewhere is no markup."""
    faster = CostChange(
        case="f/same", platform="cpu8", is_worse=False, differences=("lower 0.50 times",),
        problem="ends <overlap>",
    )  # fmt: skip
    slower = CostChange(
        case="f/back", platform="cpu8", is_worse=True, differences=("run 3.00 times",),
        changed_in="0.6.1", layer="compiler",
    )  # fmt: skip
    upgrade = replace(file_of(tried.upgraded()), measured=4, costs=(faster, slower))
    said = page(tried.report(upgrade)).text
    assert "Time and memory 2 Of 4 cases measured at both ends." in said
    first = said.index("f/back on cpu8 takes more since 0.6.1: run 3.00 times; compiler")
    second = "f/same on cpu8 takes less since an unknown release: lower 0.50 times; ends <overlap>"
    assert first < said.index(second)


def test_tests_of_a_suite_are_called_so(tried: Tried) -> None:
    """Wherever they are counted."""
    said = page(tried.report(replace(file_of(tried.upgraded()), noun="test"))).text
    assert "since 0.6.1 1 test " in said
    assert "1 test on cpu8 in which nothing changes" in said


def test_an_upgrade_that_breaks_nothing(tmp_path: Path) -> None:
    """It says so; no legend of a picture that is not there."""
    found = page(Tried(tmp_path).case("f/same", OK, None, None, OK).report())
    assert "Nothing breaks." in found.text
    assert "Unchanged 1" in found.text
    assert "not tried" not in found.text


def test_other_pages_link_to_the_upgrade(tried: Tried, tmp_path: Path) -> None:
    """The first page, the run's own and the search; and each of its links leads somewhere."""
    report = tried.report()
    files = dict(render_site(report, make_history(()), DiffCache(tmp_path / "cache", 1)))
    assert find_first_page(report) == UPGRADE
    assert "From jax 0.5.3 to 0.6.2" in Page(files["index.html"]).text
    for name, link in (("index.html", UPGRADE), ("runs/run-1.html", f"../{UPGRADE}")):
        assert link in Page(files[name]).links
    case_page = Page(files["cases/f/breaks.html"])
    assert "From 0.5.3 to 0.6.2 on cpu8: broken, 0.6.1" in case_page.text
    assert "../../upgrade.html#broken-1" in case_page.links
    assert b'["upgrade","0.5.3 to 0.6.2","","upgrade.html"]' in files["data/search.js"]
    links = [link for link in Page(files[UPGRADE]).links if link.startswith(("cases/", "#"))]
    assert "cases/f/breaks.html#cpu8@0.6.1" in links
    for link in links:
        name, _, anchor = link.partition("#")
        assert not anchor or anchor in Page(files[name or UPGRADE]).ids, link


def test_a_run_that_was_no_upgrade_has_no_page(tmp_path: Path) -> None:
    """Nor is one looked for."""
    report = Directory(tmp_path).job("f/a", CELLS[0], f32(1)).report()
    assert [*render_upgrade_pages(report)] == []
    assert find_first_page(report) == "index.html"
    assert find_first_page(Report(())) == "index.html"


def test_several_upgrades_have_a_page_each(tried: Tried, tmp_path: Path) -> None:
    """The newest is the first, and leads to the others."""
    older, newer = tried.report(), Tried(tmp_path / "run-2").case("f/same", OK, OK, OK, OK).report()
    both = Report((*older.runs, *newer.runs), upgrades={**older.upgrades, **newer.upgrades})
    pages = dict(render_upgrade_pages(both))
    assert [*pages] == [UPGRADE, "upgrades/run-1.html"]
    assert "upgrades/run-1.html" in Page(pages[UPGRADE]).links
    assert "Other upgrades here 0.5.3 to 0.6.2" in Page(pages[UPGRADE]).text
    assert "../upgrade.html" in Page(pages["upgrades/run-1.html"]).links
    assert "of 5 cases" in Page(pages["upgrades/run-1.html"]).text


def test_the_same_data_is_the_same_page(tried: Tried) -> None:
    """Byte for byte."""
    report = tried.report()
    again = Report(report.runs, upgrades=report.upgrades)
    assert [*render_upgrade_pages(report)] == [*render_upgrade_pages(again)]


def test_a_large_upgrade_is_a_small_page(tmp_path: Path) -> None:
    """Five hundred cases that change in many ways."""
    tried = Tried(tmp_path)
    for number in range(500):
        error = {"error": ("ValueError", f"reason {number // 5}")}
        tried.case(f"f/case_{number}", *([OK] * (1 + number % 3)), *([error] * (3 - number % 3)))
    content = dict(render_upgrade_pages(tried.report()))[UPGRADE]
    assert len(content) < 1_500_000
    assert Page(content).unclosed == []


def test_what_breaks_has_a_traceback(tmp_path: Path) -> None:
    """Of the first release that breaks it; the user's frames are seen at once."""
    tried = Tried(tmp_path / "run-1").case("f/breaks", OK, OK, TRACED, TRACED)
    found = page(tried.report()).text
    assert "Traceback of f/breaks on 0.6.1" in found
    assert found.index("cases/f/t.py:7") < found.index("2 frames in jax and numpy")
