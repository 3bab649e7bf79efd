"""What `kill -9` of a run and its workers leaves in TMPDIR is gone after the next run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest

from conformance.scratch import PREFIX
from tests.projects import case
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeProject

pytestmark = pytest.mark.cell


def test_the_next_run_removes_what_a_killed_one_left(
    new_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the orchestrator nor its worker could tidy up."""
    temporary, begun = tmp_path / "tmp", tmp_path / "begun"
    temporary.mkdir()
    body = f"import os, time\nopen({str(begun)!r}, 'w').close()\ntime.sleep(60)\nreturn 1"
    project = new_project({"cases/family/topic.py": case(body)})
    monkeypatch.setenv("TMPDIR", str(temporary))  # of the processes that are started
    run = project.start("run")
    wait_for(begun.exists)
    orchestrator = psutil.Process(run.pid)
    orchestrator.suspend()  # or it starts another worker, with a folder of its own
    for process in [*orchestrator.children(recursive=True), orchestrator]:
        process.kill()
    run.communicate()
    assert [path.name.startswith(PREFIX) for path in temporary.iterdir()] == [True]
    project.write({"cases/family/topic.py": case("return Observed(1, reference=1)")})
    again = project.start("run")
    assert (again.communicate(), again.returncode)[1] == 0
    assert list(temporary.iterdir()) == []
