"""The facts in which two IRs differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.report.ir_differences import (
    StyledLine,
    align_lines,
    compare_facts,
    fit_line,
    split_words,
    strip_number,
    style_line,
)


@pytest.mark.parametrize(
    ("a", "b", "rows"),
    [
        ({"ops": {"add": 1}}, {"ops": {"add": 1}}, []),
        ({"ops": {"add": 1}}, {"ops": {}}, ["ops add: 1 -> 0"]),
        ({"collectives": {}}, {"collectives": {"psum": 2}}, ["! collectives psum: 0 -> 2"]),
        (
            {"dtypes": ["f32"]},
            {"dtypes": ["s32"]},
            ["! dtypes f32: yes -> no", "! dtypes s32: no -> yes"],
        ),
        ({"host_compute": False}, {"host_compute": True}, ["! host_compute: no -> yes"]),
        (
            {"results": [{"type": "f32[]"}]},
            {"results": [{"type": "f32[]", "memory": "host"}]},
            ["! results[0] memory: not stated -> host"],
        ),
        ({"results": []}, {"results": [{"type": "f32[]"}]}, ["! results: 0 of them -> 1"]),
    ],
)
def test_differing_facts_become_rows(a: dict[str, Any], b: dict[str, Any], rows: list[str]) -> None:
    """What was there before and after, and whether a run fails of it."""
    found = compare_facts(a, b)
    assert [f"{'! ' * r.gates}{r.name}: {r.before} -> {r.after}" for r in found] == rows


def test_facts_that_gate_come_first() -> None:
    """The rest is for the curious."""
    a = {"ops": {"add": 1}, "custom_calls": {}}
    b = {"ops": {"add": 2}, "custom_calls": {"topk": 1}}
    assert [row.fact for row in compare_facts(a, b)] == ["custom_calls", "ops"]


def test_a_sharding_that_one_side_omits_does_not_gate() -> None:
    """Two that differ do."""
    said, other, unsaid = ({"parameters": [{"sharding": s} if s else {}]} for s in ("x", "y", ""))
    assert [row.gates for row in compare_facts(said, unsaid)] == [False]
    assert [row.gates for row in compare_facts(said, other)] == [True]


lines = st.lists(st.sampled_from(["%a.1 = f32[] add(%b)", "%c = s32[4] tanh(%d)", "x"]), max_size=5)


@pytest.mark.parametrize(
    ("word", "said"),
    [("%add.12", "%add"), ("%12", "%"), ("%p_0.3.clone.1", "%p"), ("f32", "f32"), ("12", "12")],
)
def test_the_number_of_a_name_means_nothing(word: str, said: str) -> None:
    """Another compiler counts otherwise."""
    assert strip_number(word) == said


@given(st.text())
def test_joined_words_are_the_line(line: str) -> None:
    """None is lost."""
    assert "".join(split_words(line)) == line


@given(lines, lines)
def test_every_line_has_one_row(before: list[str], after: list[str]) -> None:
    """In the order of its text."""
    rows = align_lines(before, after)
    assert [n for n, _ in rows if n is not None] == list(range(len(before)))
    assert [m for _, m in rows if m is not None] == list(range(len(after)))


def test_lines_that_are_alike_share_a_row() -> None:
    """What is new stands alone."""
    before = ["%1 = f32[4] constant(2)", "%2 = f32[4] divide(%0, %1)"]
    after = ["%8 = s32[4] constant(2)", "%9 = f32[4] convert(%8)", "%10 = f32[4] divide(%0, %9)"]
    assert align_lines(before, after) == [(0, 0), (None, 1), (1, 2)]


def test_only_differing_words_are_styled() -> None:
    """The name of the result never is; a line without a counterpart is as a whole."""
    line = style_line("ROOT %a.1 = f32[4] add(%x.3)", "%b.2 = s32[4] add(%x.4)", "red")
    assert line.text.plain == "ROOT %a.1 = f32[4] add(%x.3)"
    assert [line.text.plain[s.start : s.end] for s in line.text.spans if s.style] == ["f32"]
    assert line.first == line.text.plain.index("f32")
    assert style_line("%a = f32[]", None, "red").text.style == "red"


@pytest.mark.parametrize(("first", "seen"), [(0, False), (150, True)])
def test_a_cut_line_shows_its_first_difference(first: int, seen: bool) -> None:
    """The middle gives way to it; the beginning says what it is."""
    line = style_line("%add.1 = f32[4] add(" + "x, " * 43 + "HERE, " + "y, " * 20, None, "")
    cut = fit_line(StyledLine(line.text, first), 80).plain
    assert len(cut) <= 80
    assert cut.startswith("%add.1 = f32[4] add(")
    assert cut.endswith("...")
    assert ("HERE" in cut) == seen


def test_a_line_that_fits_is_not_cut() -> None:
    """Nor changed."""
    assert fit_line(style_line("short", None, ""), 5).plain == "short"
