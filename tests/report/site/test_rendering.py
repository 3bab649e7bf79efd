"""Templates filled in: what comes from elsewhere is text."""

from __future__ import annotations

from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from conformance.report.site.rendering import prose, python
from conformance.report.text import sanitize


def test_backticks_make_code() -> None:
    """As docstrings use them; a lone one stays."""
    assert prose("by a `pmean` & `x`") == "by a <code>pmean</code> &amp; <code>x</code>"
    assert prose("it`s") == "it`s"


@given(st.text())
def test_prose_holds_no_markup_of_the_text(text: str) -> None:
    """Whatever it is: but for our own tags and the backticks it is the escaped text."""
    shown = prose(text).replace("<code>", "").replace("</code>", "")
    assert "<" not in shown
    assert unescape(shown).replace("`", "") == sanitize(text).replace("`", "")


def test_source_is_highlighted_and_escaped() -> None:
    """Nothing in it is markup."""
    shown = python("def f():\n    return '<script>'\n")
    assert '<span class="k">def</span>' in shown
    assert "<script>" not in shown
