"""From what a session told, and how it ended, to how each test ended: pure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.dependencies import missing_dependency
from conformance.engine.input_files import READ_FILES, encode_inputs, hash_inputs
from conformance.engine.job import Finished
from conformance.engine.observe import raised, signal_name
from conformance.engine.suite_changes import NOT_COLLECTED, SKIPPED
from conformance.judge.errors import signature
from conformance.judge.tests import FALSIFYING, WARNINGS, XFAIL
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo
from conformance.model.traceback import FRAMES, traceback_artifact
from conformance.suites.known.causes import without_values
from conformance.suites.running.collection import frames_of_event
from conformance.suites.running.watch import LARGEST, LOST, QUIET
from conformance.suites.suite import MEMORY
from conformance.worker.refusals import refused_flags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.job import Job
    from conformance.model.traceback import Traceback
    from conformance.suites.running.collection import Problem
    from conformance.suites.running.watch import Ended

MISSING: Final = "dependency"
"""Type of the error of a test that needs a package which its cell lacks."""
NEVER: Final = "pytest reported nothing of it"
_RAISED: Final = re.compile(r"(?m)^(?:E|INTERNALERROR>) +(?:\w+\.)*([A-Z]\w*)(?:: (.*))?$")
"""How pytest shows the exception that ended it, outside of any test."""
_USAGE: Final = re.compile(r"(?ms)^(?:\S+: error|ERROR): (?!usage: )(.*?)\s*\Z")

_CUT: Final = {
    "memory": (Outcome.OUT_OF_MEMORY, f"resident beyond the limit of {MEMORY} MiB"),
    "output": (Outcome.CRASHED, f"printed more than {LARGEST >> 20} MiB"),
    "garbled": (Outcome.CRASHED, "the test wrote into the session's own channel"),
    LOST: (Outcome.INFRA, "the process that its worker was forked from is gone"),
    "interrupt": (Outcome.NOT_RUN, "the run was interrupted"),
}
"""What it means that a session was ended, and how that is told."""


def finished(job: Job, event: Mapping[str, Any]) -> Finished:
    """Return how a test ended, as the plugin told it.

    Args:
        job: The test.
        event: The plugin's last word on it.
    """
    blobs: dict[str, bytes] = {}
    match event["outcome"]:
        case "passed":
            outcome, error = Outcome.OK, None
        case "failed":
            outcome, error = _failed(job, _raised(event))
            texts = {"traceback": "text", "stdout": "out", "stderr": "err"}
            blobs = {name: event[of].encode() for name, of in texts.items() if event[of]}
            blobs |= _frames(frames_of_event(event))
            if example := event.get("falsifying"):
                blobs[FALSIFYING] = example.encode()
        case "xfailed":
            outcome, error = Outcome.RAISED, _raised(event)
            blobs = {XFAIL: event["reason"].encode()}
        case "skipped":
            outcome, error = Outcome.UNSUPPORTED, said(SKIPPED, event["reason"] or SKIPPED)
        case "left":
            text = f"the test ended the session: {event['message']}"
            outcome, error = Outcome.CRASHED, said("exit", text)
        case _:
            outcome, error = Outcome.INFRA, said("unreported", NEVER)
    if warnings := event.get("warnings"):
        blobs[WARNINGS] = json.dumps(warnings, ensure_ascii=False).encode()
    if read := event.get("read"):
        blobs[READ_FILES] = encode_inputs(hash_inputs(map(Path, read)))
    stage = Stage.BUILD if event.get("phase") == "setup" else Stage.EXECUTE
    seconds = event.get("seconds", 0.0)
    return Finished(
        job=job, outcome=outcome, stage=stage, error=error, blobs=blobs,
        seconds={"execute": seconds, "job": seconds},
    )  # fmt: skip


def not_collected(job: Job, problem: Problem | None) -> Finished:
    """Return how a test ended that was not collected.

    Args:
        job: The test.
        problem: What stood in the way, None where the suite has no such test in this cell.
    """
    if problem is None:
        error = said(NOT_COLLECTED, "is not collected here")
        return Finished(job=job, outcome=Outcome.UNSUPPORTED, stage=Stage.IMPORT, error=error)
    if not problem.broken:
        error = said(SKIPPED, problem.reason or SKIPPED)
        return Finished(job=job, outcome=Outcome.UNSUPPORTED, stage=Stage.IMPORT, error=error)
    error = _error(problem.type or "CollectError", problem.message or problem.text, problem.where)
    blobs = {"traceback": problem.text.encode(), **_frames(problem.frames)}
    outcome, error = _failed(job, error)
    return Finished(job=job, outcome=outcome, stage=Stage.IMPORT, error=error, blobs=blobs)


def _frames(traceback: Traceback) -> dict[str, bytes]:
    return {FRAMES: traceback_artifact(traceback)} if traceback else {}


def _missing(job: Job, error: ErrorInfo) -> str:
    return missing_dependency(error, job.planned.versions, job.case.file, "the suite")


def _failed(job: Job, error: ErrorInfo) -> tuple[Outcome, ErrorInfo]:
    """Return the outcome of a test that raised; without what it imports it says nothing of jax."""
    if why := _missing(job, error):
        return Outcome.INFRA, said(MISSING, why)
    return raised(error), error


def gone_again(job: Job) -> Finished:
    """Return how a test ended that was collected in this cell, and then was not.

    Args:
        job: The test.
    """
    why = "was collected, and is not when it is to run: its name is not the same twice"
    return Finished(
        job=job, outcome=Outcome.NOT_RUN, stage=Stage.IMPORT, error=said("not run", why)
    )


def killed(job: Job, ended: Ended) -> Finished:
    """Return how a test ended that took its session with it.

    Args:
        job: The test.
        ended: How the session ended.
    """
    blobs = {"stdout": ended.out.encode(), "stderr": ended.err.encode()}
    outcome, error = _cut_short(ended, f"no end within the timeout of {job.case.timeout:g} s")
    return Finished(
        job=job, outcome=outcome, stage=Stage.EXECUTE, error=error,
        blobs={name: text for name, text in blobs.items() if text},
    )  # fmt: skip


def failed_session(job: Job, ended: Ended) -> Finished:
    """Return how a test ended whose session ended before any test began.

    Args:
        job: The test.
        ended: How the session ended.
    """
    outcome, error = failure_of(ended)
    if outcome is Outcome.RAISED and (why := _missing(job, error)):
        outcome, error = Outcome.INFRA, said(MISSING, why)
    blobs = {name: text.encode() for name, text in (("stdout", ended.out), ("stderr", ended.err))}
    return Finished(
        job=job, outcome=outcome, stage=Stage.IMPORT, error=error,
        blobs={name: text for name, text in blobs.items() if text},
    )  # fmt: skip


def failure_of(ended: Ended) -> tuple[Outcome, ErrorInfo]:
    """Return why nothing was collected, or nothing of it was run.

    Args:
        ended: How the session ended.
    """
    if ended.status is None:
        return _cut_short(ended, f"no tests were collected within {QUIET:g} s")
    text = f"{ended.err}\n{ended.out}"
    if found := _RAISED.findall(text):
        type_, message = found[-1]
        return Outcome.RAISED, _error(type_, message)
    usage = _USAGE.search(ended.err)
    message = " ".join((usage[1] if usage else ended.err).split())
    message = message or f"pytest ended with status {ended.status} and ran none of them"
    return Outcome.RAISED, _error("UsageError", message)


def said(type_: str, message: str) -> ErrorInfo:
    """Return the error of a test that did not raise one."""
    return ErrorInfo(type=type_, message=message, signature=signature(type_, message))


def _cut_short(ended: Ended, late: str) -> tuple[Outcome, ErrorInfo]:
    """Return the outcome of a process that did not come to its own end."""
    if ended.cut:
        outcome, why = {"timeout": (Outcome.TIMED_OUT, late), **_CUT}[ended.cut]
        return outcome, said(ended.cut, why)
    if refused := refused_flags(ended.err):
        return Outcome.UNSUPPORTED, said("unsupported", refused)
    if ended.signal is not None:
        name = signal_name(ended.signal)
        return Outcome.CRASHED, said(name, f"the process was ended by {name}")
    return Outcome.CRASHED, said("exit", f"the process exited with status {ended.exit}")


def _raised(event: Mapping[str, Any]) -> ErrorInfo:
    error = _error(event["type"], event["message"], event["where"])
    if not event.get("falsifying"):
        return error
    # Hypothesis drew the values: another run, or another release, may draw others.
    return replace(error, signature=signature(error.type, without_values(error.message)))


def _error(type_: str, message: str, where: str = "") -> ErrorInfo:
    return ErrorInfo(type=type_, message=message, signature=signature(type_, message), where=where)
