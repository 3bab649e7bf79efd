"""Templates filled in: what comes from elsewhere is text."""

from __future__ import annotations

from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from conformance.report.site.rendering import highlight_python, mark_code
from conformance.report.text import sanitize


def test_backticks_make_code() -> None:
    """As docstrings use them; a lone one stays."""
    assert mark_code("by a `pmean` & `x`") == "by a <code>pmean</code> &amp; <code>x</code>"
    assert mark_code("it`s") == "it`s"


@given(st.text())
def test_prose_holds_no_markup_of_the_text(text: str) -> None:
    """Whatever it is: but for our own tags and the backticks it is the escaped text."""
    shown = mark_code(text).replace("<code>", "").replace("</code>", "")
    assert "<" not in shown
    assert unescape(shown).replace("`", "") == sanitize(text).replace("`", "")


def test_source_is_highlighted_and_escaped() -> None:
    """Nothing in it is markup."""
    shown = highlight_python("def f():\n    return '<script>'\n")
    assert '<span class="k">def</span>' in shown
    assert "<script>" not in shown
