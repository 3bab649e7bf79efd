"""The change of a test between two sides: every pair of states, and their causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.runs.suite_changes import (
    SuiteTestChange,
    SuiteTestState,
    classify_test,
    compare_tests,
    group_by_cause,
)
from conformance.model.outcome import Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

SEEN: Mapping[str, tuple[Outcome, Verdict, str]] = {
    "passes": (Outcome.OK, Verdict.MATCH, ""),
    "fails": (Outcome.RAISED, Verdict.REGRESSED, "ValueError: one"),
    "fails otherwise": (Outcome.RAISED, Verdict.REGRESSED, "TypeError: two"),
    "crashes": (Outcome.CRASHED, Verdict.CRASHED, "SIGSEGV: the process was ended by SIGSEGV"),
    "known": (Outcome.RAISED, Verdict.KNOWN, "ValueError: one"),
    "fixed": (Outcome.OK, Verdict.FIXED, ""),
    "flaky": (Outcome.RAISED, Verdict.FLAKY, "ValueError: one"),
    "skipped": (Outcome.UNSUPPORTED, Verdict.EXCLUDED, "skipped: no"),
    "skipped otherwise": (Outcome.UNSUPPORTED, Verdict.EXCLUDED, "skipped: another"),
    "not there": (Outcome.UNSUPPORTED, Verdict.EXCLUDED, "not collected: is not collected here"),
    "refused": (Outcome.UNSUPPORTED, Verdict.EXCLUDED, "unsupported: no such device"),
    "not run": (Outcome.NOT_RUN, Verdict.INFRA, "not run: given up"),
}


def record(
    kind: str, test: str = "t", seconds: float = 0.0, cell: str = "cell", **more: Any
) -> Record:
    """Return a record of a test that ended in some way."""
    outcome, verdict, signature = SEEN[kind]
    type_, _, message = signature.partition(": ")
    error = ErrorInfo(type=type_, message=message, signature=signature) if signature else None
    return Record(
        case=test, cell=cell, case_hash="", cell_hash="", outcome=outcome, stage=Stage.EXECUTE,
        error=error, verdict=verdict, seconds={"job": seconds}, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("passes", "fails", SuiteTestChange.REGRESSED),
        ("passes", "crashes", SuiteTestChange.REGRESSED),
        ("passes", "known", SuiteTestChange.KNOWN),
        ("fails", "passes", SuiteTestChange.FIXED),
        ("known", "fixed", SuiteTestChange.FIXED),
        ("fails", "fails otherwise", SuiteTestChange.CHANGED),
        ("fails", "crashes", SuiteTestChange.CHANGED),
        ("known", "fails", SuiteTestChange.CHANGED),
        ("fails", "fails", SuiteTestChange.SAME),
        ("passes", "fixed", SuiteTestChange.SAME),
        ("skipped", "fails", SuiteTestChange.UNSKIPPED_FAILS),
        ("skipped", "passes", SuiteTestChange.UNSKIPPED),
        ("fails", "skipped", SuiteTestChange.SKIPPED),
        ("passes", "skipped", SuiteTestChange.SKIPPED),
        ("skipped", "skipped otherwise", SuiteTestChange.SAME),
        ("passes", "not there", SuiteTestChange.REMOVED),
        ("fails", "not there", SuiteTestChange.REMOVED),
        ("not there", "passes", SuiteTestChange.ADDED),
        ("not there", "fails", SuiteTestChange.ADDED),
        ("not there", "skipped", SuiteTestChange.ADDED),
        ("not there", "not there", SuiteTestChange.SAME),
        ("passes", "flaky", SuiteTestChange.FLAKY),
        ("flaky", "fails", SuiteTestChange.FLAKY),
        ("flaky", "flaky", SuiteTestChange.SAME),
        ("passes", "not run", SuiteTestChange.SILENT),
        ("refused", "fails", SuiteTestChange.SILENT),
    ],
)
def test_the_change_of_a_test(before: str, after: str, change: SuiteTestChange) -> None:
    """A test that only one side has is neither fixed nor a regression."""
    assert compare_tests("t", record(before), record(after)).change is change


@given(st.sampled_from(list(SEEN)), st.sampled_from(list(SEEN)))
def test_changes_that_count_do_so_in_both_directions(before: str, after: str) -> None:
    """Equal sides give no change."""
    there = compare_tests("t", record(before), record(after)).change
    back = compare_tests("t", record(after), record(before)).change
    assert there.counts is back.counts
    assert (there is SuiteTestChange.SAME) is (back is SuiteTestChange.SAME)
    assert (there is SuiteTestChange.ADDED) is (back is SuiteTestChange.REMOVED)


def test_a_test_without_a_record() -> None:
    """It is absent, or unknown."""
    assert classify_test(None) is SuiteTestState.ABSENT
    assert compare_tests("t", None, record("fails")).change is SuiteTestChange.ADDED
    assert compare_tests("t", record("fails"), None).change is SuiteTestChange.REMOVED
    assert compare_tests("t", record("fails"), None, silent=True).change is SuiteTestChange.SILENT


def test_changes_are_grouped_by_cause() -> None:
    """The gravest first, then the most frequent."""
    pairs = {
        "a": ("passes", "crashes"), "b": ("passes", "fails"), "c": ("passes", "fails"),
        "d": ("fails", "passes"), "e": ("passes", "passes"),
    }  # fmt: skip
    found = group_by_cause(
        compare_tests(t, *(record(kind, t) for kind in pair)) for t, pair in pairs.items()
    )
    assert [(group[0].change, [one.test for one in group]) for group in found] == [
        (SuiteTestChange.REGRESSED, ["b", "c"]),
        (SuiteTestChange.REGRESSED, ["a"]),
        (SuiteTestChange.FIXED, ["d"]),
    ]


@pytest.mark.parametrize(
    ("before", "after", "slower"),
    [(0.1, 0.7, True), (0.1, 0.5, False), (2.0, 3.9, False), (2.0, 4.0, True), (4.0, 1.0, False)],
)
def test_a_slower_test(before: float, after: float, *, slower: bool) -> None:
    """At least twice the time and half a second more; failing tests have no duration."""
    one = compare_tests("t", record("passes", seconds=before), record("passes", seconds=after))
    assert (one.seconds, one.slower) == ((before, after), slower)
    other = compare_tests("t", record("passes", seconds=before), record("fails", seconds=after))
    assert (other.seconds, other.slower) == (None, False)
