"""Ranges of releases as sets of points on a line, to intersect, divide and join them."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Final

from packaging.specifiers import SpecifierSet
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BELOW: Final = "0"
"""A version before every release."""


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version:
    """Return a version that can be ordered."""
    return Version(text)


def list_points(specifiers: Iterable[str], releases: Iterable[str] = ()) -> tuple[str, ...]:
    """Return versions that distinguish ranges: different ranges contain different points.

    Args:
        specifiers: The ranges, as PEP 440 specifiers.
        releases: Further versions.

    Returns:
        A version before all others, then each version with one just after it, in order.
    """
    texts = [*releases, *(v for text in specifiers for v in _list_bounds(text))]
    named = {parse_version(text): text for text in sorted(texts, reverse=True)}  # 0.5 is 0.5.0
    found = [(text, _find_successor(text)) for _, text in sorted(named.items())]
    return (BELOW, *(point for pair in found for point in pair))


@lru_cache(maxsize=4096)
def _list_bounds(specifier: str) -> frozenset[str]:
    """Return the versions that a range begins or ends at."""
    found = set()
    for clause in SpecifierSet(specifier):
        parts = clause.version.removesuffix(".*").split(".")
        found.add(".".join(parts))
        if clause.operator == "~=":
            parts.pop()
        # Both end at the next version of the last part: `~=0.4.30` and `==0.4.*` before 0.5.
        if clause.operator == "~=" or clause.version.endswith(".*"):
            found.add(".".join([*parts[:-1], str(int(parts[-1]) + 1)]))
    return frozenset(found)


@lru_cache(maxsize=4096)
def _find_successor(text: str) -> str:
    """Return a version just after another, before every version that a range may name."""
    found = parse_version(text)
    if found.is_prerelease or found.is_postrelease:
        # A version of PEP 440 ends with that number: only the next number can come after it.
        return re.sub(r"\d+$", lambda last: str(int(last[0]) + 1), found.public)
    return f"{found.public}.0.0.1"


def is_between(point: str, low: str | None, high: str | None) -> bool:
    """Say whether a version is at or after `low`, and before `high`; None is no bound."""
    found = parse_version(point)
    above = low is None or found >= parse_version(low)
    return above and (high is None or found < parse_version(high))


def make_ranges(line: Sequence[str], inside: Sequence[bool]) -> list[str]:
    """Return the fewest ranges that contain some points of a line, and no others.

    Args:
        line: The points, as `list_points` returns them.
        inside: Whether each point is contained.

    Returns:
        Specifiers, the oldest first.
    """
    runs = groupby(range(len(line)), key=lambda number: inside[number])
    groups = [list(numbers) for contained, numbers in runs if contained]
    return [_make_specifier(line, numbers[0], numbers[-1] + 1) for numbers in groups]


def _make_specifier(line: Sequence[str], start: int, end: int) -> str:
    """Return the specifier of neighbouring points, the last of them before `end`.

    Points alternate: the first is before all versions, odd ones are versions, and even ones are
    just after a version.
    """
    # A single release, without the versions just after it.
    if end - start == 1 and start % 2:
        return f"=={line[start]}"
    bounds = []
    if start:
        bounds.append(f">={line[start]}" if start % 2 else f">{line[start - 1]}")
    if end < len(line):
        bounds.append(f"<{line[end]}" if end % 2 else f"<={line[end - 1]}")
    return ",".join(bounds)
