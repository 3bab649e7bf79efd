"""Spans of releases over which one content is the same; pure.

A span is reviewed at its two ends, and assumed to hold between them. Releases within it that were
never run are not marked: a run of one is compared with the span, and a difference splits it. So
files stay small and reviewable, and the reviewer of a span accepts the assumption with it.
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
        content: The content that is the same; compared with `==`.
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
    """The span that applies to a release, and whether the release is within the span."""

    span: Span[T]
    exact: bool


# Parsing dominates: each lookup compares the release with all spans of a track.
@lru_cache(maxsize=4096)
def parse_version(release: str) -> Version:
    """Return a release as a version that can be ordered."""
    return Version(release)


def is_release(text: str) -> bool:
    """Say whether a version is a release: no nightly, release candidate or local build.

    Args:
        text: A PEP 440 version.
    """
    found = parse_version(text)
    return not found.is_prerelease and found.local is None


def parse_span(text: str, content: T) -> Span[T]:
    """Return the span that `str(span)` wrote.

    Args:
        text: `0.6.0`, or `0.4.30..0.5.3`.
        content: Content of the span.

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
        release: Any release.

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
    """Insert the content observed on one release.

    Args:
        spans: Disjoint spans in order.
        release: The release observed.
        content: The observed content.
        known: Every published release, in any order. A span that is cut ends at the neighbours
            of the release in this list. Recorded releases that are absent from it count, too.

    Returns:
        The spans, disjoint, in order and merged. All other known releases within a span keep
        their content.
    """
    # A table of releases may be older than the goldens, which then know more releases.
    ends = (end for span in spans for end in (span.first, span.last))
    order = sorted({*known, *ends, release}, key=parse_version)
    place = order.index(release)
    cut: list[Span[T]] = [Span(release, release, content)]
    for span in spans:
        # A span that holds the release is cut around it, and joined again if the content is the
        # same.
        if release not in span:
            cut.append(span)
            continue
        if parse_version(span.first) < parse_version(release):
            cut.append(Span(span.first, order[place - 1], span.content))
        if parse_version(release) < parse_version(span.last):
            cut.append(Span(order[place + 1], span.last, span.content))
    return merge_spans(cut)


def merge_spans(spans: Iterable[Span[T]]) -> tuple[Span[T], ...]:
    """Return disjoint spans in order, with neighbours of the same content joined.

    Args:
        spans: Disjoint spans in any order.

    Returns:
        The fewest spans with the same meaning; releases between two joined spans are assumed to
        have their content.
    """
    merged: list[Span[T]] = []
    for span in sorted(spans, key=lambda span: parse_version(span.first)):
        if merged and merged[-1].content == span.content:
            merged[-1] = Span(merged[-1].first, span.last, span.content)
        else:
            merged.append(span)
    return tuple(merged)
