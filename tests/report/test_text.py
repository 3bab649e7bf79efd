"""Text from elsewhere: nothing in it acts, and everything in it is seen."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.report.text import one_line, visible


@pytest.mark.parametrize(
    ("given_", "shown"),
    [
        ("\x1b[31mred\x07", "␛[31mred␇"),
        ("a\x00b\r\n", "a␀b␍\n"),
        ("\u202egpj.exe", "<U+202E>gpj.exe"),
        ("\x9b1m\x7f", "<U+009B>1m<U+007F>"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("\ud800", "<U+D800>"),
        ("tab\tand\nlines stay, and so do ü 漢 🙂", "tab\tand\nlines stay, and so do ü 漢 🙂"),
    ],
)
def test_what_acts_is_shown_as_a_picture(given_: str, shown: str) -> None:
    """Control codes, marks that reorder or hide, lone surrogates; plain text is left alone."""
    assert visible(given_) == shown


def test_a_long_text_is_cut_and_says_so() -> None:
    """Ten megabytes do not make a page."""
    cut = visible("x" * 10_000_000, 100)
    assert cut == "x" * 100 + " ... 9,999,900 more characters"


def test_one_line_has_no_line_ends() -> None:
    """White space of any kind is one space."""
    assert one_line("a\n\n  b\tc \r") == "a b c ␍"


@given(st.text(st.characters()))
def test_nothing_that_acts_is_left(text: str) -> None:
    """Whatever the text, what is shown can be encoded and holds no control code but two."""
    shown = visible(text)
    shown.encode()
    assert not {c for c in shown if unicodedata.category(c) in {"Cc", "Cs"}} - {"\n", "\t"}


@given(st.text())
def test_what_is_shown_is_shown_the_same_again(text: str) -> None:
    """A text that was made fit stays as it is."""
    assert visible(visible(text)) == visible(text)
