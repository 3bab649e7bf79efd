"""Two nights started at once: the same project, the same cache, the same store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import ENVIRONMENT, GOOD, HEAD, without_progress
from tests.waiting import PATIENCE, wait_for

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.faults.conftest import MakeProject

pytestmark = pytest.mark.cell
WAITS = """\
@probe()
def waits(env):
    import pathlib, time
    here, go = pathlib.Path({here!r}), pathlib.Path({go!r})
    here.touch()
    while not go.exists():
        time.sleep(0.02)
    return Observed(np.int32(1), reference=np.int32(1))
"""


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end of a command; return its exit status and its errors."""
    _, error = process.communicate(timeout=PATIENCE)
    return process.returncode, without_progress(error)


def test_one_directory_takes_one_run(new_project: MakeProject, tmp_path: Path) -> None:
    """Whoever comes second is told so, also with --resume, and changes nothing."""
    here, go, run = tmp_path / "here", tmp_path / "go", tmp_path / "run"
    waits = WAITS.format(here=str(here), go=str(go))
    project = new_project({"cases/fam/topic.py": f"{HEAD}\n\n\n{waits}"})
    first = project.start("run", "--run", run)
    wait_for(here.exists)
    before = (run / "run.json").read_bytes()
    ending = project.run("run", "--run", run)
    assert (ending.code, ending.error) == (
        2, f"{run} is not empty; continue it with --resume, or name another folder",
    )  # fmt: skip
    ending = project.run("run", "--resume", "--run", run)
    said = "another run is writing to it; wait for its end, or name another folder with --run"
    assert (ending.code, ending.error) == (2, f"{run}: {said}")
    assert (run / "run.json").read_bytes() == before
    go.touch()
    assert end_of(first) == (0, "")
    assert len((run / "results.jsonl").read_bytes().splitlines()) == 1
    assert project.run("run", "--resume", "--run", run).code == 0


def test_at_the_same_moment_one_of_them_has_the_directory(
    new_project: MakeProject, tmp_path: Path
) -> None:
    """Both find it empty when they begin to plan; one refuses before it writes."""
    project = new_project({"cases/fam/topic.py": GOOD})
    run = tmp_path / "run"
    both = [project.start("run", "--fresh", "--run", run) for _ in range(2)]
    ends = sorted(end_of(process) for process in both)
    assert [code for code, _ in ends] == [0, 2]
    assert str(run) in ends[1][1]
    assert len((run / "results.jsonl").read_bytes().splitlines()) == 2


@pytest.mark.long
def test_nights_with_one_cache_and_one_store(
    new_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its own directory and is right; the environment is made once; both are history."""
    cache = tmp_path / "empty"
    monkeypatch.setenv("CONFORMANCE_CACHE", str(cache))
    project = new_project({"cases/fam/topic.py": GOOD})
    both = [project.start("run", "--fresh") for _ in range(2)]
    assert [end_of(process) for process in both] == [(0, "")] * 2
    first, second = project.runs
    (made,) = (path.name for path in (cache / "envs").iterdir() if path.is_dir())
    assert made.startswith(f"{ENVIRONMENT}-")
    adding = [project.start("history", "add", run) for run in (second, first, second)]
    assert sorted(end_of(process) for process in adding) == [(0, "")] * 3
    runs = project.run("history", "runs", "--json", "-").json
    assert sorted(run["name"] for run in runs) == [first.name, second.name]
    assert sorted(run["number"] for run in runs) == [1, 2]
