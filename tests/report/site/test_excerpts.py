"""Patterns of a difference as a page shows them."""

from __future__ import annotations

from conformance.ir.change import Change
from conformance.report.site.excerpts import Excerpt, make_excerpt


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


def test_a_line_without_counterpart_stands_alone() -> None:
    """What was added has nothing on the left."""
    ((before, after),) = excerpt((), ("%r = f32[4] all-reduce(%x)",)).rows
    assert before is None
    assert after is not None
    assert [run.differs for run in after] == [True]


def test_the_title_says_what_and_how_often() -> None:
    """As in the terminal."""
    found = excerpt((), (), title="all-gather added", count=3, about="collective")
    assert found.title == "all-gather added (collective) x3"


def test_a_line_cannot_act() -> None:
    """Control codes of an IR are shown."""
    ((_, after),) = excerpt((), ("%r = \x1b[31m add(%x)",)).rows
    assert after is not None
    assert "".join(run.text for run in after) == "%r = ␛[31m add(%x)"


def test_files_are_told_from_the_project() -> None:
    """Wherever it stood when the job was run."""
    assert excerpt((), (), where="entry, /ci/7/cases/f/x.py:3").where == "entry, cases/f/x.py:3"
    assert excerpt((), (), where="entry, /home/me/lib/y.py:3").where == "entry, lib/y.py:3"
