"""Selection of the tests with pages of their own, where there are too many."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from conformance.model.outcome import Verdict
from conformance.report.site.run_pages import SLOWEST

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from conformance.engine.run_loader import LoadedRun
    from conformance.report.report import Report

MOST: Final = 2_000
"""Tests of suites that all have a page and a row; of more, those of which there is more to say."""
QUIET: Final = frozenset({Verdict.MATCH, Verdict.EXCLUDED})
"""Verdicts of a test of which there is nothing more to say than that."""


def select_pages(report: Report) -> Report:
    """Return a report on what has pages: all, but of very many tests those that pass everywhere.

    Args:
        report: All that is told.
    """
    tests = [name for name, case in report.cases.items() if case.kind == "test"]
    if len(tests) <= MOST:
        return report
    told = {*_find_mentioned(report), *_find_slowest(report)}
    quiet = frozenset(
        name
        for name in tests
        if name not in told and all(side.record.verdict in QUIET for side in report.sides(name))
    )
    return replace(report, runs=[_remove_tests(run, quiet) for run in report.runs])


def describe_omitted(report: Report, shown: Report) -> str:
    """Return what is said of the tests without a page, empty where all have one.

    Args:
        report: All that is told.
        shown: What has pages.
    """
    number = len(report.cases) - len(shown.cases)
    if not number:
        return ""
    return f"{number:,} tests that pass or are skipped everywhere have no page and no row: too many"


def _find_mentioned(report: Report) -> Iterator[str]:
    """Yield the tests that pages of upgrades link to."""
    for upgrade in report.upgrades.values():
        for said in (upgrade.transitions, upgrade.flaky, upgrade.not_compared, upgrade.fails_alike):
            yield from (one.case for one in said)


def _find_slowest(report: Report) -> Iterator[str]:
    """Yield the tests that pages of runs link to."""
    for run in report.runs:
        ran = (record for record in run.records if not record.cached)
        slowest = heapq.nlargest(SLOWEST, ran, key=lambda record: record.seconds.get("job", 0.0))
        yield from (record.case for record in slowest)


def _remove_tests(run: LoadedRun, quiet: Collection[str]) -> LoadedRun:
    cases = {name: case for name, case in run.info.cases.items() if name not in quiet}
    plan = tuple(pair for pair in run.info.plan if pair[0] not in quiet)
    records = tuple(record for record in run.records if record.case not in quiet)
    return replace(run, info=replace(run.info, cases=cases, plan=plan), records=records)
