"""From the reports of a session to how each test ended: pure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.engine.input_files import READ_FILES, encode_inputs, hash_inputs
from conformance.engine.job import Finished
from conformance.engine.messages import JobEnd
from conformance.engine.plan import missing_dependency
from conformance.engine.suite_changes import NOT_COLLECTED, SKIPPED
from conformance.engine.transcript import classify_raised, encode_output, name_signal
from conformance.judge.errors import make_signature
from conformance.judge.suite_verdict import FALSIFYING, WARNINGS, XFAIL
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo
from conformance.model.traceback import FRAMES, traceback_artifact
from conformance.suites.inside.session_server import LOST
from conformance.suites.known.causes import without_values
from conformance.suites.running.session import LARGEST, QUIET
from conformance.suites.suite import MEMORY
from conformance.worker.processes import find_refused_flags

if TYPE_CHECKING:
    from conformance.engine.job import Job
    from conformance.suites.running.collection import Problem
    from conformance.suites.running.session_info import SessionInfo, TestReport

MISSING: Final = "dependency"
"""Type of the error of a test that needs a package which its cell lacks."""
NEVER: Final = "pytest reported nothing of it"
_RAISED: Final = re.compile(r"(?m)^(?:E|INTERNALERROR>) +(?:\w+\.)*([A-Z]\w*)(?:: (.*))?$")
"""How pytest shows the exception that ended it, outside of any test."""
_USAGE: Final = re.compile(r"(?ms)^(?:\S+: error|ERROR): (?!usage: )(.*?)\s*\Z")

_CUT: Final = {
    "memory": (Outcome.OUT_OF_MEMORY, f"resident beyond the limit of {MEMORY} MiB"),
    "output": (Outcome.CRASHED, f"printed more than {LARGEST} MiB"),
    "garbled": (Outcome.CRASHED, "the test wrote into the session's own channel"),
    LOST: (Outcome.INFRA, "the process that its worker was forked from is gone"),
}
"""The outcome of a session that was ended, and its message."""


def finish(job: Job, report: TestReport) -> Finished:
    """Return how a test ended, as pytest reported it.

    Args:
        job: The test.
        report: The report.
    """
    blobs: dict[str, bytes] = {}
    match report.outcome:
        case "passed":
            outcome, error = Outcome.OK, None
        case "failed":
            outcome, error = _failed(job, _raised(report))
            texts = {"traceback": report.text, "stdout": report.out, "stderr": report.err}
            texts |= {FALSIFYING: report.falsifying}
            blobs = {name: text.encode() for name, text in texts.items() if text}
            blobs |= _frames(report.frames)
        case "xfailed":
            outcome, error = Outcome.RAISED, _raised(report)
            blobs = {XFAIL: report.reason.encode()}
        case "skipped":
            outcome, error = Outcome.UNSUPPORTED, describe_end(SKIPPED, report.reason or SKIPPED)
        case "left":
            text = f"the test ended the session: {report.message}"
            outcome, error = Outcome.CRASHED, describe_end("exit", text)
        case _:
            outcome, error = Outcome.INFRA, describe_end("unreported", NEVER)
    if report.warnings:
        blobs[WARNINGS] = json.dumps(report.warnings, ensure_ascii=False).encode()
    if report.read:
        blobs[READ_FILES] = encode_inputs(hash_inputs(map(Path, report.read)))
    stage = Stage.BUILD if report.phase == "setup" else Stage.EXECUTE
    return Finished(
        job=job, outcome=outcome, stage=stage, error=error, blobs=blobs,
        seconds={"execute": report.seconds, "job": report.seconds},
    )  # fmt: skip


def not_collected(job: Job, problem: Problem | None) -> Finished:
    """Return how a test ended that was not collected.

    Args:
        job: The test.
        problem: What stood in the way, None where the suite has no such test in this cell.
    """
    if problem is None:
        error = describe_end(NOT_COLLECTED, "is not collected here")
        return Finished(job=job, outcome=Outcome.UNSUPPORTED, stage=Stage.IMPORT, error=error)
    if not problem.broken:
        error = describe_end(SKIPPED, problem.reason or SKIPPED)
        return Finished(job=job, outcome=Outcome.UNSUPPORTED, stage=Stage.IMPORT, error=error)
    error = _error(problem.type or "CollectError", problem.message or problem.text, problem.where)
    blobs = {"traceback": problem.text.encode(), **_frames(problem.frames)}
    outcome, error = _failed(job, error)
    return Finished(job=job, outcome=outcome, stage=Stage.IMPORT, error=error, blobs=blobs)


def _frames(described: tuple[Any, ...]) -> dict[str, bytes]:
    """Return the artifact with the frames of an exception; a test can send malformed ones."""
    try:
        return {FRAMES: traceback_artifact(described)} if described else {}
    except msgspec.ValidationError:
        return {}


def _missing(job: Job, error: ErrorInfo) -> str:
    return missing_dependency(error, job.planned.versions, job.case.file, "the suite")


def _failed(job: Job, error: ErrorInfo) -> tuple[Outcome, ErrorInfo]:
    """Return the outcome of a test that raised; without what it imports it says nothing of jax."""
    if why := _missing(job, error):
        return Outcome.INFRA, describe_end(MISSING, why)
    return classify_raised(error), error


def gone_again(job: Job) -> Finished:
    """Return how a test ended that was collected in this cell, and then was not.

    Args:
        job: The test.
    """
    why = "was collected, and is not when it is to run: its name is not the same twice"
    return Finished(
        job=job, outcome=Outcome.NOT_RUN, stage=Stage.IMPORT, error=describe_end("not run", why)
    )


def killed(job: Job, end: JobEnd) -> Finished:
    """Return how a test ended that took its process with it.

    Args:
        job: The test.
        end: How the process ended.
    """
    outcome, error = _cut_short(end, f"no end within the timeout of {job.case.timeout:g} s")
    return Finished(
        job=job, outcome=outcome, stage=Stage.EXECUTE, error=error, blobs=encode_output(end)
    )


def failed_session(job: Job, info: SessionInfo) -> Finished:
    """Return how a test ended whose session ended before any test began.

    Args:
        job: The test.
        info: The reports of the session.
    """
    outcome, error = failure_of(info)
    if outcome is Outcome.RAISED and (why := _missing(job, error)):
        outcome, error = Outcome.INFRA, describe_end(MISSING, why)
    return Finished(
        job=job,
        outcome=outcome,
        stage=Stage.IMPORT,
        error=error,
        blobs=encode_output(info.end or JobEnd()),
    )


def failure_of(info: SessionInfo) -> tuple[Outcome, ErrorInfo]:
    """Return why nothing was collected, or none of it was run.

    Args:
        info: The reports of a session that has ended.
    """
    end = info.end or JobEnd()
    if info.status is None:
        return _cut_short(end, f"no tests were collected within {QUIET:g} s")
    if found := _RAISED.findall(f"{end.stderr}\n{end.stdout}"):
        type_, message = found[-1]
        return Outcome.RAISED, _error(type_, message)
    usage = _USAGE.search(end.stderr)
    message = " ".join((usage[1] if usage else end.stderr).split())
    message = message or f"pytest ended with status {info.status} and ran none of them"
    return Outcome.RAISED, _error("UsageError", message)


def describe_end(type_: str, message: str) -> ErrorInfo:
    """Return the error of a test that did not raise one."""
    return ErrorInfo(type=type_, message=message, signature=make_signature(type_, message))


def _cut_short(end: JobEnd, late: str) -> tuple[Outcome, ErrorInfo]:
    """Return the outcome of a process that did not come to its own end."""
    if end.ended:
        reasons = {"timeout": (Outcome.TIMED_OUT, late), **_CUT}
        outcome, why = reasons.get(end.ended, (Outcome.INFRA, end.stderr or end.ended))
        return outcome, describe_end(end.ended, why)
    if refused := find_refused_flags(end.stderr):
        return Outcome.UNSUPPORTED, describe_end("unsupported", refused)
    if end.signal is not None:
        name = name_signal(end.signal)
        return Outcome.CRASHED, describe_end(name, f"the process was ended by {name}")
    return Outcome.CRASHED, describe_end("exit", f"the process exited with status {end.exit}")


def _raised(report: TestReport) -> ErrorInfo:
    error = _error(report.type, report.message, report.where)
    if not report.falsifying:
        return error
    # Hypothesis drew the values: another run, or another release, may draw others.
    return replace(error, signature=make_signature(error.type, without_values(error.message)))


def _error(type_: str, message: str, where: str = "") -> ErrorInfo:
    return ErrorInfo(
        type=type_, message=message, signature=make_signature(type_, message), where=where
    )
