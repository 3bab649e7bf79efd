"""Progress where there is no terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from conformance.cli import progress
from conformance.cli.progress import INTERVAL, LEAST, ProgressLines
from conformance.model.outcome import Verdict
from tests.engine.records import record

if TYPE_CHECKING:
    import pytest


def told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seconds: float, total: int
) -> list[str]:
    """Return the lines of forty jobs that take so many seconds each."""
    clock = [0.0]
    monkeypatch.setattr(progress, "INTERVAL", INTERVAL)
    monkeypatch.setattr(progress, "LEAST", LEAST)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    lines = ProgressLines(total)
    for number in range(40):
        clock[0] += seconds
        lines.take(record(f"f/{number}", "c", Verdict.MATCH))
    monkeypatch.undo()
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_a_line_at_each_tenth(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error, so that a pipe gets the report alone."""
    lines = told(capsys, monkeypatch, 3.0, 40)
    assert lines[0] == "4 of 40 jobs done: 4 match"
    assert len(lines) == 10


def test_a_line_every_half_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the jobs are many, or nobody knows how many there are."""
    assert told(capsys, monkeypatch, 10.0, 4000)[0] == "3 of 4,000 jobs done: 3 match"
    assert told(capsys, monkeypatch, 10.0, 0)[0] == "3 jobs done: 3 match"


def test_a_short_run_has_no_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is over before one is read."""
    assert told(capsys, monkeypatch, 0.05, 40) == []


def test_silence_is_told_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At first environments are made, and no job ends: a log says that the run goes on."""
    monkeypatch.setattr(progress, "INTERVAL", 0.01)
    said = ""
    with ProgressLines(40):
        while said.count("\n") < 2:
            said += capsys.readouterr().err
    assert set(said.splitlines()) == {"0 of 40 jobs done"}
