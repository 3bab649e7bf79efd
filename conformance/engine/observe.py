"""From what a worker said to how a job ended: pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.engine.job import Finished
from conformance.engine.messages import ValueHead, WireError, read_message
from conformance.engine.variants import CUT_SHORT, WAYS, VariantTranscript, variant_artifact
from conformance.judge.errors import make_signature
from conformance.model.codec import encode_value
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo
from conformance.model.traceback import FRAMES, traceback_artifact
from conformance.model.value import Leaf, Value
from conformance.worker.refusals import refused_flags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.job import Job
    from conformance.engine.messages import JobEnd, RankEnd

NEAR_TIMEOUT = 0.8
"""Part of its timeout beyond which a job is told to be near it."""
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "MemoryError", "Out of memory")


@dataclass(slots=True)
class Transcript:
    """What a worker said about one job so far."""

    stage: Stage = Stage.IMPORT
    error: ErrorInfo | None = None
    unsupported: str | None = None
    ended: bool = False
    blobs: dict[str, bytes] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    ways: VariantTranscript = field(default_factory=VariantTranscript)

    def take(self, header: Mapping[str, Any], body: bytes) -> None:
        """Take one event of the worker, as `conformance.worker.stages` emits them.

        Args:
            header: The event.
            body: Its bytes.
        """
        match header:
            case {"same_as": way}:
                self._take_way(way, header, body)
            case {"stage": stage}:
                self.stage = Stage(stage)
            case {"seconds": [stage, seconds]}:
                self.seconds[stage] = seconds
            case {"artifact": name}:
                self.blobs[name] = body
            case {"value": head} | {"reference": head}:
                name = "value" if "value" in header else "reference"
                self.blobs[name] = encode_value(value_of(read_message(head, ValueHead), body))
            case {"raises": expected}:
                self.blobs["raises"] = msgspec.json.encode(expected)
            case {"error": error}:
                self._take_error(read_message(error, WireError))
            case {"unsupported": reason}:
                self.unsupported = reason
            case {"end": True}:
                self.ended = True
            case _:
                raise ValueError(f"event {dict(header)} of the worker, expected a known one")

    def _take_error(self, error: WireError) -> None:
        """Take the first error, the program's; a broken reference adds nothing to it."""
        self.error = self.error or _error(error)
        self.blobs.setdefault("traceback", error.traceback.encode())
        if error.frames is not None:
            self.blobs.setdefault(FRAMES, traceback_artifact(error.frames))

    def _take_way(self, way: str, said: Mapping[str, Any], body: bytes) -> None:
        """Take one event of the program run in another way."""
        match said:
            case {"value": head}:
                value = value_of(read_message(head, ValueHead), body)
                self.blobs[variant_artifact(way)] = encode_value(value)
                self.ways.end(way, Outcome.OK)
            case {"error": described}:
                error = _error(read_message(described, WireError))
                self.ways.end(way, raised(error), error)
            case {"skipped": reason}:
                self.ways.end(way, Outcome.UNSUPPORTED, _said("unsupported", reason))
            case _:
                self.ways.begin(way)
        self.blobs[WAYS] = self.ways.artifact()

    def finish(self, job: Job, done: JobEnd) -> Finished:
        """Return how the job ended.

        Args:
            job: The job.
            done: The supervisor's last word: exit status, signal, what it ended and why.

        Returns:
            The finished job, with one right outcome whatever the way it ended. What ended it
            while the program was run in another way is the ending of that way: the program
            itself had ended well.
        """
        outcome, error = self._ending(job, done)
        whole = outcome is Outcome.OK
        if self.ways.running and outcome in CUT_SHORT:
            self.ways.cut(outcome, error, job.case.same_as)
            self.blobs[WAYS] = self.ways.artifact()
            outcome, error = Outcome.OK, None
        if not whole:
            # What a failed job printed is evidence; a good job's chatter is noise.
            self.blobs |= printed(done)
        return Finished(
            job=job,
            outcome=outcome,
            stage=self.stage,
            error=error,
            blobs=self.blobs,
            seconds={**self.seconds, "job": done.seconds},
            max_rss_bytes=done.max_rss_bytes,
            killed=killed(done),
            refused=done.ended == "infra",
            notes=near_timeout(done, job),
        )

    def _ending(self, job: Job, done: JobEnd) -> tuple[Outcome, ErrorInfo | None]:
        if done.ended:
            outcome, text = cut_short(done, job)
            return outcome, abnormal(done.ended, text, job)
        if self.unsupported is not None:
            return Outcome.UNSUPPORTED, abnormal("unsupported", self.unsupported, job)
        if not self.ended:
            if refused := refused_flags(done.stderr):
                return Outcome.UNSUPPORTED, abnormal("unsupported", refused, job)
            return Outcome.CRASHED, crash(done, job)
        if self.error is None:
            return Outcome.OK, None
        return raised(self.error), self.error


def value_of(head: ValueHead, body: bytes) -> Value:
    """Return the value that a worker sent.

    Args:
        head: Its structure and leaves.
        body: The bytes of the leaves in a row.
    """
    leaves, start = [], 0
    for leaf in head.leaves:
        end = start + leaf.nbytes
        leaves.append(
            Leaf(
                path=leaf.path, kind=leaf.kind, dtype=leaf.dtype, shape=leaf.shape,
                weak_type=leaf.weak_type, sharding=leaf.sharding, memory_kind=leaf.memory_kind,
                data=body[start:end],
            )
        )  # fmt: skip
        start = end
    return Value(structure=head.structure, leaves=tuple(leaves))


def abnormal(type_: str, message: str, job: Job) -> ErrorInfo:
    """Return the error of a job that ended without raising."""
    return _said(type_, message, f"{job.case.file}:{job.case.line}")


def _said(type_: str, message: str, where: str = "") -> ErrorInfo:
    return ErrorInfo(type=type_, message=message, signature=f"{type_}: {message}", where=where)


def _error(error: WireError) -> ErrorInfo:
    return ErrorInfo(
        type=error.type, message=error.message, signature=make_signature(error.type, error.message),
        where=error.where,
    )  # fmt: skip


def raised(error: ErrorInfo) -> Outcome:
    """Return the outcome of a job that raised an error."""
    said = f"{error.type}: {error.message}"
    memory = any(word in said for word in OUT_OF_MEMORY)
    return Outcome.OUT_OF_MEMORY if memory else Outcome.RAISED


def cut_short(done: JobEnd, job: Job) -> tuple[Outcome, str]:
    """Return the outcome of a job that its supervisor ended, or could not begin.

    Args:
        done: The supervisor's last word.
        job: The job.

    Returns:
        The outcome, and why.
    """
    match done.ended:
        case "timeout":
            return Outcome.TIMED_OUT, f"no end within the timeout of {job.case.timeout:g} s"
        case "memory":
            return Outcome.OUT_OF_MEMORY, f"resident beyond the limit of {job.case.memory} MiB"
        case "observation":
            return Outcome.CRASHED, f"observed more than {job.case.observation_mb} MiB"
        case "garbled":
            return Outcome.CRASHED, "the job wrote into the worker's own channel"
        case _:
            return Outcome.INFRA, str(done.stderr or done.ended)


def printed(done: JobEnd) -> dict[str, bytes]:
    """Return the last of what a job printed, by stream, as far as it printed anything.

    Args:
        done: The supervisor's last word.
    """
    streams = {"stdout": done.stdout, "stderr": done.stderr}
    return {name: text.encode("utf-8", "replace") for name, text in streams.items() if text}


def killed(done: JobEnd) -> bool:
    """Say whether a process was ended by a SIGKILL that its supervisor did not send.

    Args:
        done: How it ended.
    """
    return not done.ended and done.signal == signal.SIGKILL


def near_timeout(done: JobEnd, job: Job) -> tuple[str, ...]:
    """Return a note on a job that ended by itself but nearly too late, empty for any other.

    Args:
        done: The supervisor's last word.
        job: The job.
    """
    took, timeout = done.seconds, job.case.timeout
    if done.ended or took <= NEAR_TIMEOUT * timeout:
        return ()
    return (f"took {took:.1f} s, near its timeout of {timeout:g} s",)


def crash(done: JobEnd | RankEnd, job: Job, who: str = "the process") -> ErrorInfo:
    """Return the error of a job whose process ended too early.

    Args:
        done: Its exit status, or the signal that ended it.
        job: The job.
        who: What ended.
    """
    number = done.signal
    if number is None:
        text = f"{who} exited with status {done.exit} before the job ended"
        return abnormal("exit", text, job)
    name = signal_name(number)
    return abnormal(name, f"{who} was ended by {name}", job)


def signal_name(number: int) -> str:
    """Return the name of a signal, `signal N` for one that has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
