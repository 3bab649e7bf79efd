"""The results of a pytest suite as text: counts, then failures with reasons."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from conformance.engine.cache.blobs import CorruptBlobError
from conformance.judge.errors import normalise_cause
from conformance.judge.suite_verdict import WARNINGS, XFAIL
from conformance.model.outcome import Outcome, Verdict
from conformance.report.summary import render_exclusions
from conformance.report.text import flatten, join_names, sanitize
from conformance.report.tracks import group_tracks
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.engine.runs.loader import LoadedRun
    from conformance.engine.runs.root_causes import RootCause
    from conformance.engine.runs.stored_job import StoredJob
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.model.run import Exclusion, RunCell


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
"""Words for the verdict of a test, as pytest prints them where it has a word."""
DECLARED: Final = "known failures"
LONGEST: Final = 2_000
"""Characters of one reason."""
MOST_WARNINGS: Final = 5
"""Number of warnings that are shown, unless all are requested."""


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
        exclusions: The excluded jobs.
        named: Selector of a cell on the command line, by its id, if it is not the id.
        warnings: Warnings of the tests.
        tracebacks: Returns the tracebacks of tests with one root cause, in lines.
        every: True to name every failing test and every warning.
    """
    cells = list(dict.fromkeys(record.cell for record in records))
    margin = max(map(len, cells), default=0)
    for cell in cells:
        yield f"{cell:{margin}}  {_render_counts([one for one in records if one.cell == cell])}"
    for cause in causes:
        yield ""
        yield from _render_cause(cause.reason, cause.records, every=every)
        first = cause.records[0]
        yield from (f"  {line}" for line in tracebacks(cause.records))
        # A test that was not collected again cannot be selected by its name.
        if first.outcome is not Outcome.NOT_RUN:
            cell = quote(named.get(first.cell, first.cell))
            yield f"  conformance suite run --cell {cell} {sanitize(cases[first.case].arguments)}"
    left_out = [*render_exclusions(exclusions), *_render_skipped(records)]
    yield from ([""] if left_out else [])
    yield from (sanitize(line, LONGEST) for line in left_out)
    yield from ([""] if warnings else [])
    yield from render_warnings(warnings, len(cells), most=None if every else MOST_WARNINGS)


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
    """Return the word for the result of a test."""
    # An xfail mark of the suite is pytest's word; a known failure is a declaration of the harness.
    if record.verdict is Verdict.KNOWN and XFAIL not in record.artifacts:
        return DECLARED
    return WORDS.get(record.verdict, record.verdict)


def _render_cause(reason: str, members: Sequence[Record], *, every: bool) -> Iterator[str]:
    """Yield the tests that fail for one reason."""
    first = members[0]
    tests = list(dict.fromkeys(member.case for member in members))
    where = list(dict.fromkeys(member.cell for member in members))
    what = tests[0] if len(tests) == 1 else plural(len(tests), "test")
    yield sanitize(f"{WORDS.get(first.verdict, first.verdict)}: {what} on {join_names(where)}")
    # The reasons of a flaky test hold the rate of each result, the root cause does not.
    reasons = "; ".join(first.reasons) if first.verdict is Verdict.FLAKY else reason
    yield sanitize(f"  {reasons}", LONGEST)
    if len(tests) > 1:
        yield sanitize(f"  {', '.join(tests) if every else join_names(tests)}", LONGEST)
    if first.error is not None and first.error.where:
        yield sanitize(f"  at {first.error.where}")


COMING: Final = ("DeprecationWarning", "FutureWarning")
"""Ends of the names of classes that announce a change: a reader who upgrades wants these first."""
NOTHING: Final[Mapping[str, Sequence[IssuedWarning]]] = MappingProxyType({})
MESSAGE: Final = 300
"""Characters of a message that are shown."""


class IssuedWarning(msgspec.Struct, frozen=True, kw_only=True):
    """A warning as a test issued it.

    Attributes:
        category: Class of the warning.
        message: Text of the warning.
        where: File and line of the warning.
        count: Number of times it was issued.
    """

    category: str = ""
    message: str = ""
    where: str = ""
    count: int = 1


_LINE: Final = re.compile(r":\d+$")
_INSTALLED: Final = re.compile(r".*/(?:site|dist)-packages/|.*/lib/python3\.\d+/")
_LIST: Final = msgspec.json.Decoder(list[IssuedWarning])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWarning:
    """Equal warnings of a run.

    Attributes:
        category: Class of the warnings.
        message: Text of the first of them.
        where: Files of the warnings, without lines, the most frequent first.
        tests: Tests that issue it; empty if only their collection does.
        cells: Ids of the cells in which it is issued, in order.
        count: Number of times it was issued.
        new_in: Releases that issue it although the release before, on the same track, does not.
        gone_in: Releases that do not issue it although the release before does.
    """

    category: str
    message: str
    where: tuple[str, ...]
    tests: tuple[str, ...]
    cells: tuple[str, ...]
    count: int
    new_in: tuple[str, ...] = ()
    gone_in: tuple[str, ...] = ()


class _TestWarning(NamedTuple):
    """A warning, with its test and its cell; the test is empty if collection issued it."""

    test: str
    cell: str
    warning: IssuedWarning


def read_warnings(side: StoredJob) -> list[IssuedWarning]:
    """Return the warnings of a test; none if they cannot be read.

    Args:
        side: The test.
    """
    digest = side.record.artifacts.get(WARNINGS, "")
    if not digest:
        return []
    try:
        return _LIST.decode(side.blobs.get(digest))
    except (CorruptBlobError, ValueError):  # warnings are evidence: a damaged blob fails no report
        return []


def shorten_file(where: str) -> str:
    """Return a file without the folder of its installation, e.g. `jax/_src/core.py`.

    Args:
        where: File and line.
    """
    file = _LINE.sub("", where).replace(os.sep, "/")
    installed = _INSTALLED.match(file)
    return flatten(file[installed.end() :] if installed else "/".join(file.split("/")[-2:]))


def read_collection_warnings(runs: Iterable[LoadedRun]) -> dict[str, list[IssuedWarning]]:
    """Return the warnings of collection by cell, mostly of imports; the last run of a cell counts.

    Args:
        runs: The runs, the oldest first.
    """
    found: dict[str, list[IssuedWarning]] = {}
    for run in runs:
        for cell, identity in run.info.identities.items():
            try:
                found[cell] = msgspec.convert(identity.get(WARNINGS, []), list[IssuedWarning])
            # Identities are written by workers, possibly those of a foreign shard.
            except msgspec.ValidationError:
                continue
    return found


def collect_warnings(
    sides: Iterable[StoredJob],
    cells: Sequence[RunCell],
    collected: Mapping[str, Sequence[IssuedWarning]] = NOTHING,
) -> tuple[RunWarning, ...]:
    """Return the warnings of tests; those of the newest release come first.

    Two warnings are equal if their classes are, and their messages without numbers, addresses and
    paths. A release is compared with the release before it in the run, on the same platform.

    Args:
        sides: The tests.
        cells: The cells they ran in.
        collected: Warnings of collection, by cell id.
    """
    groups: dict[tuple[str, str], list[_TestWarning]] = defaultdict(list)
    by_test = [(side.record.case, side.record.cell, read_warnings(side)) for side in sides]
    by_cell = [("", cell, found) for cell, found in collected.items()]
    for test, cell, warnings in (*by_test, *by_cell):
        for one in warnings:
            groups[one.category, normalise_cause(one.message)].append(_TestWarning(test, cell, one))
    tracks = [[(cell.id, cell.label) for cell in track.cells] for track in group_tracks(cells)]
    # Of each track, because platforms may end at different releases.
    newest = {track[-1][0] for track in tracks if track}
    order = {cell: at for track in tracks for at, (cell, _) in enumerate(track)}

    def rank(one: RunWarning) -> tuple[bool, int, bool, int]:
        """Return the sort key: warnings of the newest release first, then the latest."""
        first = min((order[cell] for cell in one.cells), default=0)
        coming = one.category.endswith(COMING)
        return newest.isdisjoint(one.cells), -first, not coming, -len(one.tests)

    return tuple(sorted((_make_warning(equal, tracks) for equal in groups.values()), key=rank))


def _make_warning(
    equal: Sequence[_TestWarning], tracks: Sequence[Sequence[tuple[str, str]]]
) -> RunWarning:
    first = equal[0].warning
    # Without lines: the line of a warning moves with every release of the library.
    files: Counter[str] = Counter()
    for one in equal:
        files[shorten_file(one.warning.where)] += one.warning.count
    cells = {one.cell for one in equal}
    steps = [
        (after in cells, release)
        for track in tracks
        for (before, _), (after, release) in pairwise(track)
        if (before in cells) is not (after in cells)
    ]
    return RunWarning(
        category=first.category, message=flatten(first.message, MESSAGE),
        where=tuple(name for name, _ in files.most_common() if name),
        tests=tuple(dict.fromkeys(one.test for one in equal if one.test)),
        cells=tuple(cell for track in tracks for cell, _ in track if cell in cells),
        count=sum(one.warning.count for one in equal),
        new_in=tuple(dict.fromkeys(release for comes, release in steps if comes)),
        gone_in=tuple(dict.fromkeys(release for comes, release in steps if not comes)),
    )  # fmt: skip


def render_warnings(
    warnings: Sequence[RunWarning], cells: int, *, most: int | None = None
) -> Iterator[str]:
    """Yield warnings, two lines each.

    Args:
        warnings: The warnings.
        cells: How many cells were run.
        most: Number of warnings to show, None for all.
    """
    if not warnings:
        return
    shown = warnings[:most]
    yield f"warnings: {len(warnings)}, each shown once"
    for one in shown:
        tests = one.tests[0] if len(one.tests) == 1 else plural(len(one.tests), "test")
        tests = tests if one.tests else "as tests are collected"
        yield f"  {describe_warning_releases(one)}{one.category}: {one.message}"
        yield f"    {tests}, in {len(one.cells)} of {plural(cells, 'cell')}"
    if len(warnings) > len(shown):
        yield f"  {len(warnings) - len(shown)} more in the report"


def describe_warning_releases(one: RunWarning) -> str:
    """Return the releases with which a warning comes and goes, e.g. `new in 0.9.0: `, or empty."""
    changes = [
        f"{word} {', '.join(releases)}"
        for word, releases in (("new in", one.new_in), ("gone in", one.gone_in))
        if releases
    ]
    return f"{', '.join(changes)}: " if changes else ""
