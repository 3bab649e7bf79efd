"""A suite's page: releases by groups, changes of each release, failures and warnings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from conformance.model.outcome import Verdict
from conformance.report.site.addresses import run_page, slug, suite_page
from conformance.report.site.rendering import render
from conformance.report.suites.conformance_history import (
    SuiteHistory,
    SuiteOutcome,
    find_failure_cause,
    shorten_test,
)
from conformance.report.suites.conformance_runs import (
    explain_incomplete,
    find_difference,
    make_suite_histories,
    merge_histories,
)
from conformance.report.suites.results import collect_warnings, read_collection_warnings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from conformance.engine.runs.loader import LoadedRun
    from conformance.report.report import Report
    from conformance.report.suites.conformance_history import (
        Counts,
        ReleaseStep,
        SuiteRelease,
        SuiteResult,
        TrackedTest,
    )

CHANGES: Final = ("regressed", "fixed", "added", "removed")
SHADES: Final = ((1.0, "all"), (0.95, "most"), (0.8, "some"), (0.0, "few"))
"""Fill of a cell by the least share of passing tests."""
STATES: Final = {
    SuiteOutcome.PASSED: Verdict.MATCH,
    SuiteOutcome.KNOWN: Verdict.KNOWN,
    SuiteOutcome.FAILED: Verdict.REGRESSED,
    SuiteOutcome.FLAKY: Verdict.FLAKY,
    SuiteOutcome.SKIPPED: Verdict.EXCLUDED,
}
"""Verdict whose letter and colour a test's outcome has."""
GRAVEST: Final = (SuiteOutcome.FAILED, SuiteOutcome.FLAKY, SuiteOutcome.KNOWN)
"""Outcomes of failing tests, in the order in which rows are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCell:
    """A group in a release.

    Attributes:
        counts: Numbers of its tests by outcome.
        anchor: Anchor of its failures, empty without failures.
    """

    counts: Counts
    anchor: str

    @property
    def shade(self) -> str:
        """Fill of the cell."""
        share = self.counts.share
        return next(name for least, name in SHADES if share >= least)

    @property
    def summary(self) -> str:
        """The counts in words."""
        found = self.counts
        parts = [f"{found.passed} of {found.ran} passed"]
        parts += [f"{found.known} known to fail"] if found.known else []
        parts += [f"{found.unexpected} unexpected"] if found.unexpected else []
        parts += [f"{found.skipped} skipped"] if found.skipped else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """The results of a release: the whole suite, and each group."""

    held: SuiteRelease
    step: ReleaseStep
    whole: ShareCell
    cells: tuple[ShareCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Tests that fail in the same way.

    Attributes:
        tests: The tests.
        result: Result of the first of them.
    """

    tests: tuple[str, ...]
    result: SuiteResult

    @property
    def state(self) -> str:
        """Verdict whose letter and colour the group has."""
        return STATES[self.result.outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSpan:
    """Releases in which the same tests of a group fail for the same reasons.

    Attributes:
        anchor: Its anchor.
        releases: The releases, in order.
        counts: Numbers of the group's tests by outcome in the last release.
        failures: The failures.
    """

    anchor: str
    releases: tuple[str, ...]
    counts: Counts
    failures: tuple[FailureGroup, ...]

    @property
    def name(self) -> str:
        """The releases, in words."""
        first, last = self.releases[0], self.releases[-1]
        return first if first == last else f"{first} to {last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeSegment:
    """Neighbouring releases in which a test has the same result."""

    state: str
    outcome: str
    length: int
    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group of tests that do not pass in every release.

    Attributes:
        name: Its name.
        anchor: Its anchor.
        own: True for a family of our own cases.
        spans: Releases with failures, the newest first.
        strips: Name and segments of each test over all releases.
        docs: Docstrings of our own cases, by id.
    """

    name: str
    anchor: str
    own: bool
    spans: tuple[FailureSpan, ...]
    strips: tuple[tuple[str, tuple[OutcomeSegment, ...]], ...]
    docs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteView:
    """The content of a page.

    Attributes:
        page: Its path.
        history: Results on releases, of this run, comparable runs and the committed history.
        notes: Notes on what the page leaves out, a sentence for each.
    """

    page: str
    history: SuiteHistory
    notes: tuple[str, ...] = ()


def make_suite_views(report: Report) -> tuple[SuiteView, ...]:
    """Return the content of the pages of suites, those of the newest run first.

    Args:
        report: The runs to report. The newest run of a suite decides; releases that it does not
            have are added from other runs and the committed history, if these can be compared.
    """
    newest = {run.info.suite.name: run for run in report.runs if run.info.suite is not None}
    found: list[SuiteView] = []
    for name, run in reversed(newest.items()):
        earlier = [
            one for one in report.runs
            if one is not run and one.info.suite is not None and one.info.suite.name == name
        ]  # fmt: skip
        # Without dates of releases, which are in the committed history: reports read no index.
        for number, history in enumerate(make_suite_histories(run, {})):
            # The first track has the address without a place, so that links to it stay valid.
            page = suite_page(name, history.place if number else "")
            joined, notes = _merge_known(history, run, earlier, report.conformance.get(name))
            found.append(SuiteView(page=page, history=joined, notes=notes))
    return tuple(found)


def _merge_known(
    own: SuiteHistory, run: LoadedRun, earlier: Sequence[LoadedRun], committed: SuiteHistory | None
) -> tuple[SuiteHistory, tuple[str, ...]]:
    """Return a history with the other known releases, and notes on what was left out."""
    # A part of a suite would show all other tests as removed.
    if wrong := explain_incomplete(run):
        return own, (f"The run does not cover the whole suite: {wrong}.",)
    others = [
        (one, f"run {earlier_run.id}")
        for earlier_run in earlier
        if not explain_incomplete(earlier_run)
        for one in make_suite_histories(earlier_run, {})
        if one.place == own.place
    ]
    if committed is not None:
        others.insert(0, (committed, "the committed history"))
    # The committed history is first, so that any run replaces its releases, and the run itself is
    # last.
    known, notes = None, []
    for one, name in others:
        if wrong := find_difference(one, own):
            notes.append(f"{name[0].upper()}{name[1:]} is not shown: {wrong}.")
            continue
        known = merge_histories(known, one)
    return merge_histories(known, own), tuple(notes)


def render_suite_pages(
    report: Report, cases: Collection[str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield the page of every suite.

    Args:
        report: The runs to report.
        cases: Ids of the cases with a page; None for all.

    Yields:
        Path below the site's root, and content.
    """
    views = make_suite_views(report)
    for view in views:
        history = view.history
        groups = [_make_group(history, name) for name in (*history.groups, *history.families)]
        anchors = {
            (release, group.name): span.anchor
            for group in groups
            for span in group.spans
            for release in span.releases
        }
        # A report may have runs of scenario cases, too.
        sides = [
            side for (case, _), side in report.jobs.items() if report.cases[case].kind == "test"
        ]
        shown = {run.id for run in report.runs}
        data = {
            "view": view,
            "others": [one for one in views if one is not view],
            "history": history,
            "rows": [_make_row(history, step, anchors) for step in reversed(history.steps)],
            "groups": [group for group in groups if group.spans],
            "steps": [
                step for step in reversed(history.steps) if _has_changes(step) or step.standards
            ],
            "own_case_steps": [
                step for step in reversed(history.own_case_steps) if _has_changes(step)
            ],
            "group_of": {name: one.group for name, one in history.tests.items()},
            "changes": CHANGES,
            "short_name": shorten_test,
            "pages": frozenset(report.cases if cases is None else cases),
            "run_pages": {run: run_page(run) for run in shown},
            "warnings": collect_warnings(
                sides, report.cells, read_collection_warnings(report.runs)
            ),
            "cells": len({side.record.cell for side in sides}),
        }
        yield view.page, render("suite.html", view.page, data)


def _has_changes(step: ReleaseStep) -> bool:
    return any(getattr(step, word) for word in CHANGES)


def _make_row(
    history: SuiteHistory, step: ReleaseStep, anchors: Mapping[tuple[str, str], str]
) -> ReleaseRow:
    release = step.after.release
    return ReleaseRow(
        held=step.after, step=step, whole=ShareCell(counts=history.counts(release), anchor=""),
        cells=tuple(
            ShareCell(
                counts=history.counts(release, name),
                anchor=anchors.get((release, name), ""),
            )
            for name in (*history.groups, *history.families)
        ),
    )  # fmt: skip


def _make_group(history: SuiteHistory, name: str) -> GroupView:
    own = name in history.families
    tests = {
        test: one
        for test, one in (history.own_cases if own else history.tests).items()
        if one.group == name
    }
    releases = [held.release for held in history.releases]
    failing = [(release, history.failing(release, name)) for release in releases]
    spans = []
    for _, members in groupby(failing, key=lambda one: one[1]):
        found = list(members)
        # The counts may differ within a span, because passing tests may be added or removed.
        first, failures = found[0]
        if failures:
            spans.append(
                FailureSpan(
                    anchor=f"{slug(name)}@{slug(first)}", releases=tuple(r for r, _ in found),
                    counts=history.counts(found[-1][0], name), failures=_group_failures(failures),
                )
            )  # fmt: skip
    ever = {test for _, failures in failing for test in failures}
    ordered = sorted(ever, key=lambda test: (_rank_gravity(tests[test].of(releases[-1])), test))
    strips = tuple((test, _make_strip(tests[test], releases)) for test in ordered)
    docs = {test: tests[test].doc for test in ever}
    return GroupView(
        name=name, anchor=slug(name), own=own, spans=tuple(reversed(spans)), strips=strips,
        docs=docs,
    )  # fmt: skip


def _group_failures(found: Mapping[str, SuiteResult]) -> tuple[FailureGroup, ...]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, result in found.items():
        groups.setdefault((result.outcome, *find_failure_cause(name, result)), []).append(name)
    failures = [
        FailureGroup(tests=tuple(names), result=found[names[0]]) for names in groups.values()
    ]
    return tuple(sorted(failures, key=lambda failure: _rank_gravity(failure.result)))


def _rank_gravity(result: SuiteResult) -> int:
    """Return the sort key of a result: unexpected failures, known failures, all others."""
    return GRAVEST.index(result.outcome) if result.outcome in GRAVEST else len(GRAVEST)


def _make_strip(followed: TrackedTest, releases: Sequence[str]) -> tuple[OutcomeSegment, ...]:
    ended = [(release, followed.of(release)) for release in releases]
    segments = []
    for result, members in groupby(ended, key=lambda one: one[1]):
        names = [release for release, _ in members]
        name = names[0] if len(names) == 1 else f"{names[0]}\N{EN DASH}{names[-1]}"
        segments.append(
            OutcomeSegment(
                state=STATES.get(result.outcome, ""), outcome=result.outcome, length=len(names),
                name=name, why=result.reason or result.why,
            )
        )  # fmt: skip
    return tuple(segments)
