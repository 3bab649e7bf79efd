"""Lines of two IRs, set against each other: which correspond, and which of their words differ."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[%@]?[\w.-]+|\s+|.')
_NUMBERED: Final = re.compile(r"^(%[A-Za-z][\w-]*?)(?:[._]\d+|\.clone|\.remat\d*)*$|^%\d+$")
_RESULT: Final = re.compile(r"(?:ROOT )?%[\w.:-]+")
_ALIKE: Final = 0.4
"""Share of words in common from which two lines are shown as one that changed."""
_HEAD: Final = 24
_LEAD: Final = 12


Row: TypeAlias = tuple[int | None, int | None]
"""Index of a line of the first text, and of its counterpart in the second."""


class Styled(NamedTuple):
    """A line, and where the first of its words that differ begins."""

    text: Text
    first: int


def words(line: str) -> list[str]:
    """Return the words of a line, white space and signs among them."""
    return _WORD.findall(line)


def meaning(word: str) -> str:
    """Return a word without the number that names of instructions end in."""
    match = _NUMBERED.match(word)
    return word if match is None else match[1] or "%"


def aligned(before: Sequence[str], after: Sequence[str]) -> list[Row]:
    """Set lines against each other, those that are alike in one row.

    Args:
        before: Lines of the first text.
        after: Lines of the second.

    Returns:
        Rows that hold the lines of both in their order: such that as much as can be is alike.
    """
    ours, theirs = ([[*map(meaning, words(x))] for x in lines] for lines in (before, after))
    # Where both begin or end alike there is nothing to choose, and most lines are so.
    head = _count_alike(ours, theirs)
    tail = _count_alike(ours[head:][::-1], theirs[head:][::-1])
    n, m = len(ours) - tail, len(theirs) - tail
    rows: list[Row] = [(at, at) for at in range(head)]
    for one, other in _pair(ours[head:n], theirs[head:m]):
        rows.append((None if one is None else one + head, None if other is None else other + head))
    return [*rows, *((n + at, m + at) for at in range(tail))]


def _count_alike(ours: Sequence[list[str]], theirs: Sequence[list[str]]) -> int:
    """Return with how many equal lines both begin."""
    pairs = zip(ours, theirs, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _pair(ours: Sequence[list[str]], theirs: Sequence[list[str]]) -> list[Row]:
    """Set lines against each other such that as much as can be is alike."""
    best: dict[tuple[int, int], tuple[float, list[Row]]] = {}
    matchers = [SequenceMatcher(None, [], line, autojunk=False) for line in theirs]
    for n in range(len(ours), -1, -1):
        for m in range(len(theirs), -1, -1):
            options: list[tuple[float, list[Row]]] = []
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
    """Return the share of words in common, or a bound of it that is too small already."""
    matcher.set_seq1(line)
    for bound in (matcher.real_quick_ratio, matcher.quick_ratio):
        if (most := bound()) < _ALIKE:
            return most
    return matcher.ratio()


def styled(line: str, other: str | None, style: str) -> Styled:
    """Return a line whose words that another does not have are in a style.

    Args:
        line: The line.
        other: Its counterpart; without one the whole line is in the style.
        style: The style.

    Returns:
        The line.
    """
    if other is None:
        return Styled(Text(line, style=style, end=""), 0)
    name, ours = _split_result(line)
    _, theirs = _split_result(other)
    mine, yours = words(ours), words(theirs)
    meant, other_meant = [*map(meaning, mine)], [*map(meaning, yours)]
    if meant == other_meant:
        return Styled(Text(line, end=""), 0)
    matcher = SequenceMatcher(None, meant, other_meant, autojunk=False)
    text, first = Text(name, end=""), -1
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag != "equal" and start != end and first < 0:
            first = len(text)
        text.append("".join(mine[start:end]), style="" if tag == "equal" else f"bold {style}")
    return Styled(text, max(first, 0))


def _split_result(line: str) -> tuple[str, str]:
    """Return the name a line gives its result, which says nothing, and the rest of the line."""
    name, sign, rest = line.partition(" = ")
    return (name + sign, rest) if sign and _RESULT.fullmatch(name) else ("", line)


def fitted(line: Styled, width: int) -> Text:
    """Return a line cut to a width, such that its first difference is seen.

    Args:
        line: The line.
        width: Columns there are.
    """
    text, first = line
    if len(text) <= width:
        return text
    if first <= width - 2 * _LEAD or width < 2 * (_HEAD + _LEAD):
        return _cut(text, width)
    head = _cut(text, _HEAD)
    return head + _cut(text[max(first - _LEAD, _HEAD) :], width - _HEAD)


def _cut(text: Text, width: int) -> Text:
    if len(text) <= width:
        return text
    return text[: max(width - 3, 0)] + Text("...")
