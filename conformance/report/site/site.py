"""All files of the site."""

from __future__ import annotations

import heapq
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from conformance.model.outcome import Verdict
from conformance.report.site.addresses import MATRIX, UPGRADE
from conformance.report.site.badges import render_badges
from conformance.report.site.case_page import collect_pairs, render_case_pages
from conformance.report.site.causes_page import collect_causes_by_case, render_causes_pages
from conformance.report.site.ecosystem_page import render_ecosystem_page
from conformance.report.site.fuzz_page import render_fuzz_page
from conformance.report.site.history_page import (
    make_case_history,
    render_feed,
    render_history_pages,
)
from conformance.report.site.matrix_page import render_matrix_pages
from conformance.report.site.performance_page import render_performance_page
from conformance.report.site.run_pages import SLOWEST, render_run_pages
from conformance.report.site.suite_page import render_suite_pages
from conformance.report.site.upgrade_page import (
    collect_mentions,
    list_addresses,
    render_upgrade_pages,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from conformance.engine.cache.differences import DiffCache
    from conformance.engine.runs.loader import LoadedRun
    from conformance.report.history import History
    from conformance.report.report import Report


def render_site(
    report: Report, history: History, diffs: DiffCache, *, address: str = ""
) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the site.

    Args:
        report: The runs to report.
        history: History of these runs and earlier ones.
        diffs: Differences of IRs.
        address: Address at which the site is published, for the feed; empty if it is unknown.

    Yields:
        Path below the site's root, and content.
    """
    shown = select_pages(report)
    with diffs.prepare(collect_pairs(shown)):
        yield from render_matrix_pages(shown, report)
        yield from render_upgrade_pages(report)
        yield from render_causes_pages(report)
        yield from render_fuzz_page(report)
        yield from render_ecosystem_page(report)
        yield from render_performance_page(report)
        yield from render_suite_pages(report, shown.cases.keys())
        yield from render_run_pages(report.runs, list_addresses(report))
        yield from render_history_pages(history, shown)
        yield from render_feed(history, address)
        yield from render_badges(report)
        yield from load_assets()
        # Last, because they wait for the differences, which other processes compute meanwhile.
        by_date = {case: make_case_history(history, case) for case in shown.cases}
        yield from render_case_pages(
            shown, diffs.get, by_date, collect_mentions(report), collect_causes_by_case(report)
        )


def find_first_page(report: Report) -> str:
    """Return the page to open for the newest run: the page of an upgrade, otherwise the matrix.

    Args:
        report: The runs to report.
    """
    newest = report.runs[-1].id if report.runs else ""
    return UPGRADE if newest in report.upgrades else MATRIX


def load_assets() -> Iterator[tuple[str, bytes]]:
    """Yield the files that are the same for every report."""
    folder = files("conformance.report.site") / "assets"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        yield f"assets/{file.name}", file.read_bytes()


MOST_PAGES: Final = 2_000
"""Number of tests of suites up to which all have a page; of more, passing tests have none."""
QUIET: Final = frozenset({Verdict.MATCH, Verdict.EXCLUDED})
"""Verdicts without details: the page of such a test would show nothing but them."""


def select_pages(report: Report) -> Report:
    """Return a report without tests that get no page: of very many, those that pass everywhere.

    Args:
        report: The complete runs.
    """
    tests = [name for name, case in report.cases.items() if case.kind == "test"]
    if len(tests) <= MOST_PAGES:
        return report
    # Tests that other pages link to have a page in any case: no link of the site is dead.
    linked = {*_find_mentioned(report), *_find_slowest(report)}
    quiet = frozenset(
        name
        for name in tests
        if name not in linked and all(side.record.verdict in QUIET for side in report.sides(name))
    )
    return replace(report, runs=[_remove_tests(run, quiet) for run in report.runs])


def _find_mentioned(report: Report) -> Iterator[str]:
    """Yield the tests that pages of upgrades link to."""
    for upgrade in report.upgrades.values():
        lists = (upgrade.transitions, upgrade.flaky, upgrade.not_compared, upgrade.fails_alike)
        for entries in lists:
            yield from (entry.case for entry in entries)


def _find_slowest(report: Report) -> Iterator[str]:
    """Yield the tests that pages of runs link to."""
    for run in report.runs:
        ran = (record for record in run.records if not record.cached)
        slowest = heapq.nlargest(SLOWEST, ran, key=lambda record: record.seconds.get("job", 0.0))
        yield from (record.case for record in slowest)


def _remove_tests(run: LoadedRun, quiet: Collection[str]) -> LoadedRun:
    cases = {name: case for name, case in run.info.cases.items() if name not in quiet}
    # From the plan too, otherwise the removed tests would count as planned but never run.
    plan = tuple(pair for pair in run.info.plan if pair[0] not in quiet)
    records = tuple(record for record in run.records if record.case not in quiet)
    return replace(run, info=replace(run.info, cases=cases, plan=plan), records=records)
