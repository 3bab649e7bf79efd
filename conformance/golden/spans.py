"""Spans of releases over which one content is the same; pure.

A span says: reviewed at its two ends, and taken to be so between them. Releases within it that
nobody ran are not told from those that were run: whoever runs one compares it with the span, and
a difference splits it. That keeps files small and reviewable, and nothing is claimed in silence,
for a span is what the reviewer accepts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")
_DOTS = ".."


@dataclass(frozen=True, slots=True)
class Span(Generic[T]):
    """One content over a range of releases, both ends included.

    Attributes:
        first: Oldest release.
        last: Newest release.
        content: What was the same; compared with `==`.
    """

    first: str
    last: str
    content: T

    def __str__(self) -> str:
        return self.first if self.first == self.last else f"{self.first}{_DOTS}{self.last}"

    def __contains__(self, release: str) -> bool:
        return parse_version(self.first) <= parse_version(release) <= parse_version(self.last)


@dataclass(frozen=True, slots=True)
class SpanMatch(Generic[T]):
    """The span that applies to a release, and whether the release lies within it."""

    span: Span[T]
    exact: bool


@lru_cache(maxsize=4096)
def parse_version(release: str) -> Version:
    """Return a release as a version that can be ordered."""
    return Version(release)


def is_release(text: str) -> bool:
    """Say whether a version is of a release: no nightly, no candidate, no build of one's own.

    Args:
        text: A PEP 440 version.
    """
    found = parse_version(text)
    return not found.is_prerelease and found.local is None


def parse_span(text: str, content: T) -> Span[T]:
    """Return the span that `str(span)` wrote.

    Args:
        text: `0.6.0`, or `0.4.30..0.5.3`.
        content: Its content.

    Returns:
        The span.

    Raises:
        ValueError: If an end is no version or the ends are reversed.
    """
    first, dots, last = text.partition(_DOTS)
    last = last if dots else first
    try:
        reversed_ = parse_version(last) < parse_version(first)
    except ValueError as error:
        raise ValueError(f"span {text!r}: {error}") from None
    if reversed_:
        raise ValueError(f"span {text!r} ends before it begins")
    return Span(first, last, content)


def find_span(spans: Sequence[Span[T]], release: str) -> SpanMatch[T] | None:
    """Return the span that applies to a release.

    Args:
        spans: Disjoint spans in order.
        release: The release asked for.

    Returns:
        The span it lies in; else, inexact, the nearest older one (for a release newer than all
        that is the newest); None when all are newer.
    """
    wanted = parse_version(release)
    older = [span for span in spans if parse_version(span.first) <= wanted]
    if not older:
        return None
    return SpanMatch(older[-1], exact=wanted <= parse_version(older[-1].last))


def insert_release(
    spans: Sequence[Span[T]], release: str, content: T, known: Iterable[str]
) -> tuple[Span[T], ...]:
    """Record what one release showed.

    Args:
        spans: Disjoint spans in order.
        release: The release observed.
        content: What it showed.
        known: Every release there is, in any order; where a span is cut, its parts end at the
            neighbours of the release in this list. Releases recorded but absent from it are
            only kept as ends of spans.

    Returns:
        The spans, disjoint, in order and merged; lookups of all other known releases that lay
        in a span find what they found before.
    """
    ends = (end for span in spans for end in (span.first, span.last))
    order = sorted({*known, *ends, release}, key=parse_version)
    place = order.index(release)
    cut: list[Span[T]] = [Span(release, release, content)]
    for span in spans:
        if release not in span:
            cut.append(span)
            continue
        if parse_version(span.first) < parse_version(release):
            cut.append(Span(span.first, order[place - 1], span.content))
        if parse_version(release) < parse_version(span.last):
            cut.append(Span(order[place + 1], span.last, span.content))
    return merge_spans(cut)


def merge_spans(spans: Iterable[Span[T]]) -> tuple[Span[T], ...]:
    """Return disjoint spans in order, neighbours of the same content made one.

    Args:
        spans: Disjoint spans in any order.

    Returns:
        The fewest spans that say the same; releases between two merged spans are taken to be
        as their neighbours.
    """
    merged: list[Span[T]] = []
    for span in sorted(spans, key=lambda span: parse_version(span.first)):
        if merged and merged[-1].content == span.content:
            merged[-1] = Span(merged[-1].first, span.last, span.content)
        else:
            merged.append(span)
    return tuple(merged)
