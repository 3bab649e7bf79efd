"""The releases on which a case deviates, and the deviations that it may declare."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.judge.tolerance import Tolerance
from conformance.judge.values import compare_reference, compare_values
from conformance.model.outcome import Conformance, Outcome
from conformance.search.bisection import choose_untried_points, find_change_points
from conformance.search.equivalence import EquivalenceClasses, format_ending, is_same_failure
from conformance.search.predicates import GOOD, PointKind, PointState
from conformance.triage.new.reference import render_value
from conformance.triage.new.trials import ABSENCE_ERRORS
from conformance.triage.repro.layout import format_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.model.value import Value
    from conformance.triage.new.case_file import Declarations
    from conformance.triage.new.trials import CaseRunner, TriedDraft

_THREAD: Final = re.compile(r"[\w.-]+/[\w.-]+#\d+")
REASON: Final = "proposed from what was seen; say why"
_MAX_PATTERN: Final = 76
"""Characters of a pattern: it stays on one line of the decorator."""
_SENTENCE_WORDS: Final = 3
"""Words that make a sentence long enough to stop after it."""
_SENTENCE_END: Final = re.compile(r"\w{3,}\W?[.;]$")
_UNSTABLE: Final = re.compile(r"0x|^\W?/\w|\w/\w+/|\d{5,}|\.py\b")
"""Words that differ between machines or days: addresses, paths, large numbers."""
_SPECIAL: Final = re.compile(r"[.^$*+?{}\[\]\\|()]")
"""`re.escape` would also escape spaces and quotes, which makes a pattern hard to read."""
_ABOUT_JAX: Final = re.compile(r"\b(?:jax(?:\.[\w.]+)?|_xc|xla_client)\b", re.IGNORECASE)
_NOT_RUN: Final = frozenset({Outcome.INFRA, Outcome.NOT_RUN})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSweep:
    """The results of a case over releases, one cell for each.

    Attributes:
        records: The record of each release, by the number of the release in the sweep.
        states: Whether each release behaves as expected (good), differently (bad), or otherwise.
        anchor: Number of the release whose value is taken as the reference; None if the script
            states a reference, or no release ran the case.
        reference: That value as an expression; empty if there is none, or it is too long.
    """

    records: Mapping[int, Record]
    states: Mapping[int, PointState]
    anchor: int | None
    reference: str

    @property
    def is_ambiguous(self) -> bool:
        """Whether values differ and no reference shows which of them is right."""
        if self.anchor is None or self.reference:
            return False
        ran = (n for n, record in self.records.items() if record.outcome is Outcome.OK)
        return any(self.states[number].kind is PointKind.BAD for number in ran)


def sweep_releases(
    tried: TriedDraft, runner: CaseRunner, good: int | None, report: Callable[[Sequence[int]], None]
) -> ReleaseSweep:
    """Run a case on as many releases as are necessary to find each change.

    Args:
        tried: The case, with its records in some cells.
        runner: Runs it.
        good: Number of the cell with the right value; None is the newest in which it runs.
        report: Called with the numbers of the cells of each round.
    """
    records = dict(tried.records)
    ran = [number for number, record in records.items() if record.outcome is Outcome.OK]
    anchor = None
    if ran and not (tried.draft.states_reference or tried.draft.options.only_runs):
        anchor = good if good in ran else max(ran)
    reference = None if anchor is None else runner.load_value(records[anchor])
    failures = EquivalenceClasses(is_same_failure)
    # With tolerances: rounding errors differ between releases, and must not make a stretch of each
    # release.
    values: EquivalenceClasses[Value] = EquivalenceClasses(
        lambda a, b: compare_values(a, b, Tolerance()).agrees
    )

    def classify(record: Record) -> PointState:
        """Return the state of a record, equal for records that show the same."""
        if record.outcome in _NOT_RUN:
            return PointState(PointKind.UNKNOWN, format_ending(record))
        # Not bad in itself: whether a failure is the expected behavior depends on the other
        # releases.
        if record.outcome is not Outcome.OK:
            return PointState(PointKind.OTHER, failures.find_first(format_ending(record)))
        if reference is None:
            deviates = record.conformance is Conformance.DEVIATES
            return PointState(PointKind.BAD, "deviates") if deviates else GOOD
        value = runner.load_value(record)
        if compare_reference(value, reference).agrees:
            return GOOD
        return PointState(PointKind.BAD, f"value {values.find_number(value)}")

    states = {number: classify(records[number]) for number in sorted(records)}
    # All points of a round run at the same time, so that a round takes as long as its slowest
    # point.
    while points := choose_untried_points(states, runner.width, eager=True):
        report(points)
        found = runner.run([tried.case], points)[tried.case.name]
        records |= found
        states |= {number: classify(record) for number, record in found.items()}
    # The value is compared as observed; its text is only for the case, and may be missing for a
    # long value.
    text = "" if reference is None else render_value(reference)
    return ReleaseSweep(records=records, states=states, anchor=anchor, reference=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Consecutive releases on which a case shows the same.

    Attributes:
        numbers: Numbers of the releases that were tried.
        state: Their state.
        records: Their records.
        since: The first release, as the edge of a range.
        range: The stretch as a specifier, empty for every release.
    """

    numbers: Sequence[int]
    state: PointState
    records: Sequence[Record]
    since: str
    range: str

    @property
    def outcome(self) -> Outcome:
        """The outcome of the first record."""
        return self.records[0].outcome

    @property
    def is_good(self) -> bool:
        """Whether the case shows the expected behavior."""
        return self.state.kind is PointKind.GOOD


def find_stretches(
    states: Mapping[int, PointState], records: Mapping[int, Record], releases: Sequence[str]
) -> list[Stretch]:
    """Return the stretches of releases on which a case shows the same.

    Args:
        states: State of each release that was tried, by its number.
        records: Record of each release that was tried, by its number.
        releases: Every release, oldest first.
    """
    edges = {change.after for change in find_change_points(states)}
    groups: list[list[int]] = []
    for number in sorted(states):
        # A release that was not run is in no stretch; the stretches around it touch.
        if states[number].is_known:
            if not groups or number in edges:
                groups.append([])
            groups[-1].append(number)
    stretches = []
    for place, numbers in enumerate(groups):
        first, since = numbers[0], format_edge(releases[numbers[0]])
        parts = [f">={since}"] if place else []
        if place + 1 < len(groups):
            after = groups[place + 1][0]
            parts.append(f"<{format_edge(releases[after])}")
            # `==` only if the next stretch begins at the next release: between two stretches there
            # may be untried releases.
            is_single = bool(place) and after == first + 1
            parts = [f"=={releases[first]}"] if is_single else parts
        stretches.append(
            Stretch(
                numbers=numbers, state=states[first], since=since, range=",".join(parts),
                records=[records[number] for number in numbers],
            )
        )  # fmt: skip
    return stretches


def format_edge(release: str) -> str:
    """Return a release as the edge of a range: `0.6` for `0.6.0`."""
    major, *parts = Version(release).release
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return ".".join(map(str, (major, *parts)))


def propose_deviations(declarations: Declarations, stretches: Sequence[Stretch]) -> Declarations:
    """Return declarations with the deviations and releases that fit the results of a case.

    Args:
        declarations: The declarations before any trial.
        stretches: The stretches, oldest first.
    """
    source = str(declarations.keywords.get("source", ""))
    # `source` may be any text, `issue` only a thread.
    issue = source if _THREAD.fullmatch(source) else ""
    rest = list(stretches)
    limits: list[str] = []
    why: list[str] = []
    # Releases that do not have a function yet, or whose XLA refuses a flag, do not deviate: the
    # case does not apply to them.
    # If the case fails like this everywhere, that is its behavior.
    if len(rest) > 1 and _lacks_name(rest[0]):
        why.append(_get_last_message(rest.pop(0)))
        limits.append(f">={rest[0].since}")
    if len(rest) > 1 and rest[-1].outcome is Outcome.UNSUPPORTED:
        newer = rest.pop()
        limits.append(f"<{newer.since}")
        why.append(_get_last_message(newer))
    deviations = []
    for stretch in rest:
        if not stretch.is_good and stretch.outcome is not Outcome.UNSUPPORTED:
            parts = [part for part in stretch.range.split(",") if part not in limits]
            deviations.append(_render_deviation(stretch, ",".join(parts), issue))
    return replace(
        declarations, deviations=tuple(deviations), releases=",".join(limits), why="; ".join(why)
    )


def _lacks_name(stretch: Stretch) -> bool:
    """Return whether releases do not have a name of jax that the script uses."""
    if stretch.outcome is Outcome.UNSUPPORTED:
        return True
    error = stretch.records[-1].error
    return (
        stretch.outcome is Outcome.RAISED
        and error is not None
        and error.type in ABSENCE_ERRORS
        # A missing attribute of another object is a deviation, not an old release.
        and _ABOUT_JAX.search(error.message) is not None
    )


def _get_last_message(stretch: Stretch) -> str:
    """Return the message of the last record on one line, shortened; empty without an error."""
    error = stretch.records[-1].error
    return "" if error is None else " ".join(error.message.split())[:_MAX_PATTERN]


def _render_deviation(stretch: Stretch, where: str, issue: str) -> str:
    """Return a deviation as source text for a decorator."""
    arguments = [format_literal(f"jax{where}")] if where else []
    if stretch.outcome is Outcome.RAISED:
        errors = [record.error for record in stretch.records if record.error is not None]
        # Upstream renames error types; the declaration accepts each that was observed.
        types = "|".join(dict.fromkeys(error.type for error in errors))
        arguments.append(f"error={format_literal(types)}")
        if match := find_pattern([error.message for error in errors]):
            arguments.append(f"match={_render_pattern(match)}")
    else:
        arguments.append(f"outcome={format_literal(str(stretch.outcome))}")
    arguments.append(f"reason={format_literal(REASON)}")
    arguments += [f"issue={format_literal(issue)}"] if issue else []
    inner = "".join(f"            {argument},\n" for argument in arguments)
    return f"deviation(\n{inner}        )"


def _render_pattern(pattern: str) -> str:
    """Return a regular expression as a literal, raw if it has backslashes."""
    # A raw string can neither contain its quote nor end with a backslash.
    is_plain = "\\" not in pattern or '"' in pattern or pattern.endswith("\\")
    return format_literal(pattern) if is_plain else f'r"{pattern}"'


def find_pattern(messages: Sequence[str]) -> str:
    """Return a regular expression for the common stable part of messages, empty for none.

    Args:
        messages: Messages of one failure.
    """
    # The `.` of a pattern matches no line end, and later lines are mostly advice and dumps.
    first_lines = [message.strip().partition("\n")[0].split() for message in messages]
    common = first_lines[0]
    for words in first_lines[1:]:
        # Without `autojunk`: difflib ignores frequent items of sequences from 200 on.
        match = SequenceMatcher(None, common, words, autojunk=False).find_longest_match()
        common = common[match.a : match.a + match.size]
    runs = groupby(common, key=lambda word: not _UNSTABLE.search(word))
    stable = [list(run) for is_stable, run in runs if is_stable]
    best = max(stable, key=lambda run: len(" ".join(run)), default=[])
    ends = [number for number, word in enumerate(best, 1) if _SENTENCE_END.search(word)]
    best = best[: next((number for number in ends if number >= _SENTENCE_WORDS), len(best))]
    # Shortened by words: a cut within a word could split an escape.
    while len(_escape(best)) > _MAX_PATTERN:
        best.pop()
    pattern = _escape(best)
    # A message may have two spaces between words: the pattern would not match it.
    return pattern if all(re.search(pattern, message) for message in messages) else ""


def _escape(words: Sequence[str]) -> str:
    return _SPECIAL.sub(lambda sign: "\\" + sign[0], " ".join(words).rstrip(".;:,"))
