"""A killed or interrupted run ends with `--resume` as an undisturbed run does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.workbench import make_test_cache

pytestmark = pytest.mark.cell
CHECKOUT = Path(__file__).resolve().parents[2]
JOBS = 8
SOURCE = """
import time
import numpy as np
from conformance.kit import Observed, probe

@probe(params={params!r})
def slow(env, n):
    time.sleep(0.3)
    if n == 3:
        raise ValueError("three")
    return Observed(np.float32([n]), reference=np.float32([n if n != 5 else 0]))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables for a separate cache folder, with the existing environments."""
    cache = make_test_cache(tmp_path / "cache")
    paths = {"CONFORMANCE_CACHE": str(cache), "PYTHONPATH": str(CHECKOUT)}
    return {**os.environ, **paths}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A file of eight cases that take a third of a second each; one fails, one deviates."""
    file = tmp_path / "family" / "topic.py"
    file.parent.mkdir()
    file.write_text(SOURCE.format(params={f"p{n}": {"n": n} for n in range(JOBS)}))
    return file


def start(environment: dict[str, str], *arguments: object) -> subprocess.Popen[bytes]:
    """Start `conformance run`."""
    command = [sys.executable, "-m", "conformance", "run", "--jobs", "2", *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment, cwd=CHECKOUT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def finish(environment: dict[str, str], *arguments: object) -> int:
    """Run `conformance run` to its end and return its exit status."""
    process = start(environment, *arguments)
    _, said = process.communicate(timeout=120)
    assert b"Traceback" not in said, said.decode()
    return process.returncode


def results(file: Path) -> list[dict[str, Any]]:
    """Return the records of a run without measured numbers."""
    measured = ("seconds", "max_rss_bytes", "cached")
    return [
        {name: value for name, value in record.items() if name not in measured}
        for record in json.loads(file.read_text())["results"]
    ]


def lines(run: Path) -> int:
    """Return how many jobs a run has recorded."""
    file = run / "results.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "ctrl-c"])
def test_a_killed_run_resumes(
    tmp_path: Path, environment: dict[str, str], cases: Path, sent: signal.Signals
) -> None:
    """With the same final results as an undisturbed run; no process remains."""
    select = (cases, "--cell", "0.5.3", "--fresh")
    whole = finish(environment, *select, "--run", tmp_path / "a", "--json", tmp_path / "a.json")
    process = start(environment, *select, "--run", tmp_path / "b")
    while lines(tmp_path / "b") < 2:
        time.sleep(0.01)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(sent)
    process.communicate(timeout=120)
    assert process.returncode == (130 if sent is signal.SIGINT else -sent)
    assert psutil.wait_procs(family, timeout=5)[1] == []
    assert 2 <= (before := lines(tmp_path / "b")) < JOBS
    resumed = finish(environment, "--resume", "--fresh", "--run", tmp_path / "b",
                     "--json", tmp_path / "b.json")  # fmt: skip
    assert resumed == whole == 1
    assert results(tmp_path / "b.json") == results(tmp_path / "a.json")
    assert lines(tmp_path / "b") == JOBS > before
