"""Lines of two IRs against each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.report.ir_lines import Styled, aligned, fitted, meaning, styled, words

lines = st.lists(st.sampled_from(["%a.1 = f32[] add(%b)", "%c = s32[4] tanh(%d)", "x"]), max_size=5)


@pytest.mark.parametrize(
    ("word", "said"),
    [("%add.12", "%add"), ("%12", "%"), ("%p_0.3.clone.1", "%p"), ("f32", "f32"), ("12", "12")],
)
def test_the_number_of_a_name_means_nothing(word: str, said: str) -> None:
    """Another compiler counts otherwise."""
    assert meaning(word) == said


@given(st.text())
def test_words_are_the_whole_line(line: str) -> None:
    """None is lost."""
    assert "".join(words(line)) == line


@given(lines, lines)
def test_every_line_has_one_row(before: list[str], after: list[str]) -> None:
    """In the order of its text."""
    rows = aligned(before, after)
    assert [n for n, _ in rows if n is not None] == list(range(len(before)))
    assert [m for _, m in rows if m is not None] == list(range(len(after)))


def test_lines_that_are_alike_share_a_row() -> None:
    """What is new stands alone."""
    before = ["%1 = f32[4] constant(2)", "%2 = f32[4] divide(%0, %1)"]
    after = ["%8 = s32[4] constant(2)", "%9 = f32[4] convert(%8)", "%10 = f32[4] divide(%0, %9)"]
    assert aligned(before, after) == [(0, 0), (None, 1), (1, 2)]


def test_only_what_differs_is_styled() -> None:
    """The name of the result never is; a line without a counterpart is as a whole."""
    line = styled("ROOT %a.1 = f32[4] add(%x.3)", "%b.2 = s32[4] add(%x.4)", "red")
    assert line.text.plain == "ROOT %a.1 = f32[4] add(%x.3)"
    assert [line.text.plain[s.start : s.end] for s in line.text.spans if s.style] == ["f32"]
    assert line.first == line.text.plain.index("f32")
    assert styled("%a = f32[]", None, "red").text.style == "red"


@pytest.mark.parametrize(("first", "seen"), [(0, False), (150, True)])
def test_a_cut_line_shows_its_first_difference(first: int, seen: bool) -> None:
    """The middle gives way to it; the beginning says what it is."""
    line = styled("%add.1 = f32[4] add(" + "x, " * 43 + "HERE, " + "y, " * 20, None, "")
    cut = fitted(Styled(line.text, first), 80).plain
    assert len(cut) <= 80
    assert cut.startswith("%add.1 = f32[4] add(")
    assert cut.endswith("...")
    assert ("HERE" in cut) == seen


def test_a_line_that_fits_is_not_cut() -> None:
    """Nor changed."""
    assert fitted(styled("short", None, ""), 5).plain == "short"
