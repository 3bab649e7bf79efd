"""Changes in the recorded spans of a case."""

from __future__ import annotations

import pytest

from conformance.golden.span_change import find_span_changes
from conformance.golden.spans import Span


def made(track: str, *contents: str) -> dict[str, tuple[Span[str], ...]]:
    """Return a track of contents, each of one release from 0.4.0 on."""
    return {track: tuple(Span(f"0.4.{n}", f"0.4.{n}", name) for n, name in enumerate(contents))}


@pytest.mark.parametrize(
    ("before", "after", "shown_by"),
    [
        ("value-1", "error-1", "outcome"),
        ("error-1", "ok", "outcome"),
        ("error-1", "error-2", "error"),
        ("value-1", "value-2", "value"),
    ],
)
def test_an_ending_changes(before: str, after: str, shown_by: str) -> None:
    """From an error to none or back, to another error, or to another value."""
    (change,) = find_span_changes(made("ending", before, after))
    assert (change.release, change.before.last, change.shown_by) == ("0.4.1", "0.4.0", shown_by)


def test_other_tracks_are_shown_by_their_names() -> None:
    """One change for each pair of neighbours with different contents."""
    found = find_span_changes(made("hlo", "hlo-1", "hlo-2", "hlo-1"))
    assert [(change.release, change.shown_by) for change in found] == [
        ("0.4.1", "hlo"),
        ("0.4.2", "hlo"),
    ]


def test_the_same_content_is_no_change() -> None:
    """Also where releases between are not recorded."""
    assert find_span_changes(made("facts", "facts-1", "facts-1")) == ()
