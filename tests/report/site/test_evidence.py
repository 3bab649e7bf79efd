"""Patterns of a difference as a page shows them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from conformance.ir.change import Change
from conformance.report.site.evidence import BINS, Excerpt, make_excerpt, make_value_plots
from tests.builders import f32, leaf, python, value


def excerpt(before: tuple[str, ...], after: tuple[str, ...], **more: object) -> Excerpt:
    """Return the excerpt of a replaced instruction."""
    made = {"kind": "replaced", "count": 1, "severity": "semantic", "title": "add"} | more
    change = Change(before=before, after=after, **made)  # type: ignore[arg-type]
    return make_excerpt(change, "f/a", ["/home/me"])


def test_the_words_that_differ_are_marked() -> None:
    """Names of results tell nothing, and are not."""
    found = excerpt(("%a.1 = f32[4] add(%x, %y)",), ("%b.2 = f32[4] multiply(%x, %y)",))
    ((before, after),) = found.rows
    assert before is not None
    assert after is not None
    assert [run.text for run in before if run.differs] == ["add"]
    assert [run.text for run in after if run.differs] == ["multiply"]
    assert "".join(run.text for run in after) == "%b.2 = f32[4] multiply(%x, %y)"


def test_a_line_without_a_counterpart_is_marked_as_a_whole() -> None:
    """What was added has nothing on the left."""
    ((before, after),) = excerpt((), ("%r = f32[4] all-reduce(%x)",)).rows
    assert before is None
    assert after is not None
    assert [run.differs for run in after] == [True]


def test_the_title_says_what_and_how_often() -> None:
    """As in the terminal."""
    found = excerpt((), (), title="all-gather added", count=3, about="collective")
    assert found.title == "all-gather added (collective) x3"


def test_hostile_lines_are_sanitized() -> None:
    """Control codes of an IR are shown."""
    ((_, after),) = excerpt((), ("%r = \x1b[31m add(%x)",)).rows
    assert after is not None
    assert "".join(run.text for run in after) == "%r = ␛[31m add(%x)"


def test_paths_are_relative_to_the_project() -> None:
    """Wherever it stood when the job was run."""
    assert excerpt((), (), where="entry, /ci/7/cases/f/x.py:3").where == "entry, cases/f/x.py:3"
    assert excerpt((), (), where="entry, /home/me/lib/y.py:3").where == "entry, lib/y.py:3"


def test_a_plot_says_where_and_how_far() -> None:
    """One ULP in the third element of four."""
    before = np.ones(4, np.float32)
    after = before.copy()
    after[2] = np.nextafter(after[2], np.float32(2))
    (plot,) = make_value_plots(value(before), value(after))
    assert (plot.heights, plot.unit, plot.differing, plot.size) == ((0, 0, 1, 0), "ulp", 1, 4)
    assert (plot.largest, plot.bars) == (1, (0, 0, 1, 0))


def test_many_elements_share_columns() -> None:
    """The largest distance of a column is its height; shape and counts are of the whole."""
    before = np.zeros((100, 10), np.int32)
    after = before.copy()
    after[99, 9], after[99, 8] = 7, 3
    (plot,) = make_value_plots(value(before), value(after))
    assert (len(plot.heights), plot.heights[-1], plot.unit) == (BINS, 7, "absolute")
    assert (plot.shape, plot.differing, plot.size) == ((100, 10), 2, 1000)


def test_small_distances_are_visible_next_to_large_ones() -> None:
    """Bars are logarithmic."""
    (plot,) = make_value_plots(value(np.zeros(2, np.int64)), value(np.array([1, 1_000_000])))
    small, large = plot.bars
    assert (large, small > 0.04) == (1, True)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_number_lost_is_the_farthest(wrong: float) -> None:
    """NaN and infinity against a number."""
    (plot,) = make_value_plots(f32(1, 2), value(np.array([1, wrong], np.float32)))
    assert plot.bars[1] == 1
    assert plot.bars[0] == 0


def test_complex_numbers_and_narrow_types() -> None:
    """The worse part counts."""
    (plot,) = make_value_plots(value(np.array([1 + 1j, 2])), value(np.array([1 + 1j, 2 + 1e-300j])))
    assert plot.heights[0] == 0
    assert plot.largest > 0
    assert math.isfinite(plot.largest)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f32(1, 2), f32(1, 2)),
        (f32(1), f32(2)),
        (f32(1, 2), f32(1, 2, 3)),
        (f32(1, 2), value(np.array([1, 2], np.float64))),
        (value(python(1)), value(python(2))),
        (value(leaf([1, 2], "out[0]")), value(leaf([1, 3], "out[1]"))),
    ],
    ids=["equal", "one number", "shapes", "dtypes", "python", "paths"],
)
def test_leaves_that_cannot_be_compared_have_no_plot(before: object, after: object) -> None:
    """Equal leaves, single numbers, and leaves that cannot be set against each other."""
    assert make_value_plots(before, after) == ()  # type: ignore[arg-type]
