"""Comparison of what programs print: text exactly, decimal numbers within a tolerance. Pure."""

from __future__ import annotations

import math
import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

RELATIVE: Final = 1e-4
"""Tolerance of a printed number; arrays are printed with eight digits, losses with four."""
ABSOLUTE: Final = 1e-6
_DECIMAL: Final = re.compile(r"(?<![\w.])[+-]?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+|\d+[eE][+-]?\d+)")
_SPACE: Final = re.compile(r"\s+")
_PADDING: Final = re.compile(r"(?<=[\[(,]) | (?=[\]),])")


def same_output(
    one: str, other: str, unstable: Collection[int] = (), *, exact: bool = False
) -> bool:
    """Say whether two outputs are the same.

    Args:
        one: An output.
        other: Another.
        unstable: Numbers of lines that do not count, from 0.
        exact: Whether numbers must have the same digits.
    """
    return next(differing_lines(one, other, unstable, exact=exact), None) is None


def differing_lines(
    one: str, other: str, unstable: Collection[int] = (), *, exact: bool = False
) -> Iterator[tuple[int, str, str]]:
    """Yield the lines in which two outputs differ: their number and both of them.

    Args:
        one: An output.
        other: Another.
        unstable: Numbers of lines that do not count, from 0.
        exact: Whether numbers must have the same digits.
    """
    pairs = zip_longest(one.splitlines(), other.splitlines())
    for number, (line, other_line) in enumerate(pairs):
        if number in unstable or line == other_line:
            continue
        if exact or line is None or other_line is None or not _is_close(line, other_line):
            yield number, line or "", other_line or ""


def unstable_lines(one: str, other: str) -> frozenset[int]:
    """Return the numbers of the lines that two runs in one cell print differently."""
    return frozenset(number for number, _, _ in differing_lines(one, other))


def _is_close(one: str, other: str) -> bool:
    if _skeleton(one) != _skeleton(other):
        return False
    pairs = zip(_DECIMAL.findall(one), _DECIMAL.findall(other), strict=True)
    return all(
        math.isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=ABSOLUTE) for a, b in pairs
    )


def _skeleton(line: str) -> str:
    """Return a line without its decimal numbers, and without the spaces that align them."""
    return _PADDING.sub("", _SPACE.sub(" ", _DECIMAL.sub("#", line)).strip())
