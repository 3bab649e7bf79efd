"""Times that a program measured itself, and numbers that it printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import conformance
from conformance.engine.input_files import INSTRUMENTATION
from conformance.triage.programs.times import metric_of, times_of
from conformance.worker.instrumentation.sitecustomize import TIMES

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
import sys
sys.path.append({folder!r})
import slow_to_import
import conformance, time
for seconds in (0.2, 0.01):
    with conformance.timed("step"):
        time.sleep(seconds)
with conformance.timed("rest"):
    pass
"""


def test_regions_and_the_time_without_imports(tmp_path: Path) -> None:
    """The fastest entry of a region counts; jax takes seconds to import, whatever a program does.

    The package need not be installed where the program runs.
    """
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.5)")
    script, note = tmp_path / "report.py", tmp_path / "note"
    script.write_text(SCRIPT.format(folder=str(tmp_path)))
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(INSTRUMENTATION), TIMES: str(note)}
    bare = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([bare, script], env=variables, check=True)
    times = times_of(note)
    assert 0.2 < times["own"] < 0.5
    assert 0.01 <= times["region step"] < 0.2
    assert times["regions"] == pytest.approx(times["region step"] + times["region rest"])


def test_nothing_is_measured_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script with regions runs as any other."""
    monkeypatch.delenv(TIMES, raising=False)
    monkeypatch.chdir(tmp_path)
    with conformance.timed("step"):
        pass
    assert list(tmp_path.iterdir()) == []
    assert times_of(tmp_path / "no-note") == {}


@pytest.mark.parametrize(
    ("pattern", "number"),
    [
        (r"took ([\d.]+)", 2.5),
        (r"(?<=took )[\d.]+", 2.5),
        (r"of ([\d,]+)", 1200.0),
        (r"(took)", None),
        (r"nothing (\d+)", None),
    ],
)
def test_a_metric(pattern: str, number: float | None) -> None:
    """The last number that the pattern finds: what comes first may be a warm-up."""
    assert metric_of(b"took 9.5 of 1,200\ntook 2.5 s\n", re.compile(pattern)) == number
