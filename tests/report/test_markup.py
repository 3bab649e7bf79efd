"""Markdown, as a reader of it understands it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from conformance.report.markup import Section, SectionEntry, fence, fit_sections, to_code, to_row
from conformance.report.text import flatten, sanitize

READER = MarkdownIt("commonmark").enable("table")
TEXT = st.text(
    st.one_of(st.sampled_from("`|\\ \n#@<*_~[]"), st.characters(codec=None)), max_size=40
)


def spans(markdown: str) -> list[str]:
    """Return every code span and block of a text, in order."""
    found = []
    for token in READER.parse(markdown):
        if token.type == "fence":
            found.append(token.content)
        found += [inner.content for inner in token.children or () if inner.type == "code_inline"]
    return found


@given(TEXT)
def test_any_text_is_one_span(text: str) -> None:
    """Whatever it holds, within a sentence."""
    assert spans(f"before {to_code(text)} after") == [flatten(text) or "(empty)"]


@given(TEXT)
def test_any_text_is_one_block(text: str) -> None:
    """Its lines are kept, and what follows is no part of it."""
    assert spans(f"{fence(text)}\n\nafter `this`") == [f"{sanitize(text)}\n", "this"]


@given(st.lists(TEXT, min_size=6, max_size=6))
def test_any_texts_are_a_table(texts: list[str]) -> None:
    """Two rows of three, though strokes divide cells."""
    rows = [to_row(map(to_code, part), (5, 5, 5)) for part in (texts[:3], texts[3:])]
    table = "\n".join([rows[0], to_row(["-"] * 3, (5, 5, 5)), rows[1]])
    assert spans(table) == [flatten(text) or "(empty)" for text in texts]
    kinds = [token.type for token in READER.parse(table)]
    assert (kinds[0], kinds.count("th_open"), kinds.count("td_open")) == ("table_open", 3, 3)


def test_long_texts_are_cut() -> None:
    """With a word on how much is left out."""
    assert to_code("x" * 1_000, 10) == f"`{'x' * 10} ... 990 more characters`"
    assert len(fence("x" * 10_000_000)) < 2_000


def entry(text: str, jobs: int = 0) -> SectionEntry:
    """Return an entry that tells a text."""
    return SectionEntry(lambda: text, jobs)


SECTIONS = [
    Section(head="## One", entries=[entry("x" * 90, 2)] * 40, noun="ones", gap="\n\n", share=0.5),
    Section(head="## Two", entries=[entry("y" * 40)] * 9, noun="twos", opening="t", end="end"),
]


@pytest.mark.parametrize("most", [600, 900, 2_000, 4_000, 5_000])
def test_sections_fit_into_the_given_characters(most: int) -> None:
    """Entries are told as a whole, and what is left out is counted."""
    text = fit_sections("# Head", SECTIONS, most)
    assert len(text) <= most
    ones, twos = (sum(line == sign for line in text.split("\n")) for sign in ("x" * 90, "y" * 40))
    assert text.count("x") == ones * 90
    if ones < 40:
        left = 40 - ones
        assert f"*{left} more ones are left out here, which show {2 * left} jobs.*" in text
    if twos < 9:
        assert f"*{9 - twos} more twos are left out here.*" in text
    assert text.endswith("\n\nend\n")


def test_sections_that_fit_are_whole() -> None:
    """Nothing is said of what is left out."""
    text = fit_sections("# Head", SECTIONS, 10_000)
    assert "left out" not in text
    assert "## Two\n\nt\nyyyy" in text
    assert (text.count("x" * 90), text.count("y" * 40)) == (40, 9)


def test_room_that_a_section_leaves_is_for_the_next() -> None:
    """A share is no claim."""
    small = Section(head="## One", entries=[entry("x")], noun="ones", share=0.9)
    large = Section(head="## Two", entries=[entry("y" * 9)] * 100, noun="twos")
    assert "left out" not in fit_sections("# Head", [small, large], 1_500)
