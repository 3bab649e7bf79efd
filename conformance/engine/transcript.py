"""From what a worker said to how a job ended: pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.engine.blobs import CorruptBlobError
from conformance.engine.job import Finished
from conformance.engine.messages import ValueHeader, WireError, read_message
from conformance.files import MALFORMED
from conformance.judge.errors import make_signature
from conformance.model.codec import decode_value, encode_value
from conformance.model.observation import VariantResult
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo
from conformance.model.traceback import FRAMES, traceback_artifact
from conformance.model.value import Leaf, Value
from conformance.worker.processes import find_refused_flags

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import Job
    from conformance.engine.messages import JobEnd, RankEnd


WAYS: Final = "same_as"
"""Artifact that says how each way ended."""
CUT_SHORT: Final = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY})
"""Endings of a job that ended while a way was run."""


class VariantEnding(msgspec.Struct, frozen=True):
    """How a way ended, as the artifact keeps it; `outcome` is None while it runs."""

    outcome: Outcome | None = None
    error: ErrorInfo | None = None


@dataclass(slots=True)
class VariantTranscript:
    """The events of a worker about the variants of its program so far."""

    _endings: dict[str, VariantEnding] = field(default_factory=dict)

    def begin(self, way: str) -> None:
        """Take that a way begins."""
        self._endings[way] = VariantEnding()

    def end(self, way: str, outcome: Outcome, error: ErrorInfo | None = None) -> None:
        """Take how it ended."""
        self._endings[way] = VariantEnding(outcome, error)

    @property
    def running(self) -> str:
        """The way that began and has not ended, empty if there is none."""
        return next((way for way, one in self._endings.items() if one.outcome is None), "")

    def cut(self, outcome: Outcome, error: ErrorInfo | None, asked: Iterable[str]) -> None:
        """Take that the job ended while a way was run, before those that were to follow.

        Args:
            outcome: How the job ended.
            error: Why.
            asked: All ways that were to be run.
        """
        culprit = self.running
        self.end(culprit, outcome, error)
        said = f"{culprit} had ended the process"
        for way in asked:
            if way not in self._endings:
                missed = ErrorInfo(type="not_run", message=said, signature=f"not_run: {said}")
                self.end(way, Outcome.NOT_RUN, missed)

    def artifact(self) -> bytes:
        """Return the endings as they are kept."""
        return msgspec.json.encode(self._endings)


def name_variant_artifact(way: str) -> str:
    """Return the name of the artifact that holds what a way gave."""
    return f"{WAYS}-{way}"


def is_variant_artifact(artifact: str) -> bool:
    """Say whether an artifact is about a program in other ways."""
    return artifact.partition("-")[0] == WAYS


def load_variants(artifacts: Mapping[str, str], blobs: BlobStore) -> dict[str, VariantResult]:
    """Return what came of a program in other ways, by way.

    Args:
        artifacts: Blob hash by artifact.
        blobs: Where they are.

    Raises:
        CorruptBlobError: If a blob is missing or changed.
        CorruptValueError: If a blob is no value.
    """
    found = {}
    for way, ending in _endings(artifacts, blobs).items():
        blob = artifacts.get(name_variant_artifact(way))
        found[way] = VariantResult(
            outcome=ending.outcome or Outcome.NOT_RUN,
            error=ending.error,
            value=None if blob is None else decode_value(blobs.get(blob)),
        )
    return found


def was_cut_short(artifacts: Mapping[str, str], blobs: BlobStore) -> bool:
    """Say whether a way ended as it may have through the host's fault."""
    return any(one.outcome in CUT_SHORT for one in _endings(artifacts, blobs).values())


def _endings(artifacts: Mapping[str, str], blobs: BlobStore) -> dict[str, VariantEnding]:
    if WAYS not in artifacts:
        return {}
    try:
        return msgspec.json.decode(blobs.get(artifacts[WAYS]), type=dict[str, VariantEnding])
    except MALFORMED as error:
        raise CorruptBlobError(f"{artifacts[WAYS]}: no endings of variants: {error}") from None


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
                self.blobs[name] = encode_value(build_value(read_message(head, ValueHeader), body))
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
                value = build_value(read_message(head, ValueHeader), body)
                self.blobs[name_variant_artifact(way)] = encode_value(value)
                self.ways.end(way, Outcome.OK)
            case {"error": described}:
                error = _error(read_message(described, WireError))
                self.ways.end(way, classify_raised(error), error)
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
            self.blobs |= encode_output(done)
        return Finished(
            job=job,
            outcome=outcome,
            stage=self.stage,
            error=error,
            blobs=self.blobs,
            seconds={**self.seconds, "job": done.seconds},
            max_rss_bytes=done.max_rss_bytes,
            killed=was_killed(done),
            refused=done.ended == "infra",
            notes=make_timeout_notes(done, job),
        )

    def _ending(self, job: Job, done: JobEnd) -> tuple[Outcome, ErrorInfo | None]:
        if done.ended:
            outcome, text = classify_termination(done, job)
            return outcome, make_error(done.ended, text, job)
        if self.unsupported is not None:
            return Outcome.UNSUPPORTED, make_error("unsupported", self.unsupported, job)
        if not self.ended:
            if refused := find_refused_flags(done.stderr):
                return Outcome.UNSUPPORTED, make_error("unsupported", refused, job)
            return Outcome.CRASHED, make_crash_error(done, job)
        if self.error is None:
            return Outcome.OK, None
        return classify_raised(self.error), self.error


def build_value(head: ValueHeader, body: bytes) -> Value:
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


def make_error(type_: str, message: str, job: Job) -> ErrorInfo:
    """Return the error of a job that ended without raising."""
    return _said(type_, message, f"{job.case.file}:{job.case.line}")


def _said(type_: str, message: str, where: str = "") -> ErrorInfo:
    return ErrorInfo(type=type_, message=message, signature=f"{type_}: {message}", where=where)


def _error(error: WireError) -> ErrorInfo:
    return ErrorInfo(
        type=error.type, message=error.message, signature=make_signature(error.type, error.message),
        where=error.where,
    )  # fmt: skip


def classify_raised(error: ErrorInfo) -> Outcome:
    """Return the outcome of a job that raised an error."""
    said = f"{error.type}: {error.message}"
    memory = any(word in said for word in OUT_OF_MEMORY)
    return Outcome.OUT_OF_MEMORY if memory else Outcome.RAISED


def classify_termination(done: JobEnd, job: Job) -> tuple[Outcome, str]:
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


def encode_output(done: JobEnd) -> dict[str, bytes]:
    """Return the last of what a job printed, by stream, as far as it printed anything.

    Args:
        done: The supervisor's last word.
    """
    streams = {"stdout": done.stdout, "stderr": done.stderr}
    return {name: text.encode("utf-8", "replace") for name, text in streams.items() if text}


def was_killed(done: JobEnd) -> bool:
    """Say whether a process was ended by a SIGKILL that its supervisor did not send.

    Args:
        done: How it ended.
    """
    return not done.ended and done.signal == signal.SIGKILL


def make_timeout_notes(done: JobEnd, job: Job) -> tuple[str, ...]:
    """Return a note on a job that ended by itself but nearly too late, empty for any other.

    Args:
        done: The supervisor's last word.
        job: The job.
    """
    took, timeout = done.seconds, job.case.timeout
    if done.ended or took <= NEAR_TIMEOUT * timeout:
        return ()
    return (f"took {took:.1f} s, near its timeout of {timeout:g} s",)


def make_crash_error(done: JobEnd | RankEnd, job: Job, who: str = "the process") -> ErrorInfo:
    """Return the error of a job whose process ended too early.

    Args:
        done: Its exit status, or the signal that ended it.
        job: The job.
        who: What ended.
    """
    number = done.signal
    if number is None:
        text = f"{who} exited with status {done.exit} before the job ended"
        return make_error("exit", text, job)
    name = name_signal(number)
    return make_error(name, f"{who} was ended by {name}", job)


def name_signal(number: int) -> str:
    """Return the name of a signal, `signal N` for one that has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
