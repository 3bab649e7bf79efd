"""Progress lines where there is no terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from conformance.cli import progress_lines
from conformance.cli.progress_lines import INTERVAL, LEAST, ProgressLines
from conformance.model.outcome import Verdict
from tests.engine.records import record

if TYPE_CHECKING:
    import pytest


def print_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seconds: float, total: int
) -> list[str]:
    """Return the progress lines of forty jobs that take some seconds each."""
    clock = [0.0]
    monkeypatch.setattr(progress_lines, "INTERVAL", INTERVAL)
    monkeypatch.setattr(progress_lines, "LEAST", LEAST)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    lines = ProgressLines(total)
    for number in range(40):
        clock[0] += seconds
        lines.take(record(f"f/{number}", "c", Verdict.MATCH))
    monkeypatch.undo()
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_progress_prints_a_line_for_each_tenth_of_the_jobs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error, so that a pipe gets only the report."""
    lines = print_lines(capsys, monkeypatch, 3.0, 40)
    assert lines[0] == "4 of 40 jobs done: 4 match"
    assert len(lines) == 10


def test_progress_prints_a_line_every_half_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there are many jobs, or their number is unknown."""
    assert print_lines(capsys, monkeypatch, 10.0, 4000)[0] == "3 of 4,000 jobs done: 3 match"
    assert print_lines(capsys, monkeypatch, 10.0, 0)[0] == "3 jobs done: 3 match"


def test_short_run_prints_no_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends before anybody would read them."""
    assert print_lines(capsys, monkeypatch, 0.05, 40) == []


def test_progress_counts_unexpected_results_that_wait_for_another_attempt(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until they are over."""
    monkeypatch.setattr(progress_lines, "INTERVAL", 0.0)
    lines = ProgressLines(40)
    wrong = record("f/wrong", "c", Verdict.REGRESSED)
    lines.rerun(wrong)
    lines.take(record("f/good", "c", Verdict.MATCH))
    lines.take(wrong)
    assert capsys.readouterr().err.splitlines() == [
        "1 of 40 jobs done: 1 match; 1 unexpected, to be rerun",
        "2 of 40 jobs done: 1 match, 1 regressed",
    ]


def test_progress_counts_each_phase_from_zero(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search knows the number of its next jobs alone."""
    monkeypatch.setattr(progress_lines, "INTERVAL", 0.0)
    lines = ProgressLines()
    for phase, total in {"both ends": 2, "releases between": 1}.items():
        lines.begin(phase, total)
        for number in range(total):
            lines.take(record(f"f/{number}", "c", Verdict.MATCH))
    assert capsys.readouterr().err.splitlines() == [
        "both ends: 1 of 2 jobs done: 1 match",
        "both ends: 2 of 2 jobs done: 2 match",
        "releases between: 1 of 1 job done: 1 match",
    ]


def test_progress_prints_a_line_while_no_job_ends(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Provisioning comes first; a log should show that the run is alive."""
    monkeypatch.setattr(progress_lines, "INTERVAL", 0.01)
    output = ""
    with ProgressLines(40):
        while output.count("\n") < 2:
            output += capsys.readouterr().err
    assert set(output.splitlines()) == {"0 of 40 jobs done"}
