"""A report as data: JSON, and JSON Lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from conformance.model.outcome import ExitCode, Verdict
from conformance.model.run import Exclusion
from conformance.report.report import Report
from conformance.report.report_json import find_exit_code, make_report_json, render_json_lines
from tests.builders import f32
from tests.report.runs import CELLS, Directory

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW, _ = CELLS


def two_runs(tmp_path: Path) -> Report:
    """Return a run of two cells, and a later one of the newer cell alone."""
    first = Directory(tmp_path / "r1").job("f/a", OLD, f32(1)).job("f/a", NEW, f32(1))
    left_out = Exclusion(case="f/b", cell=OLD, reason="why")
    again = Directory(tmp_path / "r2").job("f/a", NEW, f32(2), verdict=Verdict.REGRESSED)
    runs = (first.loaded(exclusions=(left_out,), identities={OLD: {"python": "3.11"}}),)
    planned = (("f/a", NEW), ("f/c", NEW))
    return Report((*runs, again.loaded(plan=planned)), ("r3: broken",))


def test_the_json_of_a_report_holds_its_contract(tmp_path: Path) -> None:
    """That of a run, over all of them, and what only several runs and releases can tell."""
    data = json.loads(msgspec.json.encode(make_report_json(two_runs(tmp_path))))
    assert (data["run"], data["exit"], data["counts"]) == ("r2", 1, {"match": 1, "regressed": 1})
    versions = {"jax": "0.6.2", "numpy": "2.0.2"}
    assert [cell["identity"] for cell in data["cells"]] == [
        {"python": "3.11"},
        {"versions": versions},
    ]
    assert [(r["cell"], r["verdict"]) for r in data["results"]] == [
        (OLD, "match"),
        (NEW, "regressed"),
    ]
    assert data["exclusions"] == [{"case": "f/b", "cell": OLD, "reason": "why"}]
    assert data["irs"] == {"seen": 0, "understood": 0}
    assert (data["runs"], data["problems"]) == (["r1", "r2"], ["r3: broken"])
    assert data["not_run"] == [{"case": "f/c", "cell": NEW}]
    assert data["transitions"] == [
        {
            "case": "f/a",
            "track": "cpu8",
            "kind": "changed",
            "changed": ["value"],
            "before": "0.5.3",
            "after": "0.6.2",
        }
    ]


def test_a_line_for_each_job_names_its_run(tmp_path: Path) -> None:
    """The last run's, of a job that several hold."""
    lines = [json.loads(line) for line in render_json_lines(two_runs(tmp_path))]
    assert [(line["run"], line["case"], line["cell"]) for line in lines] == [
        ("r1", "f/a", OLD),
        ("r2", "f/a", NEW),
    ]


def test_names_that_are_not_unicode_are_written(tmp_path: Path) -> None:
    """A run's folder may be called anything."""
    run = Directory(tmp_path / "r\udcff").job("f/a", OLD, f32(1)).loaded()
    report = Report((run,), ("\udcfe: cannot be read",))
    data = json.loads(msgspec.json.encode(make_report_json(report)))
    assert (data["runs"], data["problems"]) == (["r<U+DCFF>"], ["<U+DCFE>: cannot be read"])
    assert [json.loads(line)["run"] for line in render_json_lines(report)] == ["r<U+DCFF>"]


@pytest.mark.parametrize(
    ("verdict", "missing", "problems", "code"),
    [
        (Verdict.MATCH, False, (), ExitCode.OK),
        (Verdict.MATCH, True, (), ExitCode.INFRA),
        (Verdict.MATCH, True, ("broken",), ExitCode.USAGE),
        (Verdict.REGRESSED, True, ("broken",), ExitCode.UNEXPECTED),
        (Verdict.EXCLUDED, False, (), ExitCode.NOTHING),
    ],
)
def test_unreadable_runs_and_missing_jobs_are_no_success(
    tmp_path: Path, verdict: Verdict, missing: bool, problems: tuple[str, ...], code: ExitCode
) -> None:
    """A killed run, or one that cannot be read, says nothing of what it lacks."""
    plan = (("f/a", OLD), *([("f/b", OLD)] if missing else []))
    run = Directory(tmp_path / "r").job("f/a", OLD, verdict=verdict).loaded(plan=plan)
    assert find_exit_code(Report((run,), problems)) is code


def test_no_runs_are_a_report_too() -> None:
    """Of nothing."""
    data = make_report_json(Report((), ("broken",)))
    assert (data["run"], data["exit"], data["results"]) == ("", ExitCode.USAGE, ())
