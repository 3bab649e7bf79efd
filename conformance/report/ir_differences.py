"""Differences of two IRs: facts in rows, lines aligned with their words marked, and titles."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from rich.text import Text

from conformance.ir.change import Severity
from conformance.judge.ir import GATING
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.ir.change import Change, IrDiff

_OPTIONAL: Final = frozenset({"sharding"})
"""Facts of a parameter or result that one side may omit without a difference that gates."""
_WORD: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[%@]?[\w.-]+|\s+|.')
_NUMBERED: Final = re.compile(r"^(%[A-Za-z][\w-]*?)(?:[._]\d+|\.clone|\.remat\d*)*$|^%\d+$")
_RESULT: Final = re.compile(r"(?:ROOT )?%[\w.:-]+")
_ALIKE: Final = 0.4
"""Share of common words from which two lines are shown as one changed line."""
_HEAD: Final = 24
"""Columns of a cut line that show its beginning."""
_LEAD: Final = 12
"""Columns of a cut line that lead to its first difference."""

AlignedRow: TypeAlias = tuple[int | None, int | None]
"""Index of a line of the first text, and of its counterpart in the second."""


class FactRow(NamedTuple):
    """A difference in one fact.

    Attributes:
        fact: The fact.
        subject: Key within the fact, e.g. a kind of collective; empty for the whole fact.
        before: The fact of the first IR, as text.
        after: The fact of the second.
        gates: Whether the difference fails a run.
    """

    fact: str
    subject: str
    before: str
    after: str
    gates: bool

    @property
    def name(self) -> str:
        """The fact and its subject."""
        return f"{self.fact} {self.subject}".strip()


def compare_facts(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[FactRow]:
    """Return the facts in which two IRs differ, those that gate first.

    Args:
        a: Facts of the first IR.
        b: Facts of the second.
    """
    names = [*GATING, *(name for name in {**a, **b} if name not in GATING)]
    rows = [row for name in names for row in _compare_fact(name, a.get(name), b.get(name))]
    return sorted(rows, key=lambda row: not row.gates)


def _compare_fact(name: str, a: Any, b: Any) -> Iterator[FactRow]:
    gates = name in GATING
    match a, b:
        case dict(), dict():
            # A count that is missing is zero: an IR without collectives has no key for them.
            for key in sorted({*a, *b}):
                if (before := a.get(key, 0)) != (after := b.get(key, 0)):
                    yield FactRow(name, key, str(before), str(after), gates)
        case list(), list() if all(isinstance(item, dict) for item in [*a, *b]):
            yield from _compare_signatures(name, a, b)
        case list(), list():
            yield from (FactRow(name, str(x), "yes", "no", gates) for x in a if x not in b)
            yield from (FactRow(name, str(x), "no", "yes", gates) for x in b if x not in a)
        case _ if a != b:
            yield FactRow(name, "", _format_value(a), _format_value(b), gates)


def _compare_signatures(
    name: str, a: list[dict[str, Any]], b: list[dict[str, Any]]
) -> Iterator[FactRow]:
    """Yield the differences of parameters or results: their numbers, or, if equal, each of them."""
    if len(a) != len(b):
        # Which of them was added is not known, and every later one would seem to differ.
        yield FactRow(name, "", f"{len(a)} of them", f"{len(b)}", gates=True)
        return
    for number, (old, new) in enumerate(zip(a, b, strict=True)):
        for key in sorted({*old, *new}):
            before, after = old.get(key), new.get(key)
            if before != after:
                gates = key not in _OPTIONAL or None not in {before, after}
                texts = _format_value(before), _format_value(after)
                yield FactRow(f"{name}[{number}]", key, *texts, gates)


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not stated" if value is None else str(value)


class StyledLine(NamedTuple):
    """A line, and the column of the first word that differs."""

    text: Text
    first: int


def split_words(line: str) -> list[str]:
    """Return the words of a line; white space and signs are words too, so joined they are it."""
    return _WORD.findall(line)


def strip_number(word: str) -> str:
    """Return a word without the number at the end of an instruction's name."""
    match = _NUMBERED.match(word)
    return word if match is None else match[1] or "%"


def align_lines(before: Sequence[str], after: Sequence[str]) -> list[AlignedRow]:
    """Align the lines of two texts.

    Args:
        before: Lines of the first text.
        after: Lines of the second.

    Returns:
        Rows with the lines of both texts in their order, aligned for the greatest similarity.
    """
    # XLA numbers instructions in order of their creation: one more renames all that follow.
    ours, theirs = (
        [[*map(strip_number, split_words(x))] for x in text] for text in (before, after)
    )
    # The alignment takes quadratic time, and most lines are in a common beginning or end.
    head = _count_alike(ours, theirs)
    tail = _count_alike(ours[head:][::-1], theirs[head:][::-1])
    n, m = len(ours) - tail, len(theirs) - tail
    middle = [
        (None if i is None else i + head, None if j is None else j + head)
        for i, j in _align_words(ours[head:n], theirs[head:m])
    ]
    return [*((i, i) for i in range(head)), *middle, *((n + i, m + i) for i in range(tail))]


def _split_stripped(line: str) -> list[str]:
    return [strip_number(word) for word in split_words(line)]


def _count_alike(ours: Sequence[list[str]], theirs: Sequence[list[str]]) -> int:
    """Return the number of equal lines that both texts begin with."""
    pairs = zip(ours, theirs, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _align_words(ours: Sequence[list[str]], theirs: Sequence[list[str]]) -> list[AlignedRow]:
    """Align lines by Needleman-Wunsch: the sum of the shares of common words is maximal."""
    best: dict[tuple[int, int], tuple[float, list[AlignedRow]]] = {}
    # A matcher analyses its second sequence once, and is reused with many first ones.
    matchers = [SequenceMatcher(None, [], line, autojunk=False) for line in theirs]
    for n in range(len(ours), -1, -1):
        for m in range(len(theirs), -1, -1):
            options: list[tuple[float, list[AlignedRow]]] = []
            if n < len(ours):
                score, rows = best[n + 1, m]
                options.append((score, [(n, None), *rows]))
            if m < len(theirs):
                score, rows = best[n, m + 1]
                options.append((score, [(None, m), *rows]))
            if n < len(ours) and m < len(theirs):
                ratio = _measure_share(ours[n], matchers[m])
                score, rows = best[n + 1, m + 1]
                if ratio >= _ALIKE:
                    options.append((score + ratio, [(n, m), *rows]))
            best[n, m] = max(options, key=lambda option: option[0], default=(0.0, []))
    return best[0, 0][1]


def _measure_share(line: list[str], matcher: SequenceMatcher[str]) -> float:
    """Return the share of common words, or an upper bound of it that is below `_ALIKE`."""
    matcher.set_seq1(line)
    for bound in (matcher.real_quick_ratio, matcher.quick_ratio):
        if (most := bound()) < _ALIKE:
            return most
    return matcher.ratio()


def style_line(line: str, other: str | None, style: str) -> StyledLine:
    """Return a line with a style on the words that its counterpart does not have.

    Args:
        line: The line.
        other: Its counterpart; without a counterpart the whole line has the style.
        style: The style.
    """
    if other is None:
        return StyledLine(Text(line, style=style, end=""), 0)
    name, ours = _split_result(line)
    _, theirs = _split_result(other)
    words = split_words(ours)
    stripped = [strip_number(word) for word in words]
    other_stripped = _split_stripped(theirs)
    if stripped == other_stripped:
        return StyledLine(Text(line, end=""), 0)
    matcher = SequenceMatcher(None, stripped, other_stripped, autojunk=False)
    text, first = Text(name, end=""), -1
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag != "equal" and start != end and first < 0:
            first = len(text)
        text.append("".join(words[start:end]), style="" if tag == "equal" else f"bold {style}")
    return StyledLine(text, max(first, 0))


def _split_result(line: str) -> tuple[str, str]:
    """Return the name that a line gives its result, and the rest of the line."""
    # The name is arbitrary, so it is shown and never marked as a difference.
    name, sign, rest = line.partition(" = ")
    return (name + sign, rest) if sign and _RESULT.fullmatch(name) else ("", line)


def fit_line(line: StyledLine, width: int) -> Text:
    """Return a line cut to a width, with its first difference in view.

    Args:
        line: The line.
        width: Number of columns.
    """
    text, first = line
    if len(text) <= width:
        return text
    if first <= width - 2 * _LEAD or width < 2 * (_HEAD + _LEAD):
        return _cut(text, width)
    # The beginning names the instruction; the middle, not the difference, is left out.
    head = _cut(text, _HEAD)
    return head + _cut(text[max(first - _LEAD, _HEAD) :], width - _HEAD)


def _cut(text: Text, width: int) -> Text:
    return text if len(text) <= width else text[: max(width - 3, 0)] + Text("...")


STYLES: Final = {
    Severity.SEMANTIC: "bold red",
    Severity.STRUCTURAL: "yellow",
    Severity.COSMETIC: "cyan",
}
QUIET: Final = "bright_black"


def summarize_difference(diff: IrDiff) -> Text:
    """Return in a few words how two IRs differ."""
    if diff.equal:
        return Text("equal", style="green")
    if diff.neutral_equal:
        return Text("same work, grouped or written otherwise", style="yellow")
    found = Counter(change.severity for change in diff.changes)
    parts = ", ".join(f"{found[s]} {s}" for s in Severity if found[s])
    number = len(diff.changes)
    return Text(f"{plural(number, 'pattern')}: {parts}", style="bold red")


def render_title(change: Change) -> Text:
    """Return the title of a pattern: severity, number of occurrences, title."""
    times = f" x{change.count}" if change.count > 1 else ""
    about = f" ({change.about})" if change.about else ""
    return Text.assemble(
        "  ", (change.severity, STYLES[Severity(change.severity)]), (times, "bold"),
        "  ", (change.title, "bold"), about,
    )  # fmt: skip


def describe_alignment(diff: IrDiff) -> Text:
    """Return the share and the numbers of aligned instructions."""
    counts = f"{diff.matched} matched, {diff.changed} changed, {diff.unmatched} unmatched"
    return Text(f"  {diff.aligned_share:.0%} aligned: {counts}", style=QUIET)
