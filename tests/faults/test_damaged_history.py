"""A history that is damaged or locked, by `conformance history`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.model.outcome import Verdict
from tests.engine.written_runs import A, record, write
from tests.store.test_faults import HOLDS, damaged

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project


@pytest.fixture
def project(project: Project) -> Project:
    """A project with two runs in its history."""
    for number, verdict in enumerate((Verdict.MATCH, Verdict.REGRESSED), 1):
        run = project.path / "reports" / "runs" / f"night-{number}"
        write(run, record("f/a", A, verdict, reasons=("it differs",)))
        assert project.run("history", "add", run).code == 0
    return project


@pytest.fixture
def file(project: Project) -> Path:
    """The file of its history."""
    return project.path / "reports" / "history.db"


@pytest.mark.parametrize("how", ["cut", "emptied", "overwritten", "something else"])
@pytest.mark.parametrize(
    "command", [("runs", "--json", "-"), ("regressions", "--json", "-"), ("f/a",)]
)
def test_the_last_good_backup_is_used_and_that_is_said(
    project: Project, file: Path, how: str, command: tuple[str, ...]
) -> None:
    """On standard error, so that what a machine reads is whole; from then on nothing is wrong."""
    before = project.run("history", *command)
    damaged(file, how)
    ending = project.run("history", *command)
    assert (ending.code, ending.out) == (0, before.out)
    assert f"{file.name}: damaged: " in ending.error
    assert "its last good backup is used, the file is kept as" in ending.error
    assert project.run("history", *command) == before
    assert file.with_name("history.db.damaged").exists()


def test_without_a_good_backup_it_is_said_what_to_do(project: Project, file: Path) -> None:
    """Exit status of what is wrong with a file, and no trace."""
    damaged(file, "cut")
    for path in file.parent.glob("history.db?*"):
        path.unlink()
    for path in file.parent.glob(".history.db*"):
        path.unlink()
    ending = project.run("history", "runs")
    assert ending.code != 0
    assert "expected a good backup at" in ending.error
    assert "add the runs" in ending.error


def test_another_process_that_writes_is_waited_for_by_who_reads_too(
    project: Project, file: Path
) -> None:
    """As long as it takes within reason; then the answer is right."""
    before = project.run("history", "runs", "--json", "-")
    holds = HOLDS.replace("time.sleep(60)", "time.sleep(2)")
    with subprocess.Popen([sys.executable, "-c", holds, file], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert project.run("history", "runs", "--json", "-") == before
