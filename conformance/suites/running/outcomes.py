"""The outcome of each test, from the reports of its session. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.engine.input_files import READ_FILES, encode_inputs, hash_inputs
from conformance.engine.job import FinishedJob
from conformance.engine.plan import find_missing_dependency
from conformance.engine.runs.suite_changes import NOT_COLLECTED, SKIPPED
from conformance.engine.workers.messages import JobEnd
from conformance.engine.workers.printed_exceptions import find_exception
from conformance.engine.workers.transcript import classify_raised, encode_output, name_signal
from conformance.judge.errors import make_signature
from conformance.judge.suite_verdict import WARNINGS, XFAIL
from conformance.model.observation import FALSIFYING
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo
from conformance.model.traceback import FRAMES, encode_described_traceback
from conformance.suites.inside.session_server import LOST
from conformance.suites.known.error_patterns import mask_values
from conformance.suites.running.session import LARGEST, QUIET
from conformance.suites.suite import MEMORY
from conformance.worker.processes import find_refused_flags

if TYPE_CHECKING:
    from conformance.engine.job import Job
    from conformance.suites.running.collection import Problem, SessionInfo, TestReport

MISSING: Final = "dependency"
"""Type of the error of a test that needs a package which its cell lacks."""
_RAISED: Final = re.compile(r"(?m)^(?:E|INTERNALERROR>) +(?:\w+\.)*([A-Z]\w*)(?:: (.*))?$")
"""How pytest prints an exception that ended it outside of any test."""
# pytest itself prints `ERROR: ...`, its parser of arguments `PROGRAM: error: ...`.
_USAGE: Final = re.compile(r"(?ms)^(?:\S+: error|ERROR): (?!usage: )(.*?)\s*\Z")

_CUT: Final = {
    "memory": (Outcome.OUT_OF_MEMORY, f"resident beyond the limit of {MEMORY} MiB"),
    "output": (Outcome.CRASHED, f"printed more than {LARGEST} MiB"),
    "garbled": (Outcome.CRASHED, "the test wrote into the session's own channel"),
    LOST: (Outcome.INFRA, "the process that its worker was forked from is gone"),
}
"""Outcome and message for each reason for which the supervisor ends a process."""


def finish_test(job: Job, report: TestReport) -> FinishedJob:
    """Return the outcome of a test that pytest reported.

    Args:
        job: Reported test.
        report: Report of the session about the test.
    """
    blobs: dict[str, bytes] = {}
    match report.outcome:
        case "passed":
            outcome, error = Outcome.OK, None
        case "failed":
            outcome, error = _classify_error(job, _make_reported_error(report))
            texts = {"traceback": report.text, "stdout": report.out, "stderr": report.err}
            texts |= {FALSIFYING: report.falsifying}
            blobs = {name: text.encode() for name, text in texts.items() if text}
            blobs |= _encode_frames(report.frames)
        case "xfailed":
            outcome, error = Outcome.RAISED, _make_reported_error(report)
            blobs = {XFAIL: report.reason.encode()}
        case "skipped":
            outcome, error = Outcome.UNSUPPORTED, make_error(SKIPPED, report.reason or SKIPPED)
        case "left":
            text = f"the test ended the session: {report.message}"
            outcome, error = Outcome.CRASHED, make_error("exit", text)
        case _:
            outcome = Outcome.INFRA
            error = make_error("unreported", "pytest did not report the test")
    if report.warnings:
        blobs[WARNINGS] = json.dumps(report.warnings, ensure_ascii=False).encode()
    if report.read:
        blobs[READ_FILES] = encode_inputs(hash_inputs(map(Path, report.read)))
    # Fixtures build what the test then executes.
    stage = Stage.BUILD if report.phase == "setup" else Stage.EXECUTE
    return FinishedJob(
        job=job, outcome=outcome, stage=stage, error=error, blobs=blobs,
        seconds={"execute": report.seconds, "job": report.seconds},
    )  # fmt: skip


def finish_uncollected(job: Job, problem: Problem | None) -> FinishedJob:
    """Return the outcome of a test that was not collected.

    Args:
        job: Test that was not collected.
        problem: The reason, None if the suite has no such test in this cell.
    """
    outcome, blobs = Outcome.UNSUPPORTED, {}
    if problem is None:
        error = make_error(NOT_COLLECTED, "is not collected in this cell")
    elif not problem.broken:
        error = make_error(SKIPPED, problem.reason or SKIPPED)
    else:
        message = problem.message or problem.text
        outcome, error = _classify_error(
            job, make_error(problem.type or "CollectError", message, problem.where)
        )
        blobs = {"traceback": problem.text.encode(), **_encode_frames(problem.frames)}
    return FinishedJob(job=job, outcome=outcome, stage=Stage.IMPORT, error=error, blobs=blobs)


def finish_vanished(job: Job) -> FinishedJob:
    """Return the outcome of a test that was collected in this cell before, and then was not.

    Args:
        job: Test that vanished.
    """
    error = make_error("not run", "was collected once, and not again: its name must not change")
    return FinishedJob(job=job, outcome=Outcome.NOT_RUN, stage=Stage.IMPORT, error=error)


def finish_killed(job: Job, end: JobEnd) -> FinishedJob:
    """Return the outcome of a test that ended its process.

    Args:
        job: Test that ran in the process.
        end: How the process ended.
    """
    outcome, error = _explain_end(end, f"no end within the timeout of {job.case.timeout:g} s")
    return FinishedJob(
        job=job, outcome=outcome, stage=Stage.EXECUTE, error=error, blobs=encode_output(end)
    )


def finish_failed_session(job: Job, info: SessionInfo) -> FinishedJob:
    """Return the outcome of a test whose session ended before any test began.

    Args:
        job: Test of the session.
        info: The reports of the session.
    """
    outcome, error = explain_failure(info)
    # e.g. a conftest.py that imports a package which the cell lacks.
    if outcome is Outcome.RAISED and (missing := _find_missing(job, error)):
        outcome, error = Outcome.INFRA, make_error(MISSING, missing)
    blobs = encode_output(info.end or JobEnd())
    return FinishedJob(job=job, outcome=outcome, stage=Stage.IMPORT, error=error, blobs=blobs)


def explain_failure(info: SessionInfo) -> tuple[Outcome, ErrorInfo]:
    """Return why a session collected nothing, or ran none of it.

    Args:
        info: The reports of a session that has ended.
    """
    end = info.end or JobEnd()
    # pytest returned no status: the process was killed, or crashed.
    if info.status is None:
        # Up to pytest 9.1, an import error of a plugin that a conftest.py names.
        if end.exit == 1 and (found := find_exception(end.stderr)):
            type_, message = found
            return Outcome.RAISED, make_error(type_.rpartition(".")[2], message)
        return _explain_end(end, f"no tests were collected within {QUIET:g} s")
    if printed := _RAISED.findall(f"{end.stderr}\n{end.stdout}"):
        return Outcome.RAISED, make_error(*printed[-1])
    usage = _USAGE.search(end.stderr)
    message = " ".join((usage[1] if usage else end.stderr).split())
    message = message or f"pytest ended with status {info.status} and ran none of them"
    return Outcome.RAISED, make_error("UsageError", message)


def make_error(type_: str, message: str, where: str = "") -> ErrorInfo:
    """Return an error with its signature."""
    signature = make_signature(type_, message)
    return ErrorInfo(type=type_, message=message, signature=signature, where=where)


def _make_reported_error(report: TestReport) -> ErrorInfo:
    error = make_error(report.type, report.message, report.where)
    if not report.falsifying:
        return error
    # Hypothesis drew the values: another run, or another release, may draw others.
    return replace(error, signature=make_signature(error.type, mask_values(error.message)))


def _classify_error(job: Job, error: ErrorInfo) -> tuple[Outcome, ErrorInfo]:
    """Return the outcome of a test that raised; a missing package is no result about jax."""
    if missing := _find_missing(job, error):
        return Outcome.INFRA, make_error(MISSING, missing)
    return classify_raised(error), error


def _find_missing(job: Job, error: ErrorInfo) -> str:
    return find_missing_dependency(error, job.planned.versions, job.case.file, "the suite")


def _encode_frames(described: tuple[Any, ...]) -> dict[str, bytes]:
    """Return the artifact with the frames of an exception; a test can send malformed frames."""
    try:
        return {FRAMES: encode_described_traceback(described)} if described else {}
    # The text of the traceback is stored anyway.
    except msgspec.ValidationError:
        return {}


def _explain_end(end: JobEnd, late: str) -> tuple[Outcome, ErrorInfo]:
    """Return the outcome of a process that was killed, or ended too early."""
    if end.ended:
        reasons = {"timeout": (Outcome.TIMED_OUT, late), **_CUT}
        outcome, message = reasons.get(end.ended, (Outcome.INFRA, end.stderr or end.ended))
        return outcome, make_error(end.ended, message)
    # Before the signal: XLA aborts the process if it does not know a flag.
    if refused := find_refused_flags(end.stderr):
        return Outcome.UNSUPPORTED, make_error("unsupported", refused)
    if end.signal is not None:
        name = name_signal(end.signal)
        return Outcome.CRASHED, make_error(name, f"the process was ended by {name}")
    return Outcome.CRASHED, make_error("exit", f"the process exited with status {end.exit}")
