"""A run in numbers and in JSON."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from conformance.engine.plan import Plan
from conformance.engine.run_directory import RunDirectory
from conformance.engine.run_info import make_run_info
from conformance.engine.run_loader import LoadedRun
from conformance.model.outcome import Verdict
from conformance.model.record import ErrorInfo, IrRecord, IrStatus, Record
from conformance.report.report import Report
from conformance.report.summary import counts, group_irs
from conformance.report.terminal import COLOURS, cell_labels, print_report
from conformance.report.verdicts import LETTERS
from tests.engine.records import record
from tests.engine.worlds import job, planned

if TYPE_CHECKING:
    from conformance.model.run import Exclusion, RunCell


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
    assert list(counts(found).items()) == [("match", 1), ("new", 2)]


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


def test_a_change_on_every_platform_is_told_once() -> None:
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
    assert list(cell_labels(cells_of(made)).values()) == ["0.5.3", "0.6.0"]
    several = (planned("0.6.0"), planned("0.6.0", platform="tpu:v5e:2x2", x64=True))
    made = Plan(jobs=(), exclusions=(), cells=several)
    assert list(cell_labels(cells_of(made)).values()) == [
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
