"""The page of a suite: releases by groups, what changed, what fails and why, warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.engine.runs.loader import load_run
from conformance.report.overview import make_overview
from conformance.report.report import Report
from conformance.report.site.matrix_page import make_search_data
from conformance.report.site.suite_page import make_suite_views, render_suite_pages
from conformance.report.suites.conformance_runs import make_suite_history
from tests.report.runs import CELLS, Directory
from tests.report.site.examples import suite_report
from tests.report.site.pages import Page
from tests.report.suite_runs import SUITE, suite_run

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.runs.loader import LoadedRun
    from conformance.report.suites.conformance_history import SuiteHistory

PAGE = "suites/signs.html"


def run(folder: Path, releases: tuple[str, ...], tests: dict[str, str], **more: Any) -> LoadedRun:
    """Return a run of the suite."""
    return load_run(suite_run(folder, releases, tests, **more).run)


def page(report: Report) -> Page:
    """Return the page."""
    return Page(dict(render_suite_pages(report))[PAGE])


def releases(history: SuiteHistory) -> list[str]:
    """Return the releases of a history."""
    return [held.release for held in history.releases]


def test_the_committed_history_is_shown_with_the_run(tmp_path: Path) -> None:
    """Releases of both, what each changed, and our own cases."""
    report = suite_report(tmp_path)
    (view,) = make_suite_views(report)
    assert releases(view.history) == ["0.5.3", "0.6.2", "0.7.0", "0.8.3", "0.10.2"]
    assert view.notes == ()
    found = page(report)
    assert found.unclosed == []
    assert "Signs: jax 0.5.3 to 0.10.2" in found.text
    for words in ("0.8.3 to 0.10.2: 1 of 2 does not pass", "own_devices", "new in 0.10.2",
                  "Held against version 2024.12", "a.b is deprecated"):  # fmt: skip
        assert words in found.text
    inner = {link[1:] for link in found.links if link.startswith("#")}
    assert inner <= {*found.ids, "content"}
    assert "linear-algebra@0.8.3" in inner


def test_an_incomplete_run_is_shown_alone(tmp_path: Path) -> None:
    """And says so."""
    part = run(tmp_path / "a", ("0.6.2",), {"a/one": "p"}, suite=replace(SUITE, complete=False))
    kept = make_suite_history(run(tmp_path / "b", ("0.5.3",), {"a/one": "p"}), {})
    (view,) = make_suite_views(Report((part,), conformance={"signs": kept}))
    assert releases(view.history) == ["0.6.2"]
    assert "only a part of the suite was asked for" in page(Report((part,))).text


def test_histories_that_cannot_be_merged_are_named(tmp_path: Path) -> None:
    """Other settings, another revision: nothing of it is shown."""
    new = run(tmp_path / "a", ("0.6.2",), {"a/one": "p"})
    kept = replace(make_suite_history(new, {}), revision="6" * 40)
    earlier = run(
        tmp_path / "b", ("0.5.3",), {"a/one": "p"}, suite=replace(SUITE, settings={"seed": 3})
    )
    (view,) = make_suite_views(Report((earlier, new), conformance={"signs": kept}))
    assert releases(view.history) == ["0.6.2"]
    first, second = view.notes
    assert first.startswith("The committed history is not shown: another revision")
    assert second.startswith("Run b is not shown: another settings")


def test_a_page_for_each_platform(tmp_path: Path) -> None:
    """Each leads to the others."""
    made = Directory(tmp_path / "r").job("a/one", "jax0.6.2-py311-cpu8")
    report = Report((made.job("a/one", "jax0.6.2-py311-cpu4").loaded(suite=SUITE),))
    pages = {name: Page(content) for name, content in render_suite_pages(report)}
    assert list(pages) == ["suites/signs.html", "suites/signs+cpu8.html"]
    assert "../suites/signs+cpu8.html" in pages["suites/signs.html"].links


def test_failing_rows_come_first(tmp_path: Path) -> None:
    """Unexpected failures precede known ones, and tests that pass now come last."""
    tests = {"a/t.py::test_1": "kp", "a/t.py::test_2": "pk", "a/t.py::test_3": "pF"}
    text = page(Report((run(tmp_path, ("0.5.3", "0.6.2"), tests),))).text
    (_, failures) = text.split("What does not pass, and why")
    (table, rows) = failures.split("tests by release")
    assert table.index("test_3") < table.index("test_2")
    assert rows.index("test_3") < rows.index("test_2") < rows.index("test_1")


def test_without_a_suite_there_is_no_page(tmp_path: Path) -> None:
    """Nor a link to it."""
    report = Directory(tmp_path / "r").job("f/a", CELLS[0]).report()
    assert list(render_suite_pages(report)) == []
    assert make_search_data(report, make_overview(report))["suite"] == ""
