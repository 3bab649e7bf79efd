"""What a terminal shows: no line is wider than it, and nothing in a text acts on it."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from conformance.review.evidence import (
    WrappedLines,
    indent_lines,
    limit_lines,
    make_line,
    make_section,
)

if TYPE_CHECKING:
    from rich.text import Text

anything = st.text(st.characters(codec="utf-8"), max_size=200)


def shown(lines: list[Text], width: int) -> list[str]:
    """Return lines as a console of a width shows them."""
    console = Console(width=width, file=StringIO(), highlight=False)
    with console.capture() as capture:
        console.print(WrappedLines(lines))
    return capture.get().splitlines()


@given(st.lists(anything, max_size=4), st.integers(20, 120), st.integers(0, 3))
def test_no_line_is_wider_than_the_terminal(texts: list[str], width: int, depth: int) -> None:
    """Also of characters that take two columns."""
    lines = [make_line(text) for text in texts]
    for _ in range(depth):
        lines = make_section("title", lines)
    assert all(cell_len(one) <= width for one in shown(lines, width))


@given(anything)
def test_control_codes_are_removed_from_lines(text: str) -> None:
    """They could act on a terminal."""
    assert all(c not in make_line(text).plain for c in "\x1b\x07\x08\r\n\x9b\u202e")


def test_words_are_kept_and_indented() -> None:
    """A continuation is two columns further in."""
    lines = make_section("title", [make_line("one two three four five six seven")])
    assert shown(lines, 20) == ["title", "  one two three four", "    five six seven"]


def test_a_section_without_lines_has_no_title() -> None:
    """A title is shown without lines only where it says something."""
    assert make_section("title", []) == []
    assert indent_lines(make_line("title"), []) == [make_line("title")]


def test_the_number_of_lines_left_out_is_shown() -> None:
    """Of a text with many lines."""
    found = limit_lines([make_line(text) for text in "abc"], 2, "... {} more lines")
    assert [one.plain for one in found] == ["a", "b", "... 1 more lines"]
