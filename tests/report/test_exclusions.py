"""What was left out, in a few lines and by reason."""

from __future__ import annotations

import pytest

from conformance.model.run import Exclusion
from conformance.report.exclusions import group_exclusions, render_exclusions


@pytest.mark.parametrize(
    ("pairs", "lines"),
    [
        ([("", "c1")], ["excluded all cases on c1: why"]),
        ([("f/a", "c1"), ("f/a", "c2")], ["excluded f/a on c1, c2: why"]),
        ([("f/a", "c1"), ("f/b", "c1")], ["excluded 2 cases on c1: why"]),
        ([("f/a", f"c{n}") for n in range(5)], ["excluded f/a on c0, c1, c2 and 2 more: why"]),
    ],
)
def test_exclusions_in_a_few_lines(pairs: list[tuple[str, str]], lines: list[str]) -> None:
    """Grouped by what is left out, where, and why."""
    found = [Exclusion(case=case, cell=cell, reason="why") for case, cell in pairs]
    assert render_exclusions(found) == lines


def test_the_reason_that_leaves_out_the_most_comes_first() -> None:
    """Each with how many pairs it leaves out, and of what."""
    left_out = [Exclusion(case=f"f/{n}", cell="c", reason="needs flax") for n in range(5)]
    left_out.append(Exclusion(case="", cell="jax0.4.30-py313-cpu8", reason="no wheels"))
    many, one = group_exclusions(left_out)
    assert (many.reason, many.pairs, len(many.cases)) == ("needs flax", 5, 5)
    assert one.cases == ("every case",)


def test_what_is_said_of_a_cell_makes_no_other_reason() -> None:
    """The same need of cells that have different things."""
    reasons = ("requires flax>=1, the cell has 0.9", "requires flax>=1, the cell has 0.10")
    left_out = [Exclusion(case="f/a", cell=f"c{n}", reason=r) for n, r in enumerate(reasons)]
    (group,) = group_exclusions(left_out)
    assert (group.reason, group.cells) == ("requires flax>=1", ("c0", "c1"))
    assert render_exclusions(left_out) == ["excluded f/a on c0, c1: requires flax>=1"]
