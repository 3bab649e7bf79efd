"""What a terminal shows: no line is wider than it, and nothing in a text acts on it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from conformance.review.lines import Line, line, lines_of
from conformance.review.screen import LEAST_WIDTH, folded

anything = st.text(st.characters(codec="utf-8"), max_size=200)


@given(st.lists(anything, max_size=4), st.integers(LEAST_WIDTH, 120), st.integers(0, 6))
def test_no_line_is_wider_than_the_terminal(texts: list[str], width: int, indent: int) -> None:
    """Also of characters that take two columns."""
    told = folded([line(text, indent=indent) for text in texts], width)
    assert all(cell_len(one.plain) <= width for one in told)
    assert all("\n" not in one.plain for one in told)


@given(anything)
def test_nothing_in_a_text_acts(text: str) -> None:
    """No control code is left of it."""
    found = [line(text), *lines_of(text, 3)]
    assert all(c not in one.text for one in found for c in "\x1b\x07\x08\r\n\x9b\u202e")


def test_words_are_kept_and_set_in() -> None:
    """What goes on is two columns further in."""
    told = folded([Line("  one two three four five six seven")], 20)
    assert [one.plain for one in told] == ["  one two three four", "    five six seven"]


def test_what_is_left_out_is_said() -> None:
    """Of a text with many lines."""
    assert [text for text, _ in lines_of("a\nb\nc", 2, indent=1)] == [
        " a",
        " b",
        " ... 1 more lines",
    ]
