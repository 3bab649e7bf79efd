"""`conformance diff` of tests of suites: two cells of a run, and two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.model.run import RunCase, RunCell, RunSuite
from tests.engine.runs.test_suite_changes import record
from tests.engine.written_runs import write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.engine.runs.directory import RunDirectory
    from conformance.model.record import Record
    from tests.projects import Project


OLD, NEW = "jax0.5.3-py311-cpu8", "jax0.6.2-py311-cpu8"
CELLS = tuple(RunCell(id=cell, versions={"jax": cell[3:8]}) for cell in (OLD, NEW))


def write_suite_run(
    path: Path, endings: Mapping[str, tuple[str, ...]], *, complete: bool
) -> RunDirectory:
    """Write a run of a suite, given the outcomes of each test in the two cells."""
    records: list[Record] = []
    for test, kinds in endings.items():
        pairs = zip(kinds, (OLD, NEW), strict=False)
        records += [record(kind, test, cell=cell) for kind, cell in pairs]
    cases = {test: RunCase(kind="test") for test in endings}
    suite = RunSuite(name="suite", complete=complete)
    return write(path, *records, cells=CELLS, cases=cases, suite=suite)


def test_diff_suite_between_two_cells(project: Project) -> None:
    """Tests that only one cell has are listed; exit 1 if a test of both differs."""
    runs = project.path / "reports" / "runs"
    endings = {
        "t.py::same": ("passes", "passes"), "t.py::breaks": ("passes", "fails"),
        "t.py::new": ("not there", "fails"),
    }  # fmt: skip
    run = write_suite_run(runs / "1", endings, complete=True)
    ending = project.run("diff", "--run", run.id, "--cell", "0.5.3", "--cell", "0.6.2")
    assert ending.code == 1
    assert f"{OLD} -> {NEW}\n3 tests: 1 regressed, 1 added, 1 same" in ending.out
    some = (
        "diff",
        "t.py::new",
        "t.py::same",
        "--run",
        run.id,
        "--cell",
        "0.5.3",
        "--cell",
        "0.6.2",
    )
    ending = project.run(*some, "--json", "-")
    assert (ending.code, ending.json["counts"]["added"], ending.json["equal"]) == (0, 1, True)


@pytest.mark.parametrize("complete", [True, False])
def test_missing_test_of_a_complete_run_counts_as_removed(
    project: Project, *, complete: bool
) -> None:
    """In a run of a part of the suite it counts as not compared."""
    one = {"t.py::same": ("passes",), "t.py::gone": ("passes",), "t.py::fixed": ("fails",)}
    other = {"t.py::same": ("passes",), "t.py::new": ("fails",), "t.py::fixed": ("passes",)}
    a = write_suite_run(project.path / "reports" / "runs" / "1", one, complete=complete)
    b = write_suite_run(project.path / "reports" / "runs" / "2", other, complete=complete)
    ending = project.run("diff", a.id, b.id, "--json", "-")
    counts = {change: count for change, count in ending.json["counts"].items() if count}
    alone = {"added": 1, "removed": 1} if complete else {"not_compared": 2}
    assert (ending.code, counts) == (1, {"fixed": 1, "same": 1, **alone})
    assert project.run("diff", a.id, a.id).code == 0
