"""Very many tests: which of them have a page, and that nothing links to one that is not there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.loader import LoadedRun
from conformance.model.run import RunCase, RunCell, RunInfo
from conformance.report.report import Report
from conformance.report.site import site
from conformance.report.site.addresses import case_page, href
from conformance.report.site.matrix_page import render_matrix_pages
from conformance.report.site.run_pages import SLOWEST
from conformance.report.site.site import select_pages
from tests.engine.runs.test_suite_changes import record

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from conformance.model.case import Kind

CELL = "jax0.6.2-py311-cpu8"


def report_on(folder: Path, *, kind: Kind = "test", number: int = 30) -> Report:
    """Return a report on many tests, one of which fails."""
    names = [f"t/test_{n}.py::test" for n in range(number)]
    records = tuple(
        record("fails" if n == 4 else "passes", name, cell=CELL, seconds=n * 0.001)
        for n, name in enumerate(names)
    )
    info = RunInfo(
        cells=(RunCell(id=CELL, versions={"jax": "0.6.2"}),),
        cases={name: RunCase(kind=kind) for name in names},
        plan=tuple((name, CELL) for name in names),
    )  # fmt: skip
    return Report((LoadedRun(id="run", info=info, records=records, blobs=BlobStore(folder)),))


def test_few_tests_have_a_page_each(tmp_path: Path) -> None:
    """As cases have, however many these are."""
    report = report_on(tmp_path)
    assert select_pages(report) is report


def test_of_very_many_tests_only_failing_ones_have_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the slowest, which the page of a run names; all are counted, and it is said."""
    monkeypatch.setattr(site, "MOST_PAGES", 20)
    cases = report_on(tmp_path, kind="program")
    assert select_pages(cases) is cases
    report = report_on(tmp_path)
    shown = select_pages(report)
    slowest = {f"t/test_{n}.py::test" for n in range(30 - SLOWEST, 30)}
    assert set(shown.cases) == {"t/test_4.py::test", *slowest}
    pages = {name: content.decode() for name, content in render_matrix_pages(shown, report)}
    assert "9 tests that pass or are skipped everywhere have no page" in pages["index.html"]
    assert "of 30 jobs" in pages["index.html"]
    for text in pages.values():
        linked = set(re.findall(r"cases/[^\"#\\]*\.html", text))
        assert linked <= {href(case_page(name)) for name in shown.cases}
