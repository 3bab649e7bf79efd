"""Text from elsewhere: nothing in it acts, and everything in it is seen."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.run import RunCase, RunCell, selector_of
from conformance.report.text import (
    flatten,
    format_moment,
    make_rerun_command,
    parse_time,
    sanitize,
)


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
def test_control_codes_become_pictures(given_: str, shown: str) -> None:
    """Control codes, marks that reorder or hide, lone surrogates; plain text is left alone."""
    assert sanitize(given_) == shown


def test_a_long_text_is_cut_and_says_so() -> None:
    """Ten megabytes do not make a page."""
    cut = sanitize("x" * 10_000_000, 100)
    assert cut == "x" * 100 + " ... 9,999,900 more characters"


def test_one_line_has_no_line_ends() -> None:
    """White space of any kind is one space."""
    assert flatten("a\n\n  b\tc \r") == "a b c ␍"


@given(st.text(st.characters()))
def test_sanitized_text_has_no_control_codes(text: str) -> None:
    """Whatever the text, what is shown can be encoded and holds no control code but two."""
    shown = sanitize(text)
    shown.encode()
    assert not {c for c in shown if unicodedata.category(c) in {"Cc", "Cs"}} - {"\n", "\t"}


@given(st.text())
def test_sanitizing_twice_changes_nothing(text: str) -> None:
    """A text that was made fit stays as it is."""
    assert sanitize(sanitize(text)) == sanitize(text)


def test_times_are_utc() -> None:
    """What is no time, or none that UTC has, is None."""
    assert parse_time("2026-05-01T02:00:00+02:00") == datetime(2026, 5, 1, tzinfo=UTC)
    assert parse_time("") is parse_time("0001-01-01T00:00:00+14:00") is None


def test_a_moment_is_shown_to_the_minute() -> None:
    """In UTC; what is no time stays as it is, made fit to be shown."""
    assert format_moment("2026-05-01T02:30:59+02:00") == "2026-05-01 00:30 UTC"
    assert format_moment("2026-05-01T02:30:59") == "2026-05-01 02:30 UTC"
    assert format_moment("yesterday\x1b") == "yesterday␛"


@pytest.mark.parametrize(
    ("about", "said"),
    [
        (RunCase(), "conformance run 'f/a[x]' --cell one --cell two"),
        (RunCase(kind="test"), "conformance suite run --cell one --cell two 'f/a[x]'"),
        (
            RunCase(kind="test", arguments="suite::f/a --with p -- -k sum"),
            "conformance suite run --cell one --cell two suite::f/a --with p -- -k sum",
        ),
    ],
)
def test_the_rerun_command_of_a_case_and_of_a_test(about: RunCase, said: str) -> None:
    """A test is told as its suite names it, with what it needs, arguments of pytest's own last."""
    assert make_rerun_command("f/a[x]", about, "one", "two", "one") == said


def test_a_path_cell_is_named_by_its_interpreter() -> None:
    """Its id is no selector."""
    cells = (RunCell(id="path-env-1-py311-cpu4", selector="path:/my env/python@cpu4"),)
    cell = selector_of(cells, "path-env-1-py311-cpu4")
    said = "conformance run f/a --cell 'path:/my env/python@cpu4'"
    assert make_rerun_command("f/a", RunCase(), cell) == said
    assert selector_of((), "jax0.6.2-py311-cpu4") == "jax0.6.2-py311-cpu4"
