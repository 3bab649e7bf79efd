"""Programs that end in every way, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from conformance.triage.programs import process
from tests.processes import gone

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.triage.programs.process import CompletedProgram


def ran(code: str, timeout: float = 20) -> CompletedProgram:
    """Run some Python."""
    return process.run([sys.executable, "-c", code], environment=os.environ, timeout=timeout)


def test_a_program_that_ends_well() -> None:
    """With what it printed, and what it took."""
    ended = ran("import sys; print('out'); print('err', file=sys.stderr)")
    assert (ended.exit, ended.signal, ended.cut) == (0, None, "")
    assert (ended.stdout, ended.stderr) == (b"out\n", b"err\n")
    assert ended.max_rss_bytes > 2**20
    assert 0 < ended.seconds < 20


@pytest.mark.parametrize(
    ("code", "exit_", "signal_"),
    [
        ("raise SystemExit(3)", 3, None),
        ("import os; os.abort()", None, signal.SIGABRT),
        ("import os, signal; os.killpg(0, signal.SIGKILL)", None, signal.SIGKILL),
    ],
)
def test_a_program_that_ends_otherwise(code: str, exit_: int | None, signal_: int | None) -> None:
    """Also where it ends its whole process group."""
    ended = ran(code)
    assert (ended.exit, ended.signal, ended.cut) == (exit_, signal_, "")


def test_a_program_that_cannot_be_run() -> None:
    """As a shell says it."""
    ended = process.run(["no-such-program"], environment=os.environ, timeout=20)
    assert ended.exit == 127
    assert b"no-such-program: cannot be run: No such file" in ended.stderr


def test_a_program_that_hangs_is_ended_with_what_it_started() -> None:
    """Nothing is left."""
    started = "p = subprocess.Popen(['sleep', '60'])"
    ended = ran(f"import subprocess; {started}; print(p.pid, flush=True); p.wait()", timeout=0.8)
    assert (ended.cut, ended.signal) == ("timeout", signal.SIGKILL)
    assert gone(int(ended.stdout))


def test_what_a_program_leaves_behind_is_ended() -> None:
    """It holds no pipe open."""
    ended = ran("import subprocess; print(subprocess.Popen(['sleep', '60']).pid)")
    assert ended.exit == 0
    assert gone(int(ended.stdout))


def test_a_program_that_prints_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended; beginning and end are kept."""
    monkeypatch.setattr(process, "LARGEST", 2**20)
    ended = ran("print('first')\nwhile True: print('x' * 1000)")
    assert ended.cut == "output"
    assert ended.stdout.startswith(b"first\n")
    assert len(ended.stdout) < 2 * process.EXCERPT + 100


def test_a_program_that_is_not_wanted_any_more() -> None:
    """Ctrl-C ends it at once."""
    start = time.monotonic()
    ended = process.run(
        [sys.executable, "-c", "import time; time.sleep(60)"],
        environment=os.environ, timeout=60, stopped=lambda: True,
    )  # fmt: skip
    assert ended.cut == "interrupt"
    assert time.monotonic() - start < 10


def test_nothing_survives_whoever_asked_for_it(tmp_path: Path) -> None:
    """Also where that is killed."""
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    asks = (
        "import os, sys; from conformance.triage.programs import process;"
        f"process.run([sys.executable, '-c', {code!r}], environment=os.environ, timeout=60)"
    )
    with subprocess.Popen([sys.executable, "-c", asks]) as asking:
        while not (note.exists() and note.read_text()):
            time.sleep(0.02)
        asking.kill()
    assert gone(int(note.read_text()))
