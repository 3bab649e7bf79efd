"""Commands with a shared cache: a second machine installs and runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.runs.directory import RunDirectory
from tests.projects import CELL, GOOD, SMOKE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project

pytestmark = pytest.mark.project({"matrix/smoke.toml": SMOKE, "cases/family/topic.py": GOOD})


@pytest.mark.cell
def test_a_second_machine_runs_nothing(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its artifacts are fetched when they are read; after pruning, a command names the remedy."""
    url = f"file://{tmp_path}/shared"
    first = project.run("run", "--all", "--cache", url, "--cache-write", "--no-report")
    assert (first.code, "2 new" in first.out) == (0, True)
    other = tmp_path / "other-cache"
    monkeypatch.setenv("CONFORMANCE_CACHE", str(other))
    second = project.run(
        "run", "--all", "--cache", url, "--no-report", "--run", str(tmp_path / "second")
    )
    assert "2 new (2 unchanged since an earlier run)" in second.out
    assert not (other / "envs").exists()
    run = RunDirectory(tmp_path / "second")
    assert {path.name for path in run.blobs.folder.iterdir()} == {"origin"}
    assert project.run("accept", "--run", str(run.path), "--dry-run").code == 0
    stats = project.run("cache", "stats", "--cache", url, "--json", "-").json
    assert [(row["namespace"], row["entries"]) for row in stats if row["cache"] == url] == [
        ("actions", 3), ("content", 2),
    ]  # fmt: skip
    assert project.run("cache", "verify", "--shared", "--cache", url).code == 0
    pruned = project.run("cache", "prune", "--shared", "--max-size", "0", "--cache", url)
    # Contents of the last day are kept: they may belong to an upload that is still running.
    assert "removed 3 actions and 0 contents" in pruned.out
    assert CELL in (run.path / "results.jsonl").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--cache", "s3://key:secret@bucket"], "the URL contains credentials"),
        (["run", "--cache", "bucket"], "unknown scheme"),
        (["run", "--cache-write"], "--cache-write: no shared cache to write to"),
        (["cache", "prune", "--shared"], "--shared: no shared cache is configured"),
        (["cache", "prune", "--max-size", "1"], "--max-size: limits results"),
    ],
)
def test_a_wrong_location_is_refused_before_anything_runs(
    project: Project, arguments: list[str], message: str
) -> None:
    """With one line and exit status 2; no run directory is left."""
    ending = project.run(*arguments)
    assert (ending.code, message in ending.error) == (2, True)
    assert "secret" not in ending.error
    assert not (project.path / "reports").exists()
