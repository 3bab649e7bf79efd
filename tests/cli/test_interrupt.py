"""Interrupted runs exit with 130, leave no process, and can be resumed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from conformance.cells.package_index import TIMEOUT
from tests.projects import GOOD, HEAD, without_progress
from tests.waiting import PATIENCE, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.projects import Project


SLOW_JOB = """\
@probe()
def slow(env):
    import pathlib, time
    go, here = pathlib.Path("TMP_PATH/go"), pathlib.Path("TMP_PATH/in-job")
    here.touch()
    while not go.exists():
        time.sleep(0.02)
    return Observed(1, reference=1)
"""
SLOW_IMPORT = """\
import pathlib, time
pathlib.Path("TMP_PATH/in-import").touch()
go = pathlib.Path("TMP_PATH/go")
while not go.exists():
    time.sleep(0.02)
"""


def _find_marked_processes(mark: str) -> list[psutil.Process]:
    """Return the processes that carry a mark in their environment."""
    found = []
    for other in psutil.process_iter():
        try:
            if other.pid != os.getpid() and other.environ().get("THIS_TEST") == mark:
                found.append(other)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An environment variable that every process started by the test inherits."""
    monkeypatch.setenv("THIS_TEST", str(tmp_path))
    monkeypatch.setenv("CONFORMANCE_PASS_ENV", "THIS_TEST")
    return str(tmp_path)


pytestmark = [pytest.mark.cell, pytest.mark.project({
    "cases/fam/a.py": GOOD,
    "cases/fam/job.py": f"{HEAD}\n\n\n{SLOW_JOB}",
    "cases/late/late.py": f"{HEAD}\n{SLOW_IMPORT}\n\n@probe()\ndef late(env):\n    return 1",
})]  # fmt: skip
"""Two quick cases, one slow to import, and one that ends when it is told to."""


def _interrupt(
    project: Project, mark: str, number: int, until: Callable[[], object], *arguments: str
) -> str:
    """Send a signal to a run after a condition holds; return its standard error."""
    process = project.start("run", "--fresh", *arguments)
    try:
        wait_for(lambda: process.poll() is not None or until())
        process.send_signal(number)
        _, error = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130, error
    assert "Traceback" not in error
    wait_for(lambda: not _find_marked_processes(mark))
    return without_progress(error)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt_during_a_job_keeps_finished_jobs(
    project: Project, mark: str, tmp_path: Path, number: int
) -> None:
    """The interrupted job is not recorded; resuming runs it."""

    def both_recorded() -> bool:  # a job has ended a moment before that is written down
        return (tmp_path / "in-job").exists() and len(project.newest.read_records()) == 2

    error = _interrupt(project, mark, number, both_recorded, "--jobs", "1", "fam")
    directory = project.newest
    line = "conformance: interrupted; continue with: conformance run --resume --run {}\n"
    assert error == line.format(directory.path)
    before = (directory.path / "results.jsonl").read_bytes()
    assert {record.case for record in directory.read_records()} == {"fam/one", "fam/two"}
    (tmp_path / "go").touch()
    resumed = project.run("run", "--resume", "--run", directory.path, "--json", "-")
    assert (resumed.code, resumed.json["counts"]) == (0, {"new": 3})
    after = (directory.path / "results.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(after.splitlines()) == 3


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_during_import_of_a_case_file(
    project: Project, mark: str, tmp_path: Path, number: int
) -> None:
    """An import that never ends does not keep the run alive."""
    _interrupt(project, mark, number, (tmp_path / "in-import").exists, "late")
    (tmp_path / "go").touch()
    assert project.run("run", "--resume").code == 1
    assert [record.verdict for record in project.newest.read_records()] == ["new"]


def test_interrupt_during_provisioning_leaves_no_partial_environment(
    project: Project, mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partial environment is not taken for a finished one, and uv is stopped."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("CONFORMANCE_CACHE", str(cache))
    monkeypatch.setenv("UV_LINK_MODE", "copy")
    begun = re.compile(r".*/envs/jax[^/]*/lib.*")
    _interrupt(
        project,
        mark,
        signal.SIGINT,
        lambda: any(begun.match(str(path)) for path in cache.glob("envs/*/lib")),
        "fam/one",
    )
    assert project.run("run", "--resume").code == 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("locked", [True, False])
def test_interrupt_does_not_wait_for_a_hanging_index(
    project: Project,
    mark: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    locked: bool,
) -> None:
    """Neither for a lock nor for an environment: the process ends before a request would."""
    if not locked:
        for lock in (project.path / "matrix" / "locks").iterdir():
            lock.unlink()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.delenv("CONFORMANCE_INDEX_URL", raising=False)
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{silent.getsockname()[1]}/")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
        monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
        silent.settimeout(PATIENCE)
        called: list[float] = []
        with contextlib.ExitStack() as calls:

            def is_called() -> bool:
                calls.enter_context(silent.accept()[0])
                called.append(time.monotonic())
                return True

            error = _interrupt(project, mark, signal.SIGTERM, is_called)
    assert ("continue with" in error) == locked
    assert time.monotonic() - called[0] < TIMEOUT


def test_interrupt_during_planning_offers_no_resume(
    project: Project, mark: str, tmp_path: Path
) -> None:
    """No run directory exists yet."""
    hung = tmp_path / "python"
    hung.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexec sleep 8\n")
    hung.chmod(0o755)
    error = _interrupt(
        project, mark, signal.SIGTERM, (tmp_path / "asked").exists, "--cell", f"path:{hung}"
    )
    assert error.strip() == "conformance: interrupted"
    assert project.runs == []


def test_killed_run_leaves_no_process_and_resumes(
    project: Project, mark: str, tmp_path: Path
) -> None:
    """After SIGKILL the workers end, too."""
    process = project.start("run", "--fresh", "--jobs", "1", "fam")
    wait_for((tmp_path / "in-job").exists)
    process.kill()
    process.communicate(timeout=PATIENCE)
    wait_for(lambda: not _find_marked_processes(mark))
    (tmp_path / "go").touch()
    assert project.run("run", "--resume").code == 0
    assert len(project.newest.read_records()) == 3


@pytest.mark.long
def test_two_runs_share_an_empty_cache(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both succeed, and the environment is made once."""
    (tmp_path / "go").touch()
    cache = tmp_path / "cache"
    monkeypatch.setenv("CONFORMANCE_CACHE", str(cache))
    both = [project.start("run", "fam", "--json", "-") for _ in range(2)]
    for process in both:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        assert '"new": 3' in out
    assert len(project.runs) == 2
    assert len([path for path in (cache / "envs").iterdir() if path.is_dir()]) == 1
