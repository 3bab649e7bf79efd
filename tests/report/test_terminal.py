"""The report in a terminal: 80 columns, honest in a pipe, and nothing in it acts."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from conformance.model.outcome import Verdict
from conformance.model.record import IrRecord, IrStatus
from conformance.model.run import Exclusion, RunCell
from conformance.report.terminal import print_report
from tests.builders import f32
from tests.report.raising import LINES, RAISED
from tests.report.runs import CELLS, Directory

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.report.report import Report

ESCAPES = re.compile(r"\x1b\[[\d;]*m")
NASTY = "\x1b]0;title\x07\x1b[2J\u202e<b>\x00"


def made(folder: Path, releases: int, reason: str = "out is 2, golden 1") -> Report:
    """Return the report on a run of two families, in which something is unexpected."""
    run = Directory(folder)
    for number in range(releases):
        for case in ("shard_map_while/a", "linearize_transpose/b"):
            run.job(case, f"jax0.5.{number}-py311-cpu8", f32(1))
    run.job(
        "shard_map_while/c", "jax0.5.0-py311-cpu8", verdict=Verdict.REGRESSED, reasons=(reason,)
    )
    left_out = Exclusion(case="f/x", cell="jax0.5.0-py311-cpu8", reason=reason)
    return run.report(exclusions=(left_out,))


def printed(report: Report, folder: Path, *, terminal: bool = False, verbose: bool = False) -> str:
    """Return what is printed on a console of 80 columns."""
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False, force_terminal=terminal)
    print_report(console, report, directory=folder, verbose=verbose)
    return out.getvalue()


@pytest.mark.parametrize("releases", [2, 8, 40])
def test_it_fits_into_80_columns(tmp_path: Path, releases: int) -> None:
    """A table, a longer one, or timelines; only what is one long line may go on."""
    table = printed(made(tmp_path, releases), tmp_path).partition("match")[0]
    assert max(map(len, table.splitlines())) <= 80


def test_a_table_that_does_not_fit_is_a_timeline(tmp_path: Path) -> None:
    """No name and no number is cut short."""
    run = Directory(tmp_path)
    for flag in ("jax_use_shardy_partitioner=false", "jax_threefry_partitionable=false"):
        for case in ("shard_map_while/a", "linearize_transpose/b"):
            run.job(case, f"jax0.8.3-py311-cpu8-cfg.{flag}", f32(1))
    text = printed(run.report(), tmp_path)
    assert "…" not in text
    assert "linearize_transpose  .." in text


def test_a_pipe_gets_no_control_codes(tmp_path: Path) -> None:
    """Nor does a log of CI."""
    assert not set(printed(made(tmp_path, 2), tmp_path)) & {"\x1b", "\r", "\x07"}


def test_no_color_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bold may stay, colours go."""
    monkeypatch.setenv("TERM", "xterm-256color")
    coloured = ESCAPES.findall(printed(made(tmp_path / "a", 2), tmp_path, terminal=True))
    assert "\x1b[1;31m" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = ESCAPES.findall(printed(made(tmp_path / "b", 2), tmp_path, terminal=True))
    assert set(plain) <= {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[3m"}


def test_control_codes_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """A reason with control codes, marks that reorder, and megabytes."""
    text = printed(made(tmp_path, 2, NASTY + "x" * 10_000_000), tmp_path)
    assert not set(text) & {"\x1b", "\x07", "\x00", "\u202e"}
    assert "␛]0;title␇" in text
    assert len(text) < 20_000


def test_jobs_that_did_not_run_are_counted(tmp_path: Path) -> None:
    """A run that was killed is not whole."""
    run = Directory(tmp_path).job("f/a", "jax0.5.0-py311-cpu8", f32(1))
    report = run.report(plan=(("f/a", "jax0.5.0-py311-cpu8"), ("f/b", "jax0.5.0-py311-cpu8")))
    assert "1 match; 1 did not run" in printed(report, tmp_path)


def test_the_cases_of_a_root_cause_are_named(tmp_path: Path) -> None:
    """Ten of many; the reason is not hard-wrapped in a pipe."""
    run = Directory(tmp_path)
    for number in range(12):
        run.job(f"f/a{number:02}", "jax0.5.0-py311-cpu8", error=("ValueError", "no " * 60))
    bad = [replace(one, verdict=Verdict.REGRESSED, reasons=("no " * 60,)) for one in run.records]
    run.records = bad
    lines = printed(run.report(), tmp_path).splitlines()
    names = ", ".join(f"f/a{number:02}" for number in range(10))
    assert f"  {names} and 2 more" in lines
    assert f"  {'no ' * 60}" in lines


def test_ir_warnings_are_folded(tmp_path: Path) -> None:
    """Five groups are shown, the others counted; --verbose shows all."""
    run = Directory(tmp_path)
    for number in range(9):
        change = IrRecord(status=IrStatus.CHANGED, changes=(f"semantic: {number}",))
        run.job(f"f/a{number}", "jax0.5.0-py311-cpu8", ir={"stablehlo": change})
    report = run.report()
    text = printed(report, tmp_path)
    assert text.count("is not its golden") == 5
    assert "and 4 more IRs in 4 groups not as their goldens: --verbose lists them" in text
    assert printed(report, tmp_path, verbose=True).count("is not its golden") == 9


def test_the_exit_reason_and_notes_of_cells_are_printed(tmp_path: Path) -> None:
    """At the end, where one looks for it."""
    run = Directory(tmp_path).job("f/a", "jax0.5.0-py311-cpu8", f32(1))
    cell = RunCell(id="path-python", note="2 files of jax are not as installed")
    reason = "9 root causes have no linked issue"
    *_, note, status, _ = printed(
        run.report(exit=1, exit_reason=reason, cells=(cell,)), tmp_path
    ).splitlines()
    assert note == "note: path-python: 2 files of jax are not as installed"
    assert status == "exit status 1: 9 root causes have no linked issue"


@pytest.mark.parametrize(("verbose", "times"), [(False, 1), (True, 2)])
def test_tracebacks_follow_their_root_cause(tmp_path: Path, verbose: bool, times: int) -> None:
    """That of the first job; of each job whose own differs where every case is shown."""
    run = Directory(tmp_path)
    run.job("f/a", CELLS[0], verdict=Verdict.REGRESSED, reasons=("raised E",), **RAISED)
    other = {**RAISED, "texts": {"traceback": "Another"}}
    run.job("f/b", CELLS[0], verdict=Verdict.REGRESSED, reasons=("raised E",), **other)
    found = printed(run.report(), tmp_path, verbose=verbose)
    assert "\n".join(f"  {line}" for line in LINES) in found
    assert found.index("raised E") < found.index(LINES[0])
    assert found.count(LINES[0]) == times
    assert ("    Another" in found) is verbose
