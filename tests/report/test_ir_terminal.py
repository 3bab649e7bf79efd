"""Differences of IRs as a terminal shows them, and as a pipe gets them."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from conformance.engine.job_comparison import IrComparison, IrLevel, JobComparison, group_by_changes
from conformance.ir.change import Change, IrDiff
from conformance.model.outcome import Outcome
from conformance.report.ir_terminal import Detail, DiffReport

CHANGE = Change(
    kind="changed", count=48, severity="semantic", title="dimensions of reduce",
    about="value order", where="while body, jit(f)/sum, f.py:3",
    before=("%reduce.1 = f32[4] reduce(%x.1), dimensions={0}",),
    after=("%reduce.9 = f32[4] reduce(%x.2), dimensions={1}",),
)  # fmt: skip
COSMETIC = Change(kind="written", count=1, severity="cosmetic", title="header: name")


def diff(*changes: Change, **more: Any) -> IrDiff:
    """Return a difference of two HLO modules, equal if nothing changed."""
    equal = not changes
    return IrDiff(kind="hlo", changes=changes, **{"equal": equal, "neutral_equal": equal, **more})


def jobs(name: str, *found: IrComparison, said: str = "", cell: str = "c") -> JobComparison:
    """Return two jobs of a case in the same cell."""
    ok = (Outcome.OK, Outcome.OK)
    return JobComparison(case=name, cells=(cell, cell), outcomes=ok, difference=said, irs=found)


def hlo(found: IrDiff) -> IrComparison:
    """Return a compared HLO."""
    return IrComparison(ir="hlo", diff=found)


def printed(
    show: Any, detail: Detail = Detail.SHORT, level: IrLevel = IrLevel.EXACT, **more: Any
) -> str:
    """Return what a report prints, without the white space at the ends of lines."""
    out = io.StringIO()
    console = Console(file=out, highlight=False, **{"width": 100, **more})
    show(DiffReport(console, level, detail))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def texts(found: IrDiff, **more: Any) -> str:
    """Return how a difference of two texts is printed."""
    return printed(lambda report: report.print_texts(("a", "b"), found), **more)


def test_a_pattern_with_its_lines() -> None:
    """Severity in words, count, what it concerns, where, before and after."""
    assert texts(diff(CHANGE, matched=9, changed=1)) == (
        "a -> b\n\nhlo  1 pattern: 1 semantic\n"
        "  100% aligned: 9 matched, 1 changed, 0 unmatched\n\n"
        "  semantic x48  dimensions of reduce (value order)\n"
        "    in while body, jit(f)/sum, f.py:3\n"
        "    - %reduce.1 = f32[4] reduce(%x.1), dimensions={0}\n"
        "    + %reduce.9 = f32[4] reduce(%x.2), dimensions={1}"
    )


@pytest.mark.parametrize(("width", "beside"), [(80, False), (120, False), (140, True)])
def test_wide_terminals_show_both_sides_in_columns(width: int, beside: bool) -> None:
    """Else one below the other; no line is longer than the terminal."""
    out = texts(diff(CHANGE), width=width, force_terminal=True, no_color=True)
    (row,) = (line for line in out.splitlines() if "%reduce.1 " in line)
    assert ("%reduce.9 " in row) == beside
    assert max(map(len, out.splitlines())) <= width


def test_only_differing_words_have_a_colour() -> None:
    """The number of a name is no difference."""
    out = texts(diff(CHANGE), force_terminal=True)
    assert (
        "\x1b[31m- \x1b[0m%reduce.1 = f32[4] reduce(%x.1), dimensions={\x1b[1;31m0\x1b[0m}" in out
    )


def test_a_pipe_gets_whole_lines() -> None:
    """However narrow it claims to be."""
    long = Change(kind="added", count=1, severity="semantic", title="t", after=("x" * 200,))
    assert f"    + {'x' * 200}" in texts(diff(long), width=80).splitlines()
    terminal = texts(diff(long), width=80, force_terminal=True, no_color=True)
    assert "x" * 71 + "..." in terminal


@pytest.mark.parametrize(("detail", "lines"), [(Detail.SHORT, 4), (Detail.FULL, 6)])
def test_only_full_detail_shows_all_lines(detail: Detail, lines: int) -> None:
    """It is said how many are left out."""
    many = Change(
        kind="added",
        count=1,
        severity="semantic",
        title="t",
        after=tuple(f"x{n}" for n in range(6)),
    )
    out = texts(diff(many), detail=detail)
    assert out.count("    + x") == lines
    assert ("    ... 2 more (--full)" in out) == (lines == 4)


def test_detail_patterns_shows_a_line_for_each_pattern() -> None:
    """A line each."""
    out = texts(diff(CHANGE, COSMETIC), detail=Detail.PATTERNS)
    assert out.splitlines()[-2:] == [
        "  semantic x48  dimensions of reduce (value order)",
        "  cosmetic  header: name",
    ]


def test_many_patterns_are_counted() -> None:
    """The gravest with their lines, then a line each, then their number."""
    many = diff(*[CHANGE] * 30)
    out = texts(many)
    assert (out.count("- %reduce.1"), out.count("dimensions of reduce (")) == (6, 20)
    assert "\n  ... 10 more patterns (--full)\n" in f"{out}\n"
    assert texts(many, detail=Detail.FULL).count("- %reduce.1") == 30
    assert texts(many, detail=Detail.PATTERNS).count("dimensions of reduce (") == 30


def test_a_poor_alignment_is_warned_of() -> None:
    """Its patterns are guesses; so is what was not understood."""
    out = texts(diff(CHANGE, matched=3, unmatched=7, not_understood={"x": 2, "y": 1}))
    assert "warning: only 30% of the instructions correspond, the patterns below may" in out
    assert "compared as text only: x x2, y\n" in out
    assert "warning" not in texts(diff(CHANGE, matched=7, unmatched=3))


def test_facts_that_gate_are_shown() -> None:
    """The others are counted, and shown when all is."""
    facts = {
        "a": {"collectives": {"all-reduce": 2}, "ops": {"add": 1}},
        "b": {"collectives": {"all-reduce": 1}, "ops": {"add": 3}},
    }
    out = texts(diff(CHANGE, facts=facts))
    assert "facts that differ, 1 more with --full\n    gates  collectives all-reduce  2 -> 1" in out
    assert "ops add" not in out
    assert "           ops add                 1 -> 3" in texts(
        diff(CHANGE, facts=facts), detail=Detail.FULL
    )


def test_irs_that_do_the_same_work_are_named_so() -> None:
    """On the level `neutral` that is equal, and what is grave is shown all the same."""
    found = diff(CHANGE, COSMETIC, neutral_equal=True)
    assert "hlo  same work, grouped or written otherwise\n" in texts(found)
    assert "header: name" in texts(found)
    out = texts(found, level=IrLevel.CANONICAL)
    assert "header: name" not in out
    assert "dimensions of reduce" in out


def test_two_jobs_are_compared_in_full() -> None:
    """How they ended, each IR, and why one could not be compared."""
    job = jobs(
        "f/a", hlo(diff()), IrComparison(ir="jaxpr", problem="only the first has one"), said="x"
    )
    assert printed(lambda report: report.print_job(job)) == (
        "f/a on c\ndiffer: x\n\nhlo  equal\n\njaxpr  only the first has one"
    )


def test_many_jobs_are_grouped_by_change() -> None:
    """The same set of changes is shown once; what is equal is counted."""
    same = [jobs(f"f/{n}", hlo(diff(CHANGE))) for n in range(5)]
    rest = [
        jobs("f/x", hlo(diff()), said="ok -> raised"),
        jobs("f/y", IrComparison(ir="hlo", problem="p")),
    ]
    every = [*same, *rest]
    out = printed(lambda r: r.print_jobs(("A", "B"), every, group_by_changes(every, IrLevel.EXACT)))
    assert out.startswith("A -> B\n6 pairs of IRs: 1 equal, 5 different\n")
    assert "\nnot compared in 1 job: hlo: p\n  f/y\n" in out
    assert "\nhlo, in 5 jobs:\n  f/0\n  f/1\n  f/2\n  ... 2 more jobs (--full)\n" in out
    assert out.count("dimensions of reduce") == 1


def test_jobs_of_several_cells_are_named_with_their_cells() -> None:
    """A case alone says not which."""
    every = [jobs("f/a", hlo(diff(CHANGE)), cell=cell) for cell in ("c", "d")]
    out = printed(lambda r: r.print_jobs(("A", "B"), every, group_by_changes(every, IrLevel.EXACT)))
    assert "\n  f/a on c\n  f/a on d\n" in out


def test_jobs_of_only_one_side_are_listed() -> None:
    """A few of them, and how many more."""
    assert printed(
        lambda report: report.print_unmatched("A", [f"f/{n} on c" for n in range(4)])
    ) == ("\n4 jobs only in A:\n  f/0 on c\n  f/1 on c\n  f/2 on c\n  ... 1 more job (--full)")
    assert not printed(lambda report: report.print_unmatched("A", []))
