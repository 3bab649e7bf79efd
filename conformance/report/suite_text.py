"""The results of a pytest suite as text: counts, then failures with reasons."""

from __future__ import annotations

from collections import Counter
from shlex import quote
from typing import TYPE_CHECKING, Final

from conformance.judge.suite_verdict import XFAIL
from conformance.model.outcome import Outcome, Verdict
from conformance.report.suite_warnings import render_warnings
from conformance.report.summary import render_exclusions
from conformance.report.text import join_names, sanitize
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.engine.root_causes import RootCause
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.model.run import Exclusion
    from conformance.report.suite_warnings import RunWarning

WORDS: Final = {
    Verdict.MATCH: "passed",
    Verdict.REGRESSED: "failed",
    Verdict.CRASHED: "crashed",
    Verdict.TIMED_OUT: "timed out",
    Verdict.FLAKY: "flaky",
    Verdict.KNOWN: "xfailed",
    Verdict.EXCLUDED: "skipped",
    Verdict.INFRA: "not run",
}
"""What a verdict is called of a test."""
DECLARED: Final = "known failures"
LONGEST: Final = 2_000
"""Characters of one reason."""
WARNINGS: Final = 5
"""Warnings that are told, where not every one is asked for."""


def render_suite(
    records: Sequence[Record],
    causes: Sequence[RootCause],
    cases: Mapping[str, Case],
    exclusions: Sequence[Exclusion] = (),
    *,
    named: Mapping[str, str] = {},
    warnings: Sequence[RunWarning] = (),
    tracebacks: Callable[[Sequence[Record]], Iterable[str]] = lambda _: (),
    every: bool = False,
) -> Iterator[str]:
    """Yield the results of a suite, in lines.

    Args:
        records: The tests, judged.
        causes: Their root causes, as the report on the run has them.
        cases: The same tests as cases, by id.
        exclusions: What was left out.
        named: What names a cell on the command line, by its id, where that is not the id.
        warnings: What tests warned of.
        tracebacks: Returns the tracebacks of tests with one root cause, in lines.
        every: Whether every test is named that fails, and every warning.
    """
    cells = list(dict.fromkeys(record.cell for record in records))
    margin = max(map(len, cells), default=0)
    for cell in cells:
        yield f"{cell:{margin}}  {_render_counts([one for one in records if one.cell == cell])}"
    for cause in causes:
        yield ""
        yield from _render_group(cause.reason, cause.records, every=every)
        first = cause.records[0]
        yield from (f"  {line}" for line in tracebacks(cause.records))
        if first.outcome is not Outcome.NOT_RUN:
            cell = quote(named.get(first.cell, first.cell))
            yield f"  conformance suite run --cell {cell} {sanitize(cases[first.case].arguments)}"
    left_out = [*render_exclusions(exclusions), *_render_skipped(records)]
    yield from ([""] if left_out else [])
    yield from (sanitize(line, LONGEST) for line in left_out)
    yield from ([""] if warnings else [])
    yield from render_warnings(warnings, len(cells), most=None if every else WARNINGS)


def _render_skipped(records: Sequence[Record]) -> Iterator[str]:
    """Yield why tests were skipped, a line for each reason."""
    reasons: dict[str, list[Record]] = {}
    for record in records:
        if record.verdict is Verdict.EXCLUDED:
            reasons.setdefault("; ".join(record.reasons), []).append(record)
    for reason, members in reasons.items():
        tests = list(dict.fromkeys(member.case for member in members))
        where = list(dict.fromkeys(member.cell for member in members))
        what = tests[0] if len(tests) == 1 else plural(len(tests), "test")
        yield f"skipped: {what} on {join_names(where)}: {reason}"


def _render_counts(records: Sequence[Record]) -> str:
    found = Counter(map(_find_word, records))
    words = (*WORDS.values(), DECLARED)
    return ", ".join(f"{found[word]:,} {word}" for word in words if found[word])


def _find_word(record: Record) -> str:
    """Return what came of a test in a word: by its own mark it is expected to fail, or by ours."""
    if record.verdict is Verdict.KNOWN and XFAIL not in record.artifacts:
        return DECLARED
    return WORDS.get(record.verdict, record.verdict)


def _render_group(reason: str, members: Sequence[Record], *, every: bool) -> Iterator[str]:
    """Yield the tests that fail for one reason."""
    first = members[0]
    tests = list(dict.fromkeys(member.case for member in members))
    where = list(dict.fromkeys(member.cell for member in members))
    what = tests[0] if len(tests) == 1 else plural(len(tests), "test")
    yield sanitize(f"{WORDS.get(first.verdict, first.verdict)}: {what} on {join_names(where)}")
    # How many attempts came to what is as telling as how they disagree.
    said = "; ".join(first.reasons) if first.verdict is Verdict.FLAKY else reason
    yield sanitize(f"  {said}", LONGEST)
    if len(tests) > 1:
        yield sanitize(f"  {', '.join(tests) if every else join_names(tests)}", LONGEST)
    if first.error is not None and first.error.where:
        yield sanitize(f"  at {first.error.where}")
