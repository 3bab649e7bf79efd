"""What the matrix draws: cells as segments, each thing said once."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.outcome import Conformance, Verdict
from conformance.report.site.matrix_data import (
    BEYOND,
    MOST_REASON,
    ROOM,
    Tables,
    find_title,
    make_matrix_data,
    make_segments,
)
from tests.builders import value
from tests.report.runs import ADD, CELLS, COPIED, MULTIPLY, Directory

from .examples import CPU, full_report

if TYPE_CHECKING:
    from pathlib import Path

EDGES = st.sampled_from(["", "", "", "r", "f", "c", "s"])
CELL = st.tuples(st.integers(0, 3), st.integers(0, 3), EDGES)


@given(st.lists(CELL, max_size=40))
def test_segments_are_the_cells_again(cells: list[tuple[int, int, str]]) -> None:
    """States and edges can be read back from segments, and no two could be one."""
    found = make_segments([(state, reason) for state, reason, _ in cells], [e for *_, e in cells])
    assert [s.state for s in found for _ in range(s.length)] == [state for state, *_ in cells]
    assert [e for s in found for e in (s.edge, *[""] * (s.length - 1))] == [e for *_, e in cells]
    for left, right in pairwise(found):
        assert right.edge or left.state != right.state


def test_a_segment_tells_its_first_reason() -> None:
    """Other words for the same state make no other segment."""
    (one,) = make_segments([(2, 5), (2, 6)], ["", ""])
    assert (one.length, one.reason) == (2, 5)


def test_reasons_are_kept_once_and_in_bounds() -> None:
    """Each once, each cut, and all of them within a room; what is beyond it says where to look."""
    tables = Tables()
    first = tables.number_reason("because")
    assert tables.number_reason("because") == first
    long = [f"{number:09d} " + "x" * 1000 for number in range(5000)]
    numbers = {tables.number_reason(text) for text in long}
    assert BEYOND in tables.reasons
    assert max(map(len, tables.reasons)) <= MOST_REASON + 40
    assert sum(map(len, tables.reasons)) <= ROOM + len(BEYOND)
    assert len(numbers) < len(long)


def test_cells_without_a_job_say_why(tmp_path: Path) -> None:
    """Left out for a reason, planned without a result, or never planned."""
    made = make_matrix_data(full_report(tmp_path))
    states = made["states"]
    shapes = next(f for f in made["families"] if f["name"] == "shapes")
    rows = {case["name"]: case["rows"] for case in shapes["cases"]}
    length, state, edge, reason = rows["shapes/broken"][1]
    assert (length, states[state][0], edge) == (4, "excluded", "")
    assert made["reasons"][reason].startswith("runs on cpu")
    assert states[rows["shapes/even"][1][1]][:2] == ["not_run", "not_run"]
    assert rows["shapes/killed"][0][:2] == [4, 0]
    assert states[0] == ["", "", "", 0, ""]


def test_changes_are_edges(tmp_path: Path) -> None:
    """What gates has an edge of its kind; where the optimised HLO alone changes there is none."""
    run = Directory(tmp_path)
    for cell, hlo in zip(CELLS, (ADD, COPIED, MULTIPLY), strict=True):
        run.job("f/hlo", cell, value(np.ones(2)), texts={"hlo": hlo}, facts={})
    for cell, good in zip(CELLS, (True, False, True), strict=True):
        seen = Conformance.CONFORMS if good else Conformance.DEVIATES
        run.job("f/back", cell, value(np.ones(2)), conformance=seen)
    (family,) = make_matrix_data(run.report())["families"]
    edges = {case["name"]: case["rows"][0][2::4] for case in family["cases"]}
    assert edges == {"f/back": ["", "r", "f"], "f/hlo": [""]}


def test_unexpected_is_a_state_of_its_own(tmp_path: Path) -> None:
    """What has no golden is unexpected unless it conforms."""
    run = Directory(tmp_path)
    run.job("f/a", CPU[0], verdict=Verdict.NEW)
    run.job("f/a", CPU[1], verdict=Verdict.NEW, conformance=Conformance.UNKNOWN)
    states = make_matrix_data(run.report())["states"]
    assert [state[3] for state in states[1:]] == [0, 1]


def test_title_is_the_first_line() -> None:
    """Of a docstring, made fit to be shown."""
    assert find_title("\n  A sum\tof \x00 parts.\nMore.") == "A sum of \u2400 parts."
    assert not find_title("")
