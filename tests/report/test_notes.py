"""What is told of how jobs ran: in a terminal, in Markdown."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from conformance.report.markdown import render_markdown
from conformance.report.notes import render_notes
from conformance.report.terminal import print_report
from tests.builders import f32
from tests.report.runs import Directory

if TYPE_CHECKING:
    from pathlib import Path

NEAR = "took 9.1 s, near its timeout of 10 s"
CELL = "jax0.5.3-py311-cpu8"


def test_the_longest_are_told_first_and_the_others_counted(tmp_path: Path) -> None:
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


def test_nothing_is_told_of_nothing(tmp_path: Path) -> None:
    """No section without a note."""
    run = Directory(tmp_path)
    run.job("f/quick", CELL, f32(1))
    assert render_notes(run.report().records) == []
    assert "To be known" not in render_markdown(run.report())
