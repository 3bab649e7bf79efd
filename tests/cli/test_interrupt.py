"""Ended from outside at any moment: exit 130, no process left, and resuming makes it whole."""

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

from tests.projects import GOOD, HEAD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.projects import Project


PATIENCE = 30.0
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


def _wait(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def _marked(mark: str) -> list[psutil.Process]:
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
    """A mark that every process started by the test inherits."""
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
    """Run until something is seen, then send a signal; return what was said on stderr."""
    process = project.start("run", "--fresh", *arguments)
    try:
        _wait(lambda: process.poll() is not None or until())
        process.send_signal(number)
        _, error = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130, error
    assert "Traceback" not in error
    _wait(lambda: not _marked(mark))
    return error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_during_a_job(project: Project, mark: str, tmp_path: Path, number: int) -> None:
    """The jobs that ended are kept, the one that ran is not; resuming ends the run."""

    def both_recorded() -> bool:  # a job has ended a moment before that is written down
        return (tmp_path / "in-job").exists() and len(project.newest.read_records()) == 2

    error = _interrupt(project, mark, number, both_recorded, "--jobs", "1", "fam")
    directory = project.newest
    line = "conformance: interrupted; continue with: conformance run --resume --run {}\n"
    *_, last = error.splitlines(keepends=True)  # after the progress, on a slow host
    assert last == line.format(directory.path)
    before = (directory.path / "results.jsonl").read_bytes()
    assert {record.case for record in directory.read_records()} == {"fam/one", "fam/two"}
    (tmp_path / "go").touch()
    resumed = project.run("run", "--resume", "--run", directory.path, "--json", "-")
    assert (resumed.code, resumed.json["counts"]) == (0, {"new": 3})
    after = (directory.path / "results.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(after.splitlines()) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_during_the_import_of_a_case_file(
    project: Project, mark: str, tmp_path: Path, number: int
) -> None:
    """A case file that is being imported in the cell does not hold the run."""
    _interrupt(project, mark, number, (tmp_path / "in-import").exists, "late")
    (tmp_path / "go").touch()
    assert project.run("run", "--resume").code == 1
    assert [record.verdict for record in project.newest.read_records()] == ["new"]


def test_during_provisioning(
    project: Project, mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No half an environment is taken for a whole one, and uv is gone too."""
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


@pytest.mark.parametrize("locked", [True, False])
def test_while_the_index_does_not_answer(
    project: Project,
    mark: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    locked: bool,
) -> None:
    """A download that hangs is not waited for, neither of a lock nor of an environment."""
    if not locked:
        for lock in (project.path / "matrix" / "locks").iterdir():
            lock.unlink()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.delenv("CONFORMANCE_INDEX_URL", raising=False)
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{silent.getsockname()[1]}/")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
        monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
        silent.settimeout(PATIENCE)
        start = time.monotonic()
        with contextlib.ExitStack() as calls:
            error = _interrupt(
                project, mark, signal.SIGTERM, lambda: calls.enter_context(silent.accept()[0])
            )
    assert ("continue with" in error) == locked
    assert time.monotonic() - start < PATIENCE / 2


def test_before_there_is_a_run(project: Project, mark: str, tmp_path: Path) -> None:
    """Interrupted while the plan is made there is nothing to resume, and none is offered."""
    hung = tmp_path / "python"
    hung.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexec sleep 8\n")
    hung.chmod(0o755)
    error = _interrupt(
        project, mark, signal.SIGTERM, (tmp_path / "asked").exists, "--cell", f"path:{hung}"
    )
    assert error.strip() == "conformance: interrupted"
    assert project.runs == []


def test_killed_outright(project: Project, mark: str, tmp_path: Path) -> None:
    """After kill -9 nothing is left running either, and the run is resumed."""
    process = project.start("run", "--fresh", "--jobs", "1", "fam")
    _wait((tmp_path / "in-job").exists)
    process.kill()
    process.communicate(timeout=PATIENCE)
    _wait(lambda: not _marked(mark))
    (tmp_path / "go").touch()
    assert project.run("run", "--resume").code == 0
    assert len(project.newest.read_records()) == 3


def test_two_runs_at_once(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same project and a cache that is empty for both: both are right."""
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
