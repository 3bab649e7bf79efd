"""The runs of a project: names of new runs, and how recorded ones are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.runs.directory import RunDirectory
from conformance.engine.runs.project_runs import ProjectRuns
from conformance.errors import UsageError
from conformance.model.run import RunInfo

if TYPE_CHECKING:
    from pathlib import Path


def test_new_runs_have_new_names_and_the_latest_is_found(tmp_path: Path) -> None:
    """Names sort by time; a folder without `run.json` is no run."""
    with pytest.raises(UsageError, match="holds no run"):
        ProjectRuns(tmp_path).find_latest()
    assert ProjectRuns(tmp_path).allocate().path != ProjectRuns(tmp_path).allocate().path
    runs = tmp_path / "reports" / "runs"
    for name in ("20260101-000000-aaaa", "20260102-000000-aaaa"):
        RunDirectory(runs / name).write_run(RunInfo())
    (runs / "20260103-000000-aaaa").mkdir()
    assert ProjectRuns(tmp_path).find_latest().id == "20260102-000000-aaaa"


def test_a_run_is_named_by_its_directory_or_its_id(tmp_path: Path) -> None:
    """A directory wins over an id; an unknown name gets the nearest id as a suggestion."""
    runs = ProjectRuns(tmp_path)
    recorded = RunDirectory(runs.folder / "20260101-000000-aaaa")
    recorded.write_run(RunInfo())
    assert runs.open() == runs.open(recorded.id) == runs.open(str(recorded.path)) == recorded
    assert runs.find("20260101-000000-bbbb") is None
    with pytest.raises(UsageError, match=r"no such run \(did you mean '20260101-000000-aaaa'\?\)"):
        runs.open("20260101-000000-bbbb")
    # Whoever reads it learns which of its files is missing.
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    assert runs.find(str(damaged)) is None
    assert runs.open(str(damaged)).path == damaged
    assert "folder without run.json" in runs.describe_missing(str(damaged))
