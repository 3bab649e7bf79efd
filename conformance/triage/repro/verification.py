"""Verification of a reproduction: run alone, it must end as the case did."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.cells.interpreters import find_interpreter
from conformance.cells.secret_masking import is_secret
from conformance.cells.uvtool import find_uv, make_uv_environment, run_uv
from conformance.engine.workers.environment import make_worker_environment
from conformance.engine.workers.printed_exceptions import find_exception
from conformance.errors import ConformanceError
from conformance.judge.errors import make_signature
from conformance.model.observation import LAW_ERROR, split_example
from conformance.model.outcome import Conformance, Outcome
from conformance.scratch import temporary_folder
from conformance.triage.programs import process

if TYPE_CHECKING:
    from conformance.triage.programs.process import CompletedProgram
    from conformance.triage.repro.header import JudgedObservation
    from conformance.triage.repro.observed_jobs import ObservedJob
    from conformance.triage.repro.writer import ReproductionFile

SLOWER: Final = 5
"""Timeout of a file as a multiple of that of its case: it also imports jax and compiles."""
ENVIRONMENTS: Final = "environments-"
"""Prefix of the folder in which uv keeps the environments of scripts."""
_SIGNAL_BASE: Final = 128
"""Exit status of a shell, and of uv, for a signal, minus the number of the signal."""


class NotReproducedError(ConformanceError):
    """A reproduction does not end as the case did (exit 1)."""

    exit_code = 1


def find_difference(
    written: ReproductionFile, seen: ObservedJob, name: str, index: str = ""
) -> str:
    """Run a file in an empty folder; return how its ending differs from that of the case.

    `uv run` runs it, in an environment with only the packages of its header. A file for a `path:`
    cell is run by the interpreter of the cell.

    Args:
        written: The file.
        seen: The job with its observation.
        name: Name of the file.
        index: URL of an additional package index; empty for none.

    Raises:
        InfrastructureError: If there is no such Python, or its packages cannot be installed.
    """
    cell, timeout = seen.job.planned.cell, SLOWER * seen.job.case.timeout
    with temporary_folder("repro") as folder:
        file = folder / name
        file.write_text(written.text, encoding="utf-8")
        if cell.interpreter is None:
            ended = run_with_uv(file, find_interpreter(cell.python), index, timeout)
        else:
            # The packages of a `path:` cell may be found by PYTHONPATH alone.
            variables = make_worker_environment(os.environ, {}, keep_python_path=True)
            command = [str(cell.interpreter), str(file)]
            ended = process.run(command, environment=variables, timeout=timeout)
    return compare_ending(ended, seen.seen, silent=written.silent)


def run_with_uv(file: Path, python: Path, index: str, timeout: float) -> CompletedProgram:
    """Run a file with `uv run`, in an environment with the packages of its header alone.

    Args:
        file: The file.
        python: Interpreter for the environment.
        index: URL of an additional package index; empty for none.
        timeout: Seconds it may take.

    Raises:
        InfrastructureError: If its packages cannot be installed.
    """
    # The configuration of the user must not change which packages are installed.
    script = ["--no-config", "--python", str(python)]
    script += ["--index", index] if index else []
    try:
        # A separate step: a missing package or network is no fault of the file.
        run_uv(["sync", *script, "--script", file], cwd=file.parent)
        options = ["--quiet", "--directory", str(file.parent)]
        command = [find_uv(), "run", *script, *options, "--script", str(file)]
        # Only `sync` needs credentials; the file must not see them.
        uv_variables = {
            name: value
            for name, value in make_uv_environment().items()
            if name.startswith("UV_") and not is_secret(name, value)
        }
        variables = make_worker_environment(os.environ, uv_variables, keep_python_path=False)
        return process.run(command, environment=variables, timeout=timeout)
    finally:
        _remove_environment(file)


def _remove_environment(file: Path) -> None:
    """Remove the environment that uv keeps for a file: its path is never used again."""
    # uv names the folder by a hash of the path of the script, so that only uv knows it.
    found = run_uv(["python", "find", "--script", file], cwd=file.parent, quiet=False).strip()
    environment = Path(found).parent.parent
    # Checked before anything is removed: without an environment uv answers with a Python of the
    # system.
    if (environment / "pyvenv.cfg").is_file() and environment.parent.name.startswith(ENVIRONMENTS):
        # A leftover costs only disk space.
        shutil.rmtree(environment, ignore_errors=True)


def compare_ending(
    ended: CompletedProgram, seen: JudgedObservation, *, silent: bool = False
) -> str:
    """Return how a file ended and the expected ending, empty if they are the same.

    Args:
        ended: The completed process.
        seen: The observation of the case.
        silent: Whether the file asserts nothing that the case deviates from.
    """
    outcome = seen.observation.outcome
    right = seen.conformance is not Conformance.DEVIATES and outcome is Outcome.OK
    # An error that the case expects is caught in the file.
    right |= seen.conformance is Conformance.CONFORMS or silent
    if outcome is Outcome.TIMED_OUT:
        # `faulthandler` ends a file that hangs, as written into it.
        holds = "Timeout (" in ended.stderr.decode("utf-8", "replace")
    elif right:
        holds = ended.exit == 0
    elif outcome is Outcome.RAISED:
        holds = _exception_line(ended) == _error_line(seen)
        # The file compares the value of a program by its own functions.
        failed = seen.observation.error
        law = failed is not None and failed.type == LAW_ERROR
        holds |= law and _exception_line(ended).startswith("AssertionError")
    elif outcome is Outcome.OK:
        holds = _exception_line(ended).startswith("AssertionError")
    else:  # it crashed, or ran out of memory: the signal may be another one
        holds = ended.exit != 0
    if holds:
        return ""
    expected = "exit status 0" if right else _describe_expected(seen)
    return f"it ends with {_describe_ending(ended)}, expected {expected}"


def _describe_expected(seen: JudgedObservation) -> str:
    if seen.observation.outcome is Outcome.OK:
        return f"AssertionError, for {seen.reasons[0]}" if seen.reasons else "AssertionError"
    return _error_line(seen)


def _error_line(seen: JudgedObservation) -> str:
    error = seen.observation.error
    if error is None:
        return _first_line("", "")
    return _first_line(error.type, split_example(error.message)[0])


def _first_line(type_: str, message: str) -> str:
    # Without the module: releases move `XlaRuntimeError`.
    return make_signature(type_.rpartition(".")[2], message).partition("\n")[0]


def _exception_line(ended: CompletedProgram) -> str:
    """Return the first line of the signature of the exception that ended a file, empty for none."""
    stderr = ended.stderr.decode("utf-8", "replace")
    found = find_exception(stderr) if ended.exit != 0 else None
    return _first_line(*found) if found else ""


def _describe_ending(ended: CompletedProgram) -> str:
    if ended.cut:
        return "no end within the time" if ended.cut == "timeout" else f"too much {ended.cut}"
    if ended.signal is not None or (ended.exit or 0) > _SIGNAL_BASE:
        number = ended.signal or (ended.exit or 0) - _SIGNAL_BASE
        return f"signal {number}"
    return _exception_line(ended)[:300] or f"exit status {ended.exit}"
