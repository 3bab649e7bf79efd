"""Equivalence of failures and of printed output, also if upstream rewords them. Pure."""

from __future__ import annotations

import math
import re
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from conformance.judge.errors import normalise_cause
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from conformance.model.record import Record

SILENT: Final = frozenset({Outcome.INFRA, Outcome.UNSUPPORTED, Outcome.NOT_RUN})
"""Outcomes that are no result of the target."""
ALIKE: Final = 0.6
"""Minimum share of common words of two wordings of the same message."""
WORDS: Final = 60
"""Words of a message that are compared: the beginning has the reason, the end the place."""
MOST: Final = 120
"""Maximum length of a quoted ending."""
_NAMED: Final = re.compile(
    r"(?:has no attribute|cannot import name|No module named|unexpected keyword argument"
    r"|missing \d+ required (?:positional|keyword-only) arguments?:|name) '([^']+)'"
)
"""The name of the thing that is missing or unknown, in a message."""
_WORD: Final = re.compile(r"[A-Za-z_]+|#|[^\w\s]")

T = TypeVar("T")
RELATIVE: Final = 1e-4
"""Tolerance of a printed number; arrays are printed with eight digits, losses with four."""
ABSOLUTE: Final = 1e-6
_DECIMAL: Final = re.compile(r"(?<![\w.])[+-]?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+|\d+[eE][+-]?\d+)")
_SPACE: Final = re.compile(r"\s+")
_PADDING: Final = re.compile(r"(?<=[\[(,]) | (?=[\]),])")


def format_ending(record: Record) -> str:
    """Return the outcome of a job, or the signature of its error."""
    return str(record.outcome) if record.error is None else record.error.signature


def classify_failure(record: Record) -> str:
    """Return the class of a failure: the type of its exception, or the outcome.

    Returns:
        Empty for a job that did not fail.
    """
    if record.outcome is Outcome.OK:
        return ""
    if record.outcome is Outcome.RAISED and record.error is not None:
        return record.error.type
    return str(record.outcome)


def shorten(text: str) -> str:
    """Return an ending in one line of limited length."""
    line = " ".join(text.split())
    return line if len(line) <= MOST else f"{line[: MOST - 3]}..."


def is_same_failure(ending: str, other: str) -> bool:
    """Say whether two endings are the same failure: equal types of error, and similar messages.

    Upstream rewords messages from release to release, appends advice, and renames the types that a
    message mentions: only the beginnings of messages are compared, without numbers.

    Args:
        ending: An ending, `Type: message`, or an outcome.
        other: Another ending.
    """
    if ending == other:
        return True
    (type_, _, message), (other_type, _, other_message) = (
        text.partition(":") for text in (ending, other)
    )
    if type_ != other_type or not message or not other_message:
        return False
    words, other_words = _split_words(message), _split_words(other_message)
    if _have_other_names(message, other_message):
        return False
    shorter = min(len(words), len(other_words))
    # Appended advice does not make the message before it another one.
    heads = words[: shorter + shorter // 2], other_words[: shorter + shorter // 2]
    return SequenceMatcher(None, *heads, autojunk=False).ratio() >= ALIKE


def _have_other_names(message: str, other: str) -> bool:
    """Say whether two messages name different things that are missing or unknown.

    The messages of such errors differ only in the name.
    """
    found, others = (
        {m[1] for m in _NAMED.finditer(normalise_cause(text))} for text in (message, other)
    )
    return bool(found and others and not found & others)


def _split_words(message: str) -> list[str]:
    return _WORD.findall(normalise_cause(message))[:WORDS]


class EquivalenceClasses(Generic[T]):
    """Classes of equal items, in the order in which they were first seen.

    Args:
        same: Predicate that compares two items.
        known: The first items of known classes.
    """

    def __init__(self, same: Callable[[T, T], bool], *known: T) -> None:
        self._same, self._firsts = same, list(known)

    def find_number(self, item: T) -> int:
        """Return the number of the class of an item, which is new if no class matches."""
        # Compared with the first item only: similarity is not transitive, and classes must not
        # drift.
        for number, first in enumerate(self._firsts):
            if self._same(item, first):
                return number
        self._firsts.append(item)
        return len(self._firsts) - 1

    def find_first(self, item: T) -> T:
        """Return the first item of the class of an item."""
        return self._firsts[self.find_number(item)]


def is_same_output(
    output: str, other: str, unstable: Collection[int] = (), *, exact: bool = False
) -> bool:
    """Say whether two outputs are the same.

    Args:
        output: An output.
        other: Another output.
        unstable: Numbers of ignored lines, from 0.
        exact: Whether numbers must have the same digits.
    """
    return next(find_differing_lines(output, other, unstable, exact=exact), None) is None


def find_differing_lines(
    output: str, other: str, unstable: Collection[int] = (), *, exact: bool = False
) -> Iterator[tuple[int, str, str]]:
    """Yield the lines in which two outputs differ: their number and both of them.

    Args:
        output: An output.
        other: Another output.
        unstable: Numbers of ignored lines, from 0.
        exact: Whether numbers must have the same digits.
    """
    # Lines are paired by number, since unstable lines are known by number.
    pairs = zip_longest(output.splitlines(), other.splitlines())
    for number, (line, other_line) in enumerate(pairs):
        if number in unstable or line == other_line:
            continue
        if exact or line is None or other_line is None or not _is_close(line, other_line):
            yield number, line or "", other_line or ""


def find_unstable_lines(output: str, other: str) -> frozenset[int]:
    """Return the numbers of the lines that two runs in one cell print differently."""
    return frozenset(number for number, _, _ in find_differing_lines(output, other))


def _is_close(line: str, other: str) -> bool:
    if _strip_numbers(line) != _strip_numbers(other):
        return False
    pairs = zip(_DECIMAL.findall(line), _DECIMAL.findall(other), strict=True)
    return all(
        math.isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=ABSOLUTE) for a, b in pairs
    )


def _strip_numbers(line: str) -> str:
    """Return a line without its decimal numbers, and without the spaces that align them."""
    # NumPy pads the columns of an array to the widest number, so digits change the spaces.
    return _PADDING.sub("", _SPACE.sub(" ", _DECIMAL.sub("#", line)).strip())
