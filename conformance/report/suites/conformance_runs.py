"""Conformance histories from runs of a suite, and the merge of two histories."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
from packaging.version import Version

from conformance.engine.runs.suite_changes import NOT_COLLECTED
from conformance.errors import UsageError
from conformance.judge.conformance import matches_deviation
from conformance.judge.suite_verdict import XFAIL
from conformance.model.observation import Observation
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.report.suites.conformance_history import (
    ABSENT,
    OTHER,
    SuiteHistory,
    SuiteOutcome,
    SuiteRelease,
    SuiteResult,
    TrackedTest,
)
from conformance.report.text import flatten
from conformance.report.tracks import group_tracks, make_release_key
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.engine.runs.loader import LoadedRun
    from conformance.model.case import Deviation
    from conformance.model.record import Record
    from conformance.model.run import RunCase, RunCell, RunSuite
    from conformance.report.tracks import Track

WHY: Final = 240
"""Characters of a test's error that are kept."""
COUNTING: Final = ("max_examples", "seed", "standard")
"""Settings that influence results: histories with other values cannot be merged."""
_OUTCOMES: Final = {
    Verdict.MATCH: SuiteOutcome.PASSED,
    Verdict.FIXED: SuiteOutcome.PASSED,
    Verdict.KNOWN: SuiteOutcome.KNOWN,
    Verdict.STALE: SuiteOutcome.PASSED,
    Verdict.FLAKY: SuiteOutcome.FLAKY,
    Verdict.EXCLUDED: SuiteOutcome.SKIPPED,
}
"""Outcome of a test by its verdict; any other verdict is a failure."""


def make_suite_history(
    run: LoadedRun,
    dates: Mapping[str, str],
    group: Callable[[str], str] | None = None,
    deviations: Mapping[str, Sequence[Deviation]] | None = None,
) -> SuiteHistory:
    """Return the history that a run of a suite on a single platform contains.

    Args:
        run: The run.
        dates: Day of each release.
        group: Returns the group of a test by its name; None for those that the run has.
        deviations: Known failures by test, to judge the run by; None for its own verdicts.

    Raises:
        UsageError: If the run is of no suite, of several places, or has a release twice.
    """
    histories = make_suite_histories(run, dates, group, deviations)
    if len(histories) != 1:
        names = ", ".join(history.place for history in histories) or "no release"
        raise UsageError(f"{run.id}: expected the releases of one platform, got {names}")
    (history,) = histories
    # Committed data are keyed by the release: a second cell, with another Python or other
    # packages, would overwrite the first.
    counts = Counter(held.release for held in history.releases)
    if doubled := sorted(release for release, number in counts.items() if number > 1):
        raise UsageError(f"{run.id}: {', '.join(doubled)}: expected one cell of a release, got two")
    return history


def make_suite_histories(
    run: LoadedRun,
    dates: Mapping[str, str],
    group: Callable[[str], str] | None = None,
    deviations: Mapping[str, Sequence[Deviation]] | None = None,
) -> tuple[SuiteHistory, ...]:
    """Return the history of each platform in a run of a suite, without nightlies.

    Args:
        run: The run.
        dates: Day of each release.
        group: Returns the group of a test by its name; None for those that the run has.
        deviations: Known failures by test, to judge the run by; None for its own verdicts.

    Raises:
        UsageError: If the run is of no suite.
    """
    suite = get_suite(run)
    tracks = group_tracks(cell for cell in run.info.cells if not _is_development(cell))
    settings = {name: value for name, value in suite.settings.items() if name in COUNTING}
    return tuple(
        SuiteHistory(
            suite=suite.name, title=suite.title, revision=suite.revision, settings=settings,
            place=track.name,
            releases=tuple(_make_release(cell, run, dates) for cell in track.cells),
            tests=_track_tests(run, track, group, deviations),
        )
        for track in tracks
    )  # fmt: skip


def _track_tests(
    run: LoadedRun,
    track: Track,
    group: Callable[[str], str] | None,
    deviations: Mapping[str, Sequence[Deviation]] | None,
) -> dict[str, TrackedTest]:
    cells = {cell.id: cell for cell in track.cells}
    # Deviations name `cpu` without a number of devices, but `tpu:v5e:2x2` in full.
    platform = track.kind if track.kind == "cpu" else track.name.partition(" ")[0]
    found: dict[str, dict[str, SuiteResult]] = {}
    for record in run.records:
        cell = cells.get(record.cell)
        if cell is not None and record.outcome not in {Outcome.INFRA, Outcome.NOT_RUN}:
            declared = [
                one
                for one in _find_declared(record.case, run, deviations)
                if one.covers(cell.release or "0", platform, cell.versions)
            ]
            # Committed histories are judged by the deviations of today, so that a declaration
            # added later needs no new run.
            result = make_result(record, declared, rejudge=deviations is not None)
            if result is not ABSENT:
                found.setdefault(record.case, {})[cell.label] = result
    return {
        name: TrackedTest(group=_find_group(name, run.info.cases.get(name), group), results=results)
        for name, results in found.items()
    }


def _find_declared(
    test: str, run: LoadedRun, deviations: Mapping[str, Sequence[Deviation]] | None
) -> Sequence[Deviation]:
    if deviations is not None:
        return deviations.get(test, ())
    case = run.info.cases.get(test)
    return () if case is None else case.deviations


def get_suite(run: LoadedRun) -> RunSuite:
    """Return the suite of a run.

    Raises:
        UsageError: If the run is no run of a suite.
    """
    if run.info.suite is None:
        raise UsageError(f"{run.id}: is no run of a suite; `conformance suite run` makes one")
    return run.info.suite


def explain_incomplete(run: LoadedRun) -> str:
    """Return why a run lacks results of its suite in some cell, empty if it is complete.

    Args:
        run: A run of a suite.
    """
    # An incomplete run must not enter a history: its missing tests would read as removed.
    suite = get_suite(run)
    if not suite.complete:
        return "only a part of the suite was asked for"
    if not run.info.finished:
        return "it did not end"
    recorded = {(record.case, record.cell) for record in run.records}
    missing = [pair for pair in run.info.plan if pair not in recorded]
    if missing:
        tests = plural(len(missing), "test")
        return f"{tests} without a result, such as {missing[0][0]} on {missing[0][1]}"
    lost = [r for r in run.records if r.outcome in {Outcome.INFRA, Outcome.NOT_RUN}]
    if lost:
        why = flatten("; ".join(lost[0].reasons), WHY)
        tests = plural(len(lost), "test")
        return f"{tests} could not be run, such as {lost[0].case} on {lost[0].cell}: {why}"
    return ""


def merge_histories(old: SuiteHistory | None, new: SuiteHistory) -> SuiteHistory:
    """Return a history with the releases of both; the new history decides on common releases.

    Args:
        old: The earlier history, None for none.
        new: The new history, which also decides on the groups of tests.

    Raises:
        UsageError: If the two differ in suite, revision, settings or place.
    """
    if old is None:
        return new
    if wrong := find_difference(old, new):
        raise UsageError(wrong)
    replaced = {held.release for held in new.releases}
    by_release = {held.release: held for held in old.releases}
    for held in new.releases:
        # A history may be made without release dates, e.g. for the site: a known date is kept.
        date = held.date or (by_release[held.release].date if held.release in by_release else "")
        by_release[held.release] = msgspec.structs.replace(held, date=date)
    tests: dict[str, TrackedTest] = {}
    for name, followed in {**old.tests, **new.tests}.items():
        before = old.tests[name].results if name in old.tests else {}
        results = {release: r for release, r in before.items() if release not in replaced}
        if name in new.tests:
            results |= followed.results
        # A test of replaced releases alone, which the new run did not collect, is dropped.
        if results:
            tests[name] = replace(followed, results=results)
    return replace(
        new,
        title=new.title or old.title,
        releases=tuple(by_release[name] for name in sorted(by_release, key=make_release_key)),
        tests=tests,
        own_cases=new.own_cases or old.own_cases,
    )


def find_difference(old: SuiteHistory, new: SuiteHistory) -> str:
    """Return why two histories cannot be merged, empty if they can.

    Args:
        old: The earlier history.
        new: The new history.
    """
    for what, one, other in (
        ("suite", old.suite, new.suite),
        ("revision", old.revision, new.revision),
        ("settings", dict(old.settings), dict(new.settings)),
        ("platform", old.place, new.place),
    ):
        if one != other:
            kept, found = _format_value(one), _format_value(other)
            return f"another {what}: {kept} is what is kept, {found} what is new"
    return ""


def make_result(
    record: Record, declared: Sequence[Deviation], *, rejudge: bool = False
) -> SuiteResult:
    """Return the result of a test.

    A test with a declared failure that may pass counts as known even if it passes: chance is no
    fix.

    Args:
        record: Record of the test.
        declared: Its known failures that cover the cell.
        rejudge: True to judge a failure by `declared` instead of by its verdict.
    """
    outcome = _OUTCOMES.get(record.verdict, SuiteOutcome.FAILED)
    # A test that this cell did not collect is recorded as excluded, like a skip: in a history it
    # is no test of that release.
    if outcome is SuiteOutcome.SKIPPED and record.error and record.error.type == NOT_COLLECTED:
        return ABSENT
    observed = Observation(outcome=record.outcome, stage=record.stage, error=record.error)
    shown = next(
        (d for d in declared if matches_deviation(d, observed, Conformance.DEVIATES)), None
    )
    if outcome is SuiteOutcome.PASSED:
        shown = next((one for one in declared if one.may_pass), None)
        outcome = outcome if shown is None else SuiteOutcome.KNOWN
    # An xfail mark of the suite itself is as good as a declaration, and needs none of ours.
    elif (
        rejudge
        and outcome in {SuiteOutcome.KNOWN, SuiteOutcome.FAILED}
        and XFAIL not in record.artifacts
    ):
        outcome = SuiteOutcome.FAILED if shown is None else SuiteOutcome.KNOWN
    if outcome is SuiteOutcome.PASSED:
        return SuiteResult(outcome=outcome)
    why = _explain(record, outcome)
    if outcome is not SuiteOutcome.KNOWN or shown is None:
        return SuiteResult(outcome=outcome, why=why)
    reason = flatten(shown.reason, WHY)
    return SuiteResult(outcome=outcome, why=why, reason=reason, issue=shown.issue)


def _explain(record: Record, outcome: SuiteOutcome) -> str:
    if outcome is SuiteOutcome.SKIPPED or record.error is None:
        return flatten("; ".join(record.reasons), WHY)
    return flatten(strip_assertion(record.error.signature or record.error.type), WHY)


def strip_assertion(signature: str) -> str:
    """Return the signature of an error without pytest's introspection of the assertion.

    Args:
        signature: Signature of the error.
    """
    lines = signature.split("\n")
    # A bare `assert` has only introspected lines: all of them are kept then.
    own = next((at for at, line in enumerate(lines) if line.startswith("assert ")), len(lines))
    return "\n".join(lines[:own] or lines)


def _make_release(cell: RunCell, run: LoadedRun, dates: Mapping[str, str]) -> SuiteRelease:
    facts = run.info.identities.get(cell.id, {}).get("facts", {})
    return SuiteRelease(
        release=cell.label, cell=cell.id, standard=str(facts.get("standard", "")),
        date=dates.get(cell.release, ""), run=run.id,
    )  # fmt: skip


def _is_development(cell: RunCell) -> bool:
    """Say whether a cell has a development version: a history is of released versions only."""
    try:
        return Version(cell.release).is_prerelease
    except ValueError:  # a cell that never started may have no version
        return False


def _find_group(name: str, case: RunCase | None, group: Callable[[str], str] | None) -> str:
    found = group(name) if group is not None else ""
    if found or case is None:
        return found or OTHER
    return case.group or case.file or OTHER


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items() if item is not None)
    return str(value) or "none"
