"""Brackets, quotes and lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.ir.hlo.lexing import HloTextError, find_closing, split_parts, unquote
from tests.ir.hlo.spelling import quoted


def test_commas_within_brackets_and_quotes_split_nothing() -> None:
    """Only commas outside of both separate parts."""
    assert list(split_parts('a, {b, (c)} ,"d, }", e=[f, g]h')) == [
        "a",
        "{b, (c)}",
        '"d, }"',
        "e=[f, g]h",
    ]
    assert list(split_parts(" ")) == []


@pytest.mark.parametrize("text", ["(", "(]", '("', "({)}", "(" * 101 + ")" * 101])
def test_an_unclosed_bracket_is_an_error(text: str) -> None:
    """Also one closed by another kind, or nested too deeply."""
    with pytest.raises(HloTextError):
        find_closing(text, 0)


def test_escapes_are_those_of_c() -> None:
    """Octal and hexadecimal codes too."""
    assert unquote(r'"a\"b\\c\n\303\x41\'"') == "a\"b\\c\n\xc3A'"


@given(st.text())
def test_quoted_text_reads_back(text: str) -> None:
    """Any characters."""
    assert unquote(quoted(text)) == text
