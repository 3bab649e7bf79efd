"""Where what is recorded of a case changes."""

from __future__ import annotations

import pytest

from conformance.golden.spans import Span
from conformance.golden.turns import turns


def made(track: str, *contents: str) -> dict[str, tuple[Span[str], ...]]:
    """Return a track of contents, each of one release from 0.4.0 on."""
    return {track: tuple(Span(f"0.4.{n}", f"0.4.{n}", name) for n, name in enumerate(contents))}


@pytest.mark.parametrize(
    ("before", "after", "shown_by"),
    [
        ("value-1.safetensors", "error-1.txt", "outcome"),
        ("error-1.txt", "ok-1.txt", "outcome"),
        ("error-1.txt", "error-2.txt", "error"),
        ("value-1.safetensors", "value-2.safetensors", "value"),
    ],
)
def test_an_ending_turns(before: str, after: str, shown_by: str) -> None:
    """From an error to none or back, to another error, or to another value."""
    (turn,) = turns(made("ending", before, after))
    assert (turn.release, turn.before.last, turn.shown_by) == ("0.4.1", "0.4.0", shown_by)


def test_other_tracks_turn_by_their_names() -> None:
    """One turn for each neighbour of another content."""
    found = turns(made("hlo", "hlo-1.txt", "hlo-2.txt", "hlo-1.txt"))
    assert [(turn.release, turn.shown_by) for turn in found] == [("0.4.1", "hlo"), ("0.4.2", "hlo")]


def test_the_same_content_is_no_turn() -> None:
    """Also where releases between are not recorded."""
    assert turns(made("facts", "facts-1.json", "facts-1.json")) == ()
