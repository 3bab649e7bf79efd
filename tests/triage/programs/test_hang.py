"""Where a program hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.engine.input_files import INSTRUMENTATION
from conformance.triage.programs.hang import dump_after, hang_of
from conformance.worker.instrumentation.sitecustomize import HANG

if TYPE_CHECKING:
    from pathlib import Path

WAIT = "import threading\n\ndef wait():\n    threading.Event().wait({seconds})\n\nwait()\n"


def hung(folder: Path, seconds: float) -> str:
    """Return where a script is after a tenth of a second."""
    script, note = folder / "own" / "report.py", folder / "note"
    script.parent.mkdir()
    script.write_text(WAIT.format(seconds=seconds))
    variables = {**os.environ, "PYTHONPATH": str(INSTRUMENTATION), HANG: f"0.1:{note}"}
    subprocess.run([sys.executable, script], env=variables, check=True)
    return hang_of(note, [script.parent])


def test_a_program_that_waits(tmp_path: Path) -> None:
    """The innermost line of its own, and what that waits in."""
    where = hung(tmp_path, 1.0)
    assert where.startswith("report.py:4 in wait, within threading.py:")
    assert where.endswith("in wait")


def test_a_program_that_ends_in_time(tmp_path: Path) -> None:
    """It hangs nowhere."""
    assert hung(tmp_path, 0.0) == ""
    assert hang_of(tmp_path / "no-note", [tmp_path]) == ""


@pytest.mark.parametrize("timeout", [0.2, 1.0, 60.0])
def test_it_is_written_before_the_end(timeout: float) -> None:
    """Else it would be lost."""
    assert 0 < dump_after(timeout) < timeout
