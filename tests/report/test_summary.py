"""A run in numbers and in JSON."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from conformance.engine.plan import Plan
from conformance.engine.runner import make_run_info
from conformance.engine.runs.directory import RunDirectory
from conformance.engine.runs.loader import LoadedRun
from conformance.model.outcome import Verdict
from conformance.model.record import ErrorInfo, IrRecord, IrStatus, Record
from conformance.model.run import Exclusion
from conformance.report.markdown import render_markdown
from conformance.report.report import Report
from conformance.report.summary import (
    count_verdicts,
    group_exclusions,
    group_irs,
    render_exclusions,
    render_notes,
)
from conformance.report.terminal import COLOURS, label_cells, print_report
from conformance.report.verdicts import LETTERS
from tests.builders import f32
from tests.engine.records import record
from tests.engine.worlds import job, planned
from tests.report.runs import Directory

if TYPE_CHECKING:
    from conformance.model.run import RunCell


def plan(*releases: str, exclusions: tuple[Exclusion, ...] = ()) -> Plan:
    """Return a plan of one job in a cell of each release."""
    cells = tuple(planned(release) for release in releases)
    return Plan(jobs=tuple(job(Path(), place=c) for c in cells), exclusions=exclusions, cells=cells)


def cells_of(plan: Plan) -> tuple[RunCell, ...]:
    """Return the cells of a plan, as a run tells of them."""
    return make_run_info(plan, request={}, matrix="", root=Path()).cells


def told(plan: Plan, records: list[Record]) -> Report:
    """Return the report on a run that came to these records."""
    info = make_run_info(plan, request={}, matrix="", root=Path())
    return Report((LoadedRun.of(RunDirectory(Path("run")), replace(info, plan=()), records),))


def printed(plan: Plan, records: list[Record], **more: Any) -> str:
    """Return the report as a wide terminal without colours shows it."""
    out = io.StringIO()
    console = Console(file=out, width=200, highlight=False)
    print_report(console, told(plan, records), directory=Path("run"), **more)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_counts_are_in_the_order_of_the_verdicts() -> None:
    """Only verdicts that occur."""
    found = [record("f/a", "c", v) for v in (Verdict.NEW, Verdict.MATCH, Verdict.NEW)]
    assert list(count_verdicts(found).items()) == [("match", 1), ("new", 2)]


CHANGED = IrRecord(status=IrStatus.CHANGED, changes=("semantic: a", "semantic: b x2"))


def test_irs_that_changed_alike_are_one_group() -> None:
    """What warns comes first, and is shown; what only informs is counted."""
    made = plan("0.5.3", "0.6.0")
    case = made.jobs[0].case.id
    irs = {"hlo": CHANGED, "stablehlo": CHANGED, "jaxpr": IrRecord(status=IrStatus.SAME)}
    records = [record(case, c.cell.id, Verdict.MATCH, ir=irs) for c in made.cells]
    groups = group_irs(told(made, records).cases, records)
    assert [(g.ir, len(g.records)) for g in groups] == [("stablehlo", 2), ("hlo", 2)]
    text = printed(made, records)
    assert f"warn stablehlo of {case} on " in text
    assert "is not its golden\n  semantic: a\n  semantic: b x2\n" in text
    assert "inform" not in text
    assert "6 of 6 IRs understood; hlo 2 changed; stablehlo 2 changed" in text


def test_a_cross_lowered_change_like_the_own_is_left_out() -> None:
    """That of the cell's own StableHLO; another one on another platform is told too."""
    made = plan("0.5.3", "0.6.0")
    case = made.jobs[0].case.id
    other = IrRecord(status=IrStatus.CHANGED, changes=("semantic: c",))
    irs = {"stablehlo": CHANGED, "stablehlo-tpu": CHANGED, "stablehlo-cuda": other}
    found = [record(case, made.cells[0].cell.id, Verdict.MATCH, ir=irs)]
    found += [record(case, made.cells[1].cell.id, Verdict.MATCH, ir={"stablehlo-tpu": CHANGED})]
    groups = [(g.ir, g.changes, len(g.records)) for g in group_irs(told(made, found).cases, found)]
    assert groups == [
        ("stablehlo", CHANGED.changes, 1),
        ("stablehlo-cuda", other.changes, 1),
        ("stablehlo-tpu", CHANGED.changes, 1),
    ]


def test_the_report_says_what_was_not_understood() -> None:
    """A poor reading must not pass for a good one."""
    made = plan("0.5.3")
    poor = IrRecord(not_understood={"attribute foo of custom-call": 2})
    text = printed(
        made, [record(made.jobs[0].case.id, made.cells[0].cell.id, Verdict.MATCH, ir={"hlo": poor})]
    )
    assert "0 of 1 IRs understood" in text


def test_every_verdict_has_a_letter_of_its_own() -> None:
    """Colours alone say nothing to some readers and in logs."""
    assert set(COLOURS) == set(LETTERS) == set(Verdict)
    assert len(set(LETTERS.values())) == len(Verdict)


def test_a_cell_is_called_by_its_release_while_that_is_enough() -> None:
    """Beside it stands what sets two cells apart."""
    made = plan("0.5.3", "0.6.0")
    assert list(label_cells(cells_of(made)).values()) == ["0.5.3", "0.6.0"]
    several = (planned("0.6.0"), planned("0.6.0", platform="tpu:v5e:2x2", x64=True))
    made = Plan(jobs=(), exclusions=(), cells=several)
    assert list(label_cells(cells_of(made)).values()) == [
        "0.6.0 cpu8",
        "0.6.0 tpu.v5e.2x2 x64",
    ]


def test_the_report_shows_families_by_release() -> None:
    """A row for each family, or each case; reasons and places of what is unexpected."""
    made = plan("0.5.3", "0.6.0")
    old, new = (cell.cell.id for cell in made.cells)
    where = ErrorInfo(type="E", message="m", where="f.py:3")
    records = [
        record("f/a", old, Verdict.MATCH, cached=True),
        record("f/b", old, Verdict.KNOWN),
        record("f/a", new, Verdict.REGRESSED, "out is 1, golden 2", "look there", error=where),
    ]
    text = printed(made, records)
    header, row, *_ = text.splitlines()
    assert header.split() == ["family", "0.5.3", "0.6.0"]
    assert row.split() == ["f", "1.", "1k", "1R"]
    assert f"regressed f/a on {new}\n  out is 1, golden 2\n  look there\n  at f.py:3" in text
    assert "1 match, 1 regressed, 1 known (1 unchanged since an earlier run)" in text
    assert text.endswith("results in run")
    rows = [line.split() for line in printed(made, records, verbose=True).splitlines()[1:3]]
    assert rows == [["f/a", ".R"], ["f/b", "k-"]]


def test_many_releases_are_the_rows() -> None:
    """The history of the families, a release a line; their names are broken to fit."""
    made = plan(*(f"0.5.{n}" for n in range(20)))
    cells = [cell.cell.id for cell in made.cells]
    records = [record("some_long_family/a", cell, Verdict.MATCH) for cell in cells]
    records.append(record("some_long_family/b", cells[7], Verdict.KNOWN))
    first, second, *rows = printed(made, records).splitlines()[:22]
    assert [first.split(), second.split()] == [["some_long"], ["cell", "family"]]
    assert [row.split() for row in rows[6:9]] == [
        ["0.5.6", "1."],
        ["0.5.7", "1.", "1k"],
        ["0.5.8", "1."],
    ]


def test_cases_over_many_releases_are_timelines() -> None:
    """A letter a cell, the worst of the row's; in blocks of what fits into the width."""
    made = plan(*(f"0.5.{n}" for n in range(100)))
    cells = [cell.cell.id for cell in made.cells]
    verdicts = [Verdict.KNOWN if n < 5 else Verdict.MATCH for n in range(100)]
    records = [record("f/a", c, v) for c, v in zip(cells, verdicts, strict=True)]
    records.append(record("f/a", cells[7], Verdict.REGRESSED))
    header, row, *_ = printed(made, records, verbose=True).splitlines()
    assert header.startswith("a letter a cell:  0.5.0 .. 0.5.")
    name, letters = row.split()
    assert (name, letters[:12]) == ("f/a", "kkkkk..R....")


NEAR = "took 9.1 s, near its timeout of 10 s"
CELL = "jax0.5.3-py311-cpu8"


def test_notes_of_the_longest_jobs_come_first(tmp_path: Path) -> None:
    """A run with five jobs near their timeouts."""
    run = Directory(tmp_path)
    for number in range(5):
        run.job(f"f/c{number}", CELL, f32(1), notes=(NEAR,), seconds={"job": float(number)})
    run.job("f/quick", CELL, f32(1))
    records = run.report().records
    assert render_notes(records) == [
        *(f"note: f/c{number} on {CELL} {NEAR}" for number in (4, 3, 2)),
        "note: and 2 more like these",
    ]


def test_notes_are_warnings_and_no_more(tmp_path: Path) -> None:
    """They stand in the summaries of a run in which nothing is unexpected."""
    run = Directory(tmp_path)
    run.job("f/slow", CELL, f32(1), notes=(NEAR,))
    report = run.report()
    out = io.StringIO()
    print_report(Console(file=out, width=80), report, directory=tmp_path)
    assert f"note: f/slow on {CELL} {NEAR}\n" in out.getvalue()
    text = render_markdown(report)
    assert "nothing unexpected" in text
    assert f"- `f/slow on {CELL} {NEAR}`" in text


def test_nothing_is_printed_without_notes(tmp_path: Path) -> None:
    """No section without a note."""
    run = Directory(tmp_path)
    run.job("f/quick", CELL, f32(1))
    assert render_notes(run.report().records) == []
    assert "To be known" not in render_markdown(run.report())


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


def test_the_name_of_a_cell_makes_no_other_reason() -> None:
    """The same need of cells that have different things."""
    reasons = ("requires flax>=1, the cell has 0.9", "requires flax>=1, the cell has 0.10")
    left_out = [Exclusion(case="f/a", cell=f"c{n}", reason=r) for n, r in enumerate(reasons)]
    (group,) = group_exclusions(left_out)
    assert (group.reason, group.cells) == ("requires flax>=1", ("c0", "c1"))
    assert render_exclusions(left_out) == ["excluded f/a on c0, c1: requires flax>=1"]
