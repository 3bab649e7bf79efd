"""Runs read back: complete ones, killed ones, and folders that are no run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.engine.runs.directory import CorruptRunError, Results, RunDirectory
from conformance.engine.runs.loader import find_runs, load_readable_runs, load_run
from conformance.errors import UsageError
from conformance.model.outcome import Verdict
from conformance.model.record import ErrorInfo
from tests.builders import f32
from tests.report.runs import ADD, CELLS, Directory

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_round_trips(tmp_path: Path) -> None:
    """Its name, description, records and artifacts."""
    run = load_run(Directory(tmp_path / "r1").job("f/a", CELLS[0], f32(1)).written(matrix="smoke"))
    assert (run.id, run.info.matrix, len(run.records)) == ("r1", "smoke", 1)
    assert run.blobs.get(run.records[0].artifacts["value"])


def test_the_last_record_of_a_job_counts(tmp_path: Path) -> None:
    """A resumed run appends a record of a job that it judges again."""
    made = Directory(tmp_path).job("f/a", CELLS[0], f32(1), verdict=Verdict.NEW)
    run = load_run(made.job("f/a", CELLS[0], f32(1), verdict=Verdict.MATCH).written())
    assert [record.verdict for record in run.records] == [Verdict.MATCH]


def test_an_error_names_its_file_relative_to_the_project(tmp_path: Path) -> None:
    """Other files keep their path."""
    places = ("/home/me/project/cases/f/a.py:3", "/usr/lib/x.py:1")
    made = Directory(tmp_path)
    for number, where in enumerate(places):
        made.job(f"f/{number}", CELLS[0], error=("E", "m"))
        error = ErrorInfo(type="E", message="m", where=where)
        made.records[-1] = replace(made.records[-1], error=error)
    run = load_run(made.written(root="/home/me/project"))
    assert [record.error and record.error.where for record in run.records] == [
        "cases/f/a.py:3",
        "/usr/lib/x.py:1",
    ]


def test_equal_facts_are_one_object(tmp_path: Path) -> None:
    """Thousands of jobs compile to the same program."""
    made = Directory(tmp_path)
    for cell in CELLS:
        made.job("f/a", cell, f32(1), texts={"hlo": ADD})
    records = load_run(made.written()).records
    assert records[0].facts
    assert len({id(record.facts) for record in records}) == 1


def test_a_run_killed_before_its_first_job(tmp_path: Path) -> None:
    """It has its plan."""
    run = load_run(Directory(tmp_path).written(plan=(("f/a", CELLS[0]),), finished="", exit=None))
    assert (run.records, run.info.exit) == ((), None)


def test_a_folder_without_any_job_is_no_run(tmp_path: Path) -> None:
    """Another program may write a `run.json`."""
    (tmp_path / "run.json").write_text('{"name": "another tool"}')
    with pytest.raises(CorruptRunError, match=r": expected a run, got a folder without any job$"):
        load_run(RunDirectory(tmp_path))


def test_runs_of_a_folder_in_order(tmp_path: Path) -> None:
    """A run directory is itself a run; other folders are skipped."""
    for name in ("20260102-a", "20260101-b"):
        Directory(tmp_path / name).job("f/a", CELLS[0]).written()
    (tmp_path / "notes").mkdir()
    assert [run.id for run in find_runs(tmp_path)] == ["20260101-b", "20260102-a"]
    assert [run.id for run in find_runs(tmp_path / "20260102-a")] == ["20260102-a"]
    with pytest.raises(UsageError, match="notes: expected the directory of a run, or a folder"):
        find_runs(tmp_path / "notes")


def test_a_broken_run_does_not_hide_the_others(tmp_path: Path) -> None:
    """A message names its file and line."""
    good = Directory(tmp_path / "good").job("f/a", CELLS[0]).written()
    broken = Directory(tmp_path / "broken").job("f/a", CELLS[0]).written()
    Results(broken).close()
    (broken.path / "results.jsonl").write_bytes(b'{"case": 1}\n')
    runs, problems = load_readable_runs([broken, good])
    assert [run.id for run in runs] == ["good"]
    assert len(problems) == 1
    assert "results.jsonl:1: expected a record: " in problems[0]
