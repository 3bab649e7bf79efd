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
from tests.processes import ends_within

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.triage.programs.process import CompletedProgram


def ran(code: str, timeout: float = 20) -> CompletedProgram:
    """Run some Python."""
    return process.run([sys.executable, "-c", code], environment=os.environ, timeout=timeout)


def test_a_successful_program_has_output_and_times() -> None:
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
def test_exit_status_and_signal_are_reported(
    code: str, exit_: int | None, signal_: int | None
) -> None:
    """Even if the program ends its process group."""
    ended = ran(code)
    assert (ended.exit, ended.signal, ended.cut) == (exit_, signal_, "")


def test_a_missing_program_has_the_status_of_a_shell() -> None:
    """As a shell says it."""
    ended = process.run(["no-such-program"], environment=os.environ, timeout=20)
    assert ended.exit == 127
    assert b"no-such-program: cannot be run: No such file" in ended.stderr


def test_a_program_that_hangs_is_ended_with_what_it_started() -> None:
    """Nothing is left."""
    started = "p = subprocess.Popen(['sleep', '60'])"
    ended = ran(f"import subprocess; {started}; print(p.pid, flush=True); p.wait()", timeout=5)
    assert (ended.cut, ended.signal) == ("timeout", signal.SIGKILL)
    assert ends_within(int(ended.stdout))


def test_child_processes_are_ended_with_the_program() -> None:
    """They hold no pipe open."""
    ended = ran("import subprocess; print(subprocess.Popen(['sleep', '60']).pid)")
    assert ended.exit == 0
    assert ends_within(int(ended.stdout))


def test_endless_output_ends_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The beginning and the end are stored."""
    monkeypatch.setattr(process, "LARGEST", 2**20)
    ended = ran("print('first')\nwhile True: print('x' * 1000)")
    assert ended.cut == "output"
    assert ended.stdout.startswith(b"first\n")
    assert len(ended.stdout) < 2 * process.EXCERPT + 100


def test_an_interrupt_ends_a_program() -> None:
    """At once."""
    start = time.monotonic()
    ended = process.run(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        environment=os.environ, timeout=600, stopped=lambda: True,
    )  # fmt: skip
    assert ended.cut == "interrupt"
    assert time.monotonic() - start < 60


def test_no_process_survives_the_orchestrator(tmp_path: Path) -> None:
    """Even if the orchestrator is killed."""
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
    assert ends_within(int(note.read_text()))
