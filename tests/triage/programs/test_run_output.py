"""Printed output, times, dumps and hangs of a program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import conformance
from conformance.engine.input_files import INSTRUMENTATION
from conformance.triage.programs.run_output import (
    UnreadableDumpError,
    add_facts,
    compute_dump_delay,
    find_metric,
    locate_hang,
    normalize_output,
    read_dump_facts,
    read_times,
)
from conformance.worker.instrumentation.sitecustomize import HANG, TIMES

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = {"jax": "0.12.0.1", "jaxlib": "0.12.0.1", "numpy": "2.5.4", "absl-py": "2.3"}
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
HLO = """HloModule jit_f

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %m = f32[4]{0} multiply(%p, %p)
}
"""
WAIT = "import threading\n\ndef wait():\n    threading.Event().wait({seconds})\n\nwait()\n"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("0.12.0.1", "<version>"),
        ("jax 0.12.0.1, numpy-2.5.4.", "jax <version>, numpy-<version>."),
        ("absl-py==2.3 gives 2.3", "absl-py==<version> gives 2.3"),
        ("(0, 12, 0) (0, 12, 0, 1)", "<version> <version>"),
        ("Python 3.12.1", "Python <version>"),
        ("3.12.1 (main, May  9 2026, 07:36:11) [GCC 12.2.0]", "<python>"),
        ("/home/me/env/lib/python3.12/site-packages/jax/a.py", "<packages>/jax/a.py"),
        (
            '  File "/e/lib/site-packages/jax/a.py", line 7, in f',
            '  File "<packages>/jax/a.py", in f',
        ),
        ("[CpuDevice(id=0)] TFRT_CPU_0 cpu:0", "[<cpu 0>] <cpu 0> <cpu 0>"),
        ("<object object at 0x7f12ab34cd50>", "<object object at <address>>"),
        ("139912345678912", "<address>"),
        ("2026-05-09 07:36:11.123", "<date>"),
        ("12.5 ms, 3 seconds", "<time>, <time>"),
        ("took: 0.1234", "took: <time>"),
        ("/tmp/tmpab12_9xy/file", "<folder>/file"),
    ],
)
def test_facts_of_the_environment_are_masked(text: str, normal: str) -> None:
    """So outputs of two environments can be compared."""
    assert normalize_output(text, VERSIONS) == normal


@pytest.mark.parametrize(
    "text",
    [
        "2.3", "[1.5 2.5]", "float32[3]", "step 3: loss 0.25", "0x1f", "shape=(0, 12)",
        "1234567890", "10.12.0.1.5", "time step 3", "<class 'jax.Array'>", "P('x', 3)",
    ],
)  # fmt: skip
def test_computed_output_is_unchanged(text: str) -> None:
    """It stays as it is."""
    assert normalize_output(text, VERSIONS) == text


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
    times = read_times(note)
    assert 0.2 < times["own"] < 0.5
    assert 0.01 <= times["region step"] < 0.2
    assert times["regions"] == pytest.approx(times["region step"] + times["region rest"])


def test_regions_are_ignored_without_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script runs as usual."""
    monkeypatch.delenv(TIMES, raising=False)
    monkeypatch.chdir(tmp_path)
    with conformance.timed("step"):
        pass
    assert list(tmp_path.iterdir()) == []
    assert read_times(tmp_path / "no-note") == {}


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
def test_the_last_match_is_the_metric(pattern: str, number: float | None) -> None:
    """Earlier numbers may be of a warm-up."""
    assert find_metric(b"took 9.5 of 1,200\ntook 2.5 s\n", re.compile(pattern)) == number


def test_facts_of_all_programs_are_added(tmp_path: Path) -> None:
    """Files of other steps, and what describes one program alone, are left out."""
    for number in (1, 2):
        (tmp_path / f"module_000{number}.jit_f.cpu_after_optimizations.txt").write_text(HLO)
    (tmp_path / "module_0001.jit_f.before_optimizations.txt").write_text(HLO)
    facts = read_dump_facts(tmp_path)
    assert facts["ops"] == {"multiply": 2, "parameter": 2}
    assert facts["dtypes"] == ["f32"]
    assert "parameters" not in facts


def test_nothing_compiled_has_no_facts(tmp_path: Path) -> None:
    """Also where XLA was never loaded, and made no folder."""
    assert read_dump_facts(tmp_path / "none") == {}


def test_an_unreadable_dump_is_an_error(tmp_path: Path) -> None:
    """It must not count as a program without facts."""
    (tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt").write_text("HloModule x\n\nENTRY")
    with pytest.raises(UnreadableDumpError, match="cpu_after_optimizations"):
        read_dump_facts(tmp_path)


def test_facts_of_programs_are_combined() -> None:
    """Numbers are added, names are united, and true outweighs false."""
    tables = [
        {"host_compute": False, "flops": 2.0, "dtypes": ["f32"], "results": [{}]},
        {"host_compute": True, "flops": 3.0, "dtypes": ["bf16", "f32"], "results": [{}]},
    ]
    assert add_facts(tables) == {"host_compute": True, "flops": 5.0, "dtypes": ["bf16", "f32"]}


def hung(folder: Path, seconds: float) -> str:
    """Return where a script is after a tenth of a second."""
    script, note = folder / "own" / "report.py", folder / "note"
    script.parent.mkdir()
    script.write_text(WAIT.format(seconds=seconds))
    variables = {**os.environ, "PYTHONPATH": str(INSTRUMENTATION), HANG: f"0.1:{note}"}
    subprocess.run([sys.executable, script], env=variables, check=True)
    return locate_hang(note, [script.parent])


def test_a_hang_is_located_in_the_users_code(tmp_path: Path) -> None:
    """With the inner frame that waits."""
    where = hung(tmp_path, 1.0)
    assert where.startswith("report.py:4 in wait, within threading.py:")
    assert where.endswith("in wait")


def test_a_finished_program_hangs_nowhere(tmp_path: Path) -> None:
    """It hangs nowhere."""
    assert hung(tmp_path, 0.0) == ""
    assert locate_hang(tmp_path / "no-note", [tmp_path]) == ""


@pytest.mark.parametrize("timeout", [0.2, 1.0, 60.0])
def test_tracebacks_are_dumped_before_the_timeout(timeout: float) -> None:
    """After it, they would be lost."""
    assert 0 < compute_dump_delay(timeout) < timeout
