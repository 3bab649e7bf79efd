"""Changes of the tests of a suite from one cell, or run, to another. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from conformance.errors import NothingSelectedError
from conformance.model.outcome import Outcome, Verdict, is_conclusive

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.model.run import RunInfo

    Key = tuple[str, str]

NOT_COLLECTED: Final = "not collected"
"""Type of the error of a test that its suite does not have in a cell."""
SKIPPED: Final = "skipped"
"""Type of the error of a test that is skipped."""
SLOWER: Final = 2.0
"""Factor of its duration from which a test counts as slower."""
LEAST: Final = 0.5
"""Additional seconds from which a test counts as slower: less is noise of the machine."""


class SuiteTestState(StrEnum):
    """The state of a test on one side of a comparison."""

    PASSED = "passed"
    FAILED = "failed"
    KNOWN = "known failure"
    SKIPPED = "skipped"
    ABSENT = "not there"
    FLAKY = "flaky"
    SILENT = "says nothing"


class SuiteTestChange(StrEnum):
    """The change of a test; graver ones come first."""

    REGRESSED = "regressed"
    """It passed, and fails."""
    KNOWN = "known"
    """It passed, and fails as is declared, by the test itself or by the suite's deviations."""
    UNSKIPPED_FAILS = "unskipped_fails"
    """It was skipped, and fails."""
    CHANGED = "changed"
    """It failed, and fails with another error, or no longer as declared, or only now so."""
    FLAKY = "flaky"
    """Its attempts on one side disagree."""
    FIXED = "fixed"
    """It failed, and passes."""
    UNSKIPPED = "unskipped"
    """It was skipped, and passes, or fails as declared."""
    SKIPPED = "skipped"
    """It ran, and is skipped."""
    ADDED = "added"
    """Only the second side has it."""
    REMOVED = "removed"
    """Only the first side has it."""
    SILENT = "not_compared"
    """It was not observed on one side."""
    SAME = "same"
    """It passes, fails with the same error, or is skipped, as before."""

    @property
    def counts(self) -> bool:
        """Whether the change makes the sides differ; tests that only one side has do not."""
        return self not in {
            SuiteTestChange.ADDED,
            SuiteTestChange.REMOVED,
            SuiteTestChange.SILENT,
            SuiteTestChange.SAME,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTestComparison:
    """A test on both sides.

    Attributes:
        test: Case id of the test.
        before: Record of the first side, None if there is none.
        after: Record of the second side, None if there is none.
        change: Change of the test.
    """

    test: str
    before: Record | None
    after: Record | None
    change: SuiteTestChange

    @property
    def cause(self) -> tuple[str, str]:
        """Endings of the test on both sides, the key by which changes are grouped."""
        return _get_ending(self.before), _get_ending(self.after)

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Duration on both sides in seconds, None unless the test passed on both."""
        # A test that fails stops early.
        if self.before is None or self.after is None:
            return None
        if not classify_test(self.before) is classify_test(self.after) is SuiteTestState.PASSED:
            return None
        return _get_seconds(self.before), _get_seconds(self.after)

    @property
    def slower(self) -> bool:
        """Whether the test takes longer by `SLOWER` and `LEAST`, so that reports show it."""
        if self.seconds is None:
            return False
        before, after = self.seconds
        return after >= SLOWER * before and after - before >= LEAST


def classify_test(record: Record | None) -> SuiteTestState:
    """Return how a test ended.

    Args:
        record: Record of the test, None if the suite does not have it.
    """
    if record is None:
        return SuiteTestState.ABSENT
    if record.outcome is Outcome.UNSUPPORTED and record.error is not None:
        kinds = {NOT_COLLECTED: SuiteTestState.ABSENT, SKIPPED: SuiteTestState.SKIPPED}
        return kinds.get(record.error.type, SuiteTestState.SILENT)
    if not is_conclusive(record.verdict, record.outcome):
        return SuiteTestState.SILENT
    known = {Verdict.FLAKY: SuiteTestState.FLAKY, Verdict.KNOWN: SuiteTestState.KNOWN}
    passed = SuiteTestState.PASSED if record.outcome is Outcome.OK else SuiteTestState.FAILED
    return known.get(record.verdict, passed)


def compare_tests(
    test: str, before: Record | None, after: Record | None, *, silent: bool = False
) -> SuiteTestComparison:
    """Return the change of a test.

    Args:
        test: Case id of the test.
        before: Record of the first side, None if there is none.
        after: Record of the second side, None if there is none.
        silent: Whether a side without a record may have the test nevertheless, because it did not
            run the whole suite.
    """
    states = classify_test(before), classify_test(after)
    change = SuiteTestChange.SILENT if silent else _find_change(*states)
    if (
        states[1] in {SuiteTestState.FAILED, SuiteTestState.KNOWN}
        and change is SuiteTestChange.SAME
    ):
        # The same state, perhaps with another error.
        change = (
            SuiteTestChange.SAME
            if _get_ending(before) == _get_ending(after)
            else SuiteTestChange.CHANGED
        )
    return SuiteTestComparison(test=test, before=before, after=after, change=change)


def are_suite_tests(info: RunInfo, cases: Collection[str]) -> bool:
    """Say whether cases of a run are tests of a suite.

    Args:
        info: Description of the run.
        cases: Ids of cases; those that the run does not have do not count.
    """
    kinds = {info.cases[case].kind for case in cases if case in info.cases}
    return kinds == {"test"}


def compare_cells(
    records: Mapping[Key, Record], cases: Sequence[str], base: str, others: Sequence[str]
) -> list[SuiteTestComparison]:
    """Return the changes of tests from one cell of a run to others.

    Args:
        records: Records of the run, by case and cell.
        cases: Case ids of the tests.
        base: Cell id of the first side.
        others: Cell ids of the second sides.

    Raises:
        NothingSelectedError: If a cell has no test.
    """
    # An empty comparison would look like one without differences.
    cells = {cell for _, cell in records}
    for cell in (base, *others):
        if cell not in cells:
            raise NothingSelectedError(f"{cell}: no test was run there, expected one to compare")
    return [
        compare_tests(case, *pair, silent=None in pair)
        for case in cases
        for other in others
        if any(pair := (records.get((case, base)), records.get((case, other))))
    ]


def compare_runs(
    infos: tuple[RunInfo, RunInfo],
    records: tuple[Mapping[Key, Record], Mapping[Key, Record]],
    keys: Sequence[Key],
) -> list[SuiteTestComparison]:
    """Return the changes of tests from one run to another.

    Args:
        infos: Descriptions of both runs.
        records: Records of each run, by case and cell.
        keys: Case and cell of each test to compare.
    """
    whole = [info.suite is not None and info.suite.complete for info in infos]
    planned = [frozenset(info.plan) for info in infos]
    found = []
    for key in keys:
        pair = records[0].get(key), records[1].get(key)
        # A test is removed only if the whole suite ran without it.
        silent = any(
            record is None and (not whole[side] or key in planned[side])
            for side, record in enumerate(pair)
        )
        found.append(compare_tests(key[0], *pair, silent=silent))
    return found


def group_by_cause(changes: Iterable[SuiteTestComparison]) -> list[tuple[SuiteTestComparison, ...]]:
    """Group changes by kind and root cause: the more severe first, then the larger.

    Args:
        changes: Changes of tests; unchanged tests are left out.
    """
    groups: dict[tuple[SuiteTestChange, str, str], list[SuiteTestComparison]] = {}
    for change in changes:
        if change.change is not SuiteTestChange.SAME:
            groups.setdefault((change.change, *change.cause), []).append(change)
    order = list(SuiteTestChange)
    found = (tuple(members) for members in groups.values())
    return sorted(found, key=lambda group: (order.index(group[0].change), -len(group)))


def _find_change(before: SuiteTestState, after: SuiteTestState) -> SuiteTestChange:
    """Return the change from one state of a test to another."""
    if SuiteTestState.SILENT in {before, after}:
        return SuiteTestChange.SILENT
    if before is after:
        return SuiteTestChange.SAME
    # The last rule matches any pair.
    rules = (
        rule for state, other, rule in _RULES if state in {before, None} and other in {after, None}
    )
    return next(rules)


_RULES: Final = (
    (SuiteTestState.ABSENT, None, SuiteTestChange.ADDED),
    (None, SuiteTestState.ABSENT, SuiteTestChange.REMOVED),
    (SuiteTestState.FLAKY, None, SuiteTestChange.FLAKY),
    (None, SuiteTestState.FLAKY, SuiteTestChange.FLAKY),
    (SuiteTestState.SKIPPED, SuiteTestState.FAILED, SuiteTestChange.UNSKIPPED_FAILS),
    (SuiteTestState.SKIPPED, None, SuiteTestChange.UNSKIPPED),
    (None, SuiteTestState.SKIPPED, SuiteTestChange.SKIPPED),
    (None, SuiteTestState.PASSED, SuiteTestChange.FIXED),
    (SuiteTestState.PASSED, SuiteTestState.FAILED, SuiteTestChange.REGRESSED),
    (SuiteTestState.PASSED, SuiteTestState.KNOWN, SuiteTestChange.KNOWN),
    (None, None, SuiteTestChange.CHANGED),
)
"""Changes by the states before and after: the first match counts, None matches any state."""


def _get_ending(record: Record | None) -> str:
    """Return the signature of a test's error, or its outcome if it has none."""
    if record is None:
        return ""
    return str(record.outcome) if record.error is None else record.error.signature


def _get_seconds(record: Record) -> float:
    return record.seconds.get("job", 0.0)
