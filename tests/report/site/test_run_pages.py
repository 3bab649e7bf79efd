"""A run's page: cells, time, and what was not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.model.run import Exclusion
from conformance.report.site.addresses import run_page
from conformance.report.site.run_pages import make_cell_rows, render_run_pages, sum_stage_seconds
from tests.builders import f32
from tests.report.runs import CELLS, Directory
from tests.report.site.pages import Page

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.runs.loader import LoadedRun


def page(run: LoadedRun) -> Page:
    """Return the page of a run."""
    return Page(dict(render_run_pages([run]))[run_page(run.id)])


def test_when_where_and_how_it_ended(tmp_path: Path) -> None:
    """Times, exit status, host, matrix, and verdicts in numbers."""
    made = Directory(tmp_path / "r1").job("f/a", CELLS[0], f32(1))
    found = page(made.loaded(matrix="smoke", exit=1, host={"system": "Linux"}))
    for words in ("Run r1", "after 90 s", "exit status 1", "matrix smoke", "1: 1 match", "Linux"):
        assert words in found.text


def test_a_run_that_did_not_end(tmp_path: Path) -> None:
    """It has no duration and no exit status, and says so."""
    found = page(Directory(tmp_path).job("f/a", CELLS[0]).loaded(finished="", exit=None))
    assert "it did not end" in found.text
    assert "exit status none" in found.text


def test_a_run_in_which_the_clock_was_set_back(tmp_path: Path) -> None:
    """It ended before it began: how long it took is not known."""
    found = page(Directory(tmp_path).job("f/a", CELLS[0]).loaded(finished="2026-04-28T10:00:00Z"))
    assert " after " not in found.text
    assert "did not end" not in found.text


def test_a_cell_has_its_identity_and_its_time_by_stage(tmp_path: Path) -> None:
    """Identity, lock and packages; seconds by stage of the jobs that ran."""
    made = Directory(tmp_path).job("f/a", CELLS[0], f32(1), max_rss_bytes=300 * 2**20)
    run = made.job("f/b", CELLS[0], f32(1), cached=True).loaded(
        identities={CELLS[0]: {"device": "cpu", "versions": {}}}
    )
    (row,) = make_cell_rows(run)
    assert (row.jobs, row.cached, row.largest_rss) == (2, 1, 300)
    assert row.seconds == {"trace": 0.25, "compile": 0.5, "other": 0.25}
    assert row.total == 1.0
    found = page(run)
    assert "device cpu" in found.text
    assert "numpy 2.0.2" in found.text


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({}, {}),
        ({"job": 2.0}, {"other": 2.0}),
        ({"trace": 1.0, "job": 0.5}, {"trace": 1.0}),
    ],
)
def test_time_outside_all_stages_is_other(
    tmp_path: Path, seconds: dict[str, float], expected: dict[str, float]
) -> None:
    """Starting and ending a process; never less than nothing."""
    made = Directory(tmp_path).job("f/a", CELLS[0], seconds=seconds)
    assert sum_stage_seconds(made.records) == expected


def test_the_slowest_jobs(tmp_path: Path) -> None:
    """Those that ran, the slowest first, each with the stage it spent its time in."""
    made = Directory(tmp_path).job("f/quick", CELLS[0], seconds={"job": 1.0, "trace": 0.9})
    made.job("f/slow", CELLS[0], seconds={"job": 9.0, "compile": 8.0})
    made.job("f/cached", CELLS[0], seconds={"job": 99.0}, cached=True)
    slowest = page(made.loaded()).text.partition("Slowest jobs")[2]
    assert slowest.index("f/slow") < slowest.index("f/quick")
    assert "compile 8.00" in slowest
    assert "f/cached" not in slowest


def test_exclusions_are_listed_with_their_reasons(tmp_path: Path) -> None:
    """A few of the cases are named."""
    left_out = [Exclusion(case=f"f/{n}", cell=CELLS[0], reason="needs flax") for n in range(5)]
    made = Directory(tmp_path).job("f/a", CELLS[0], f32(1))
    found = page(made.loaded(exclusions=tuple(left_out)))
    assert "f/0, f/1, f/2 and 2 more" in found.text
    assert found.unclosed == []
