"""Changes of the tests of a suite between two cells or runs, as text and as data."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.runs.suite_changes import (
    SuiteTestChange,
    SuiteTestState,
    classify_test,
    group_by_cause,
)
from conformance.report.text import join_names, sanitize
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.engine.runs.suite_changes import SuiteTestComparison
    from conformance.model.record import Record

WORDS: Final = {
    SuiteTestChange.KNOWN: "fails as known",
    SuiteTestChange.UNSKIPPED_FAILS: "no longer skipped and fails",
    SuiteTestChange.CHANGED: "fails otherwise",
    SuiteTestChange.UNSKIPPED: "no longer skipped",
    SuiteTestChange.SKIPPED: "skipped now",
    SuiteTestChange.SILENT: "not compared",
}
"""Words for changes; any other change is named by its value."""
LONGEST: Final = 300
"""Characters of one ending."""
SLOWEST: Final = 10
"""Number of slower tests that are listed."""
GROUPS: Final = 40
"""Groups of each kind that are shown without `--full`."""
ALONE: Final = frozenset({SuiteTestChange.ADDED, SuiteTestChange.REMOVED})
"""Changes of tests that only one side has."""


def render_suite_diff(
    changes: Sequence[SuiteTestComparison], names: tuple[str, str], *, every: bool = False
) -> Iterator[str]:
    """Yield the changes of tests, in lines.

    Args:
        changes: The change of each test.
        names: Names of both sides.
        every: True to name every test.
    """
    found = Counter(one.change for one in changes)
    yield " -> ".join(names)
    words = ", ".join(
        f"{found[change]:,} {_find_word(change)}" for change in SuiteTestChange if found[change]
    )
    yield f"{plural(len(changes), 'test')}: {words}"
    groups = group_by_cause(changes)
    for change in SuiteTestChange:
        of_kind = [group for group in groups if group[0].change is change]
        shown = of_kind if every else of_kind[:GROUPS]
        for group in shown:
            yield ""
            yield from _render_group(group, names, every=every)
        if left := of_kind[len(shown) :]:
            tests = plural(sum(map(len, left)), "test")
            yield f"\n{_find_word(change)}: {tests} of {len(left)} more causes (--full)"
    yield from _render_slower(changes, every=every)


def make_diff_json(
    changes: Sequence[SuiteTestComparison], names: tuple[str, str]
) -> dict[str, Any]:
    """Return the changes of tests, as `--json` writes them.

    Args:
        changes: The change of each test.
        names: Names of both sides.
    """
    found = Counter(one.change for one in changes)
    groups = group_by_cause(changes)
    return {
        "a": names[0],
        "b": names[1],
        "equal": not any(one.change.counts for one in changes),
        "counts": {change: found[change] for change in SuiteTestChange},
        "seconds": list(_sum_seconds(changes)),
        "groups": [
            {
                "change": group[0].change,
                "before": group[0].cause[0],
                "after": group[0].cause[1],
                "tests": [one.test for one in group],
            }
            for group in groups
        ],
        "tests": [_encode_test(one) for group in groups for one in group],
        "slower": [_encode_test(one) for one in _find_slower(changes)],
    }


def _encode_test(one: SuiteTestComparison) -> dict[str, Any]:
    return {
        "test": one.test,
        "change": one.change,
        "before": None if one.before is None else _encode_side(one.before),
        "after": None if one.after is None else _encode_side(one.after),
    }


def _encode_side(record: Record) -> dict[str, Any]:
    return {
        "cell": record.cell,
        "state": classify_test(record),
        "outcome": record.outcome,
        "verdict": record.verdict,
        "error": record.error,
        "reasons": record.reasons,
        "seconds": record.seconds.get("job", 0.0),
    }


def _render_group(
    group: Sequence[SuiteTestComparison], names: tuple[str, str], *, every: bool
) -> Iterator[str]:
    """Yield the lines of a group of tests that changed alike, with their likely common reason."""
    first = group[0]
    tests = [one.test for one in group]
    where = {
        SuiteTestChange.ADDED: f", not in {names[0]}",
        SuiteTestChange.REMOVED: f", not in {names[1]}",
    }
    yield sanitize(
        f"{_find_word(first.change)}: {plural(len(group), 'test')}{where.get(first.change, '')}"
    )
    yield f"  {sanitize(_describe(first), 2 * LONGEST)}"
    yield from (f"  {sanitize(test)}" for test in (tests if every else [join_names(tests)]))
    # The file and line are of the failure: the newer side of a fix has none.
    last = first.after if first.change is not SuiteTestChange.FIXED else None
    if last is not None and last.error is not None and last.error.where:
        yield sanitize(f"  at {last.error.where}")


def _describe(one: SuiteTestComparison) -> str:
    """Return how tests ended on both sides, or on the only side that has them."""
    sides = [_describe_ending(record) for record in (one.before, one.after)]
    if one.change in ALONE:
        return sides[one.change is SuiteTestChange.ADDED]
    return " -> ".join(sides)


def _describe_ending(record: Record | None) -> str:
    """Return how a test ended, with the reason of its verdict."""
    if record is None:
        return "not run"
    state = classify_test(record)
    if state in {SuiteTestState.PASSED, SuiteTestState.ABSENT}:
        return str(state)
    reason = "; ".join(record.reasons) or str(record.verdict)
    text = reason if state is SuiteTestState.FAILED else f"{state}: {reason}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _find_slower(changes: Sequence[SuiteTestComparison]) -> list[SuiteTestComparison]:
    """Return the tests that are slower, the greatest difference first."""

    def compute_gain(one: SuiteTestComparison) -> float:
        before, after = one.seconds or (0.0, 0.0)
        return before - after  # negative for a slower test: the greatest loss is sorted first

    return sorted((one for one in changes if one.slower), key=compute_gain)


def _sum_seconds(changes: Sequence[SuiteTestComparison]) -> tuple[float, float]:
    """Return the seconds of all tests that passed on both sides."""
    both = [one.seconds for one in changes if one.seconds is not None]
    return round(sum(a for a, _ in both), 3), round(sum(b for _, b in both), 3)


def _render_slower(changes: Sequence[SuiteTestComparison], *, every: bool) -> Iterator[str]:
    """Yield the tests that take longer."""
    # For information only: they are no changes that count, because the load of the host may be
    # their reason.
    slower = _find_slower(changes)
    before, after = _sum_seconds(changes)
    if before or after:
        passed = sum(one.seconds is not None for one in changes)
        yield ""
        yield f"seconds of {plural(passed, 'test')} that pass on both: {before:.1f} -> {after:.1f}"
    for one in slower if every else slower[:SLOWEST]:
        assert one.seconds is not None  # noqa: S101 - it is slower
        yield sanitize(f"  slower: {one.test}: {one.seconds[0]:.2f} s -> {one.seconds[1]:.2f} s")
    if (more := len(slower) - SLOWEST) > 0 and not every:
        yield f"  slower: {plural(more, 'test')} more (--full)"


def _find_word(change: SuiteTestChange) -> str:
    return WORDS.get(change, str(change))
