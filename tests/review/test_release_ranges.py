"""Releases as a specifier, and as spans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.golden.spans import parse_version
from conformance.model.ranges import in_range
from conformance.review.release_ranges import find_tightest_range, format_spans, narrow_range

from .members import KNOWN

NIGHT, NEXT_NIGHT = "0.7.1.dev20261121", "0.7.1.dev20261122"
some = st.sets(st.sampled_from([*KNOWN, NIGHT, NEXT_NIGHT]))


@pytest.mark.parametrize(
    ("seen", "unseen", "expected"),
    [
        (["0.4.30", "0.5.3"], ["0.6.0"], "<0.6"),
        (["0.6.0", "0.7.0"], ["0.5.3"], ">=0.6"),
        (["0.6.0"], ["0.5.3", "0.6.2"], ">=0.6,<0.6.2"),
        (["0.5.0"], ["0.6.2"], ">=0.5,<=0.5.0"),
        (["0.5.0", "0.6.2"], ["0.6.0"], ">=0.5,<=0.6.2,!=0.6.0"),
        (KNOWN, [], ""),
        ([NIGHT], ["0.7.0"], ">=0.7.1"),
        (["0.7.0"], [NIGHT], ">=0.7,<0.7.1"),
        ([NEXT_NIGHT], [NIGHT], ">=0.7.1.dev20261122"),
        ([NIGHT], [NEXT_NIGHT], ">=0.7.1,<0.7.1.dev20261122"),
    ],
)
def test_the_tightest_range_of_releases(seen: list[str], unseen: list[str], expected: str) -> None:
    """A bound only if a release is beyond it; nightlies are separated only if necessary."""
    assert find_tightest_range(seen, unseen, KNOWN) == expected


@given(some.filter(bool), some)
def test_a_range_covers_all_seen_and_no_unseen_releases(seen: set[str], unseen: set[str]) -> None:
    """Nor a known release beyond its ends."""
    text = find_tightest_range(seen, unseen, KNOWN)
    first, last = (parse_version(end(seen, key=parse_version)) for end in (min, max))
    assert all(in_range(release, text) for release in seen)
    assert not any(in_range(release, text) for release in unseen - seen)
    assert not any(
        in_range(release, text) for release in KNOWN if not first <= parse_version(release) <= last
    )


@pytest.mark.parametrize(
    ("specifier", "gone", "seen", "expected"),
    [
        ("<0.6", ["0.5.3"], [], "<0.5.3"),
        (">=0.6", ["0.7.0"], ["0.6.0"], ">=0.6,<0.7"),
        (">=0.6", [NIGHT], ["0.7.0"], ">=0.6,<0.7.1"),
        (">=0.6", ["0.6.0"], ["0.6.2"], ">=0.6.2"),
        (">=0.5", ["0.6.0"], [], ">=0.5,<0.6"),
        ("==0.6.0", ["0.6.0"], [], None),
        ("", ["0.4.30"], [], None),
    ],
)
def test_a_range_is_narrowed_to_the_remaining_releases(
    specifier: str, gone: list[str], seen: list[str], expected: str | None
) -> None:
    """What nobody ran is as the release before it."""
    assert narrow_range(specifier, gone, seen, KNOWN) == expected


@given(some)
def test_spans_cover_exactly_the_releases(releases: set[str]) -> None:
    """No other known release is within a span."""
    spans = [span.split("..") for span in format_spans(releases, KNOWN).split(", ") if span]
    told = {
        release
        for release in [*KNOWN, NIGHT, NEXT_NIGHT]
        if any(parse_version(s[0]) <= parse_version(release) <= parse_version(s[-1]) for s in spans)
    }
    assert releases <= told
    assert told & set(KNOWN) == releases & set(KNOWN)
