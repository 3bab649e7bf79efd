"""Ranges of releases as parts of a line: what several of them have in common, and their union."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from packaging.specifiers import SpecifierSet
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BELOW: Final = "0"
"""A version before every release."""


@lru_cache(maxsize=4096)
def version(text: str) -> Version:
    """Return a version that can be ordered."""
    return Version(text)


def points(specifiers: Iterable[str], releases: Iterable[str] = ()) -> tuple[str, ...]:
    """Return versions such that ranges are told by which of them they hold.

    Args:
        specifiers: The ranges, as PEP 440 specifiers.
        releases: Further versions that count.

    Returns:
        One before all that are named, each that is named, and one just after it, in order.
    """
    texts = [*releases, *(v for text in specifiers for v in _named(text))]
    named = {version(text): text for text in sorted(texts, reverse=True)}  # 0.5 is 0.5.0
    found = [(text, _after(text)) for _, text in sorted(named.items())]
    return (BELOW, *(point for pair in found for point in pair))


@lru_cache(maxsize=4096)
def _named(specifier: str) -> frozenset[str]:
    """Return the versions that a range begins or ends at."""
    found = set()
    for one in SpecifierSet(specifier):
        parts = one.version.removesuffix(".*").split(".")
        found.add(".".join(parts))
        if one.operator == "~=":
            parts.pop()
        if one.operator == "~=" or one.version.endswith(".*"):
            found.add(".".join([*parts[:-1], str(int(parts[-1]) + 1)]))
    return frozenset(found)


@lru_cache(maxsize=4096)
def _after(text: str) -> str:
    """Return a version after one, before every other that anybody names."""
    found = version(text)
    if found.is_prerelease or found.is_postrelease:
        # Of a nightly, a candidate, a repair: the next one.
        return re.sub(r"\d+$", lambda last: str(int(last[0]) + 1), found.public)
    return f"{found.public}.0.0.1"


def is_between(point: str, low: str | None, high: str | None) -> bool:
    """Say whether a version is at or after one, and before another; None is no bound."""
    found = version(point)
    return (low is None or found >= version(low)) and (high is None or found < version(high))


def ranges_of(line: Sequence[str], inside: Sequence[bool]) -> list[str]:
    """Return the fewest ranges that hold some points of a line, and no other.

    Args:
        line: What `points` returned.
        inside: Of each, whether it is held.

    Returns:
        Specifiers, the oldest first.
    """
    found = []
    start: int | None = None
    for number, held in enumerate([*inside, False]):
        if held and start is None:
            start = number
        elif not held and start is not None:
            found.append(_spelled(line, start, number))
            start = None
    return found


def _spelled(line: Sequence[str], start: int, end: int) -> str:
    """Return the specifier of neighbouring points, the last of them before `end`.

    Points alternate: the one before all, then each that is named and the one just after it.
    """
    if end - start == 1 and start % 2:
        return f"=={line[start]}"
    bounds = []
    if start:
        bounds.append(f">={line[start]}" if start % 2 else f">{line[start - 1]}")
    if end < len(line):
        bounds.append(f"<{line[end]}" if end % 2 else f"<={line[end - 1]}")
    return ",".join(bounds)
