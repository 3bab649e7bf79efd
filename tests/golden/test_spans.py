"""Laws of spans: what is recorded is found, and nothing else moves."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.golden.spans import (
    Span,
    find_span,
    insert_release,
    merge_spans,
    parse_span,
    parse_version,
)

KNOWN = ["0.4.30", "0.4.31", "0.4.38", "0.5.0", "0.5.3", "0.6.0", "0.9.0", "0.9.0.1", "0.10.0"]
records = st.lists(st.tuples(st.sampled_from(KNOWN), st.sampled_from("abc")), max_size=20)


def _recorded(pairs: list[tuple[str, str]]) -> tuple[Span[str], ...]:
    spans: tuple[Span[str], ...] = ()
    for release, content in pairs:
        spans = insert_release(spans, release, content, KNOWN)
    return spans


def _found(spans: tuple[Span[str], ...], release: str) -> tuple[str, bool] | None:
    found = find_span(spans, release)
    return None if found is None else (found.span.content, found.exact)


@given(records)
def test_the_last_recorded_content_is_found(pairs: list[tuple[str, str]]) -> None:
    """After any history, each recorded release is within a span of its last content."""
    spans = _recorded(pairs)
    for release, content in dict(pairs).items():
        assert _found(spans, release) == (content, True)


@given(records, st.sampled_from(KNOWN), st.sampled_from("abc"))
def test_inserting_moves_no_other_release(
    pairs: list[tuple[str, str]], release: str, content: str
) -> None:
    """Releases that lay in a span keep their content, whether run or taken to be so."""
    before = _recorded(pairs)
    after = insert_release(before, release, content, KNOWN)
    for other in KNOWN:
        was = _found(before, other)
        if other != release and was is not None and was[1]:
            assert _found(after, other) == was


@given(records)
def test_spans_are_disjoint_ordered_and_merged(pairs: list[tuple[str, str]]) -> None:
    """Neighbours differ in content, and merging again changes nothing."""
    spans = _recorded(pairs)
    assert merge_spans(spans) == spans
    assert merge_spans(reversed(spans)) == spans
    for one, other in itertools.pairwise(spans):
        assert parse_version(one.last) < parse_version(other.first)
        assert one.content != other.content


@given(records)
def test_inserting_the_same_again_changes_nothing(pairs: list[tuple[str, str]]) -> None:
    """Recording is idempotent."""
    spans = _recorded(pairs)
    for release, content in dict(pairs).items():
        assert insert_release(spans, release, content, KNOWN) == spans


@given(st.sampled_from(KNOWN), st.sampled_from(KNOWN))
def test_a_rendered_span_is_parsed_unchanged(one: str, other: str) -> None:
    """`parse_span(str(span))` is the span."""
    first, last = sorted([one, other], key=parse_version)
    span = Span(first, last, "a")
    assert parse_span(str(span), "a") == span


def test_a_span_in_the_middle_is_split_at_its_neighbours() -> None:
    """Both parts end at known releases."""
    spans = insert_release((Span("0.4.30", "0.10.0", "a"),), "0.5.3", "b", KNOWN)
    assert [str(span) for span in spans] == ["0.4.30..0.5.0", "0.5.3", "0.6.0..0.10.0"]


def test_a_new_release_of_the_same_content_extends_the_newest_span() -> None:
    """No new span, no new file."""
    spans = insert_release((Span("0.4.30", "0.9.0", "a"),), "0.10.0", "a", KNOWN)
    assert spans == (Span("0.4.30", "0.10.0", "a"),)


def test_a_release_unknown_to_the_index_can_be_recorded() -> None:
    """A table of releases may be older than the goldens."""
    spans = insert_release((Span("0.9.0", "0.10.0", "a"),), "0.9.1.dev1", "b", KNOWN)
    assert [str(span) for span in spans] == ["0.9.0..0.9.0.1", "0.9.1.dev1", "0.10.0"]


@pytest.mark.parametrize(
    ("release", "found"),
    [
        ("0.4.29", None),
        ("0.4.30", ("a", True)),
        ("0.4.31", ("a", True)),
        ("0.5.0", ("a", False)),
        ("0.9.0", ("b", True)),
        ("0.9.0.1", ("b", False)),
        ("0.13.0.dev1", ("b", False)),
    ],
)
def test_gaps_and_newer_releases_find_the_nearest_older_span(
    release: str, found: tuple[str, bool] | None
) -> None:
    """Older than all finds nothing; outside a span is never exact."""
    spans = (Span("0.4.30", "0.4.38", "a"), Span("0.6.0", "0.9.0", "b"))
    assert _found(spans, release) == found


@pytest.mark.parametrize("text", ["", "..", "0.5..", "0.6.0..0.5.0", "new", "0.5.0...0.6.0"])
def test_a_malformed_span_is_an_error(text: str) -> None:
    """Neither open nor reversed spans nor words."""
    with pytest.raises(ValueError, match="span"):
        parse_span(text, "a")
