"""The transcript of a job: from the events of its worker to the finished job. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.engine.cache.blobs import CorruptBlobError
from conformance.engine.job import FinishedJob
from conformance.engine.workers.messages import ValueHeader, WireError, read_message
from conformance.files import MALFORMED
from conformance.judge.errors import make_signature
from conformance.model.observation import VariantResult
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo
from conformance.model.traceback import FRAMES, encode_described_traceback
from conformance.model.value import Leaf, Value, decode_value, encode_value
from conformance.worker.processes import find_refused_flags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import Job
    from conformance.engine.workers.messages import JobEnd, RankEnd

VARIANTS: Final = "same_as"
"""Artifact with the ending of each variant."""
JUDGED: Final = frozenset({"value", "reference", "raises"})
"""Artifacts that every judgement reads, in addition to those of variants."""
CUT_SHORT: Final = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY})
"""Endings of a job whose process ended while a variant was running."""
NEAR_TIMEOUT: Final = 0.8
"""Fraction of its timeout beyond which a job gets a note."""
OUT_OF_MEMORY: Final = ("RESOURCE_EXHAUSTED", "MemoryError", "Out of memory")


class VariantEnding(msgspec.Struct, frozen=True):
    """The ending of a variant, as its artifact stores it; `outcome` is None while it runs."""

    outcome: Outcome | None = None
    error: ErrorInfo | None = None


@dataclass(slots=True)
class Transcript:
    """The events of a worker about one job so far.

    Attributes:
        stage: Last stage that began.
        error: Error of the program, None if it raised none.
        unsupported: Reason why the cell cannot run the job, None if it can.
        ended: Whether the job reported its end.
        blobs: Artifacts by name.
        values: The values among the artifacts, before they were encoded.
        seconds: Wall-clock seconds by stage.
        variants: Endings of the variants that have begun, by name.
    """

    stage: Stage = Stage.IMPORT
    error: ErrorInfo | None = None
    unsupported: str | None = None
    ended: bool = False
    blobs: dict[str, bytes] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    variants: dict[str, VariantEnding] = field(default_factory=dict)

    def take(self, header: Mapping[str, Any], body: bytes) -> None:
        """Take one event of the worker, as `conformance.worker.stages` emits them.

        Args:
            header: Event as JSON data.
            body: Bytes of the event.

        Raises:
            ValueError: If the event is unknown or malformed.
        """
        match header:
            case {"same_as": variant}:
                self._take_variant(variant, header, body)
            case {"stage": stage}:
                self.stage = Stage(stage)
            case {"seconds": [stage, seconds]}:
                self.seconds[stage] = seconds
            case {"artifact": name}:
                self.blobs[name] = body
            case {"value": head} | {"reference": head}:
                self._add_value("value" if "value" in header else "reference", head, body)
            case {"raises": expected}:
                self.blobs["raises"] = msgspec.json.encode(expected)
            case {"error": error}:
                self._take_error(read_message(error, WireError))
            case {"unsupported": reason}:
                self.unsupported = reason
            case {"end": True}:
                self.ended = True
            case _:  # a job can write to the channel of its worker
                raise ValueError(f"event {dict(header)} of the worker, expected a known one")

    def _add_value(self, name: str, head: object, body: bytes) -> None:
        self.values[name] = build_value(read_message(head, ValueHeader), body)
        # Encoded here, not in the cell: the bytes of a golden must not depend on a release.
        self.blobs[name] = encode_value(self.values[name])

    def _take_error(self, error: WireError) -> None:
        # The first error is the program's. The reference is computed after it, and a reference
        # that breaks as well adds nothing.
        self.error = self.error or _make_raised_error(error)
        self.blobs.setdefault("traceback", error.traceback.encode())
        if error.frames is not None:
            self.blobs.setdefault(FRAMES, encode_described_traceback(error.frames))

    def _take_variant(self, variant: str, event: Mapping[str, Any], body: bytes) -> None:
        match event:
            case {"value": head}:
                self._add_value(name_variant_artifact(variant), head, body)
                ending = VariantEnding(Outcome.OK)
            case {"error": described}:
                error = _make_raised_error(read_message(described, WireError))
                ending = VariantEnding(classify_raised(error), error)
            case {"skipped": reason}:
                ending = VariantEnding(Outcome.UNSUPPORTED, _make_error("unsupported", reason))
            case _:
                ending = VariantEnding()
        self.variants[variant] = ending
        # At each event, because the process may end at any time.
        self.blobs[VARIANTS] = msgspec.json.encode(self.variants)

    def finish(self, job: Job, done: JobEnd) -> FinishedJob:
        """Return the finished job.

        Args:
            job: Job of the transcript.
            done: The supervisor's report on the process.

        Returns:
            The finished job. If the process ended while a variant was running, that is the ending
            of the variant: the program itself had ended well.
        """
        outcome, error = self._find_ending(job, done)
        if outcome is not Outcome.OK:
            # The output of a failed job is evidence; that of any other job is noise.
            self.blobs |= encode_output(done)
        running = next(
            (name for name, ending in self.variants.items() if ending.outcome is None), ""
        )
        if running and outcome in CUT_SHORT:
            self.variants[running] = VariantEnding(outcome, error)
            reason = f"{running} had ended the process"
            for variant in job.case.same_as:
                not_run = VariantEnding(Outcome.NOT_RUN, _make_error("not_run", reason))
                self.variants.setdefault(variant, not_run)
            self.blobs[VARIANTS] = msgspec.json.encode(self.variants)
            outcome, error = Outcome.OK, None
        return FinishedJob(
            job=job,
            outcome=outcome,
            stage=self.stage,
            error=error,
            blobs=self.blobs,
            values=self.values,
            seconds={**self.seconds, "job": done.seconds},
            max_rss_bytes=done.max_rss_bytes,
            killed=was_killed(done),
            refused=done.ended == "infra",
            notes=make_timeout_notes(done, job),
        )

    def _find_ending(self, job: Job, done: JobEnd) -> tuple[Outcome, ErrorInfo | None]:
        # The supervisor first: a job that it killed reports no end either.
        if done.ended:
            outcome, text = classify_termination(done, job)
            return outcome, make_error(done.ended, text, job)
        if self.unsupported is not None:
            return Outcome.UNSUPPORTED, make_error("unsupported", self.unsupported, job)
        if not self.ended:
            # XLA ends the process when it does not know a flag: the release, not a crash.
            if refused := find_refused_flags(done.stderr):
                return Outcome.UNSUPPORTED, make_error("unsupported", refused, job)
            return Outcome.CRASHED, make_crash_error(done, job)
        if self.error is None:
            return Outcome.OK, None
        return classify_raised(self.error), self.error


def name_variant_artifact(variant: str) -> str:
    """Return the name of the artifact with the value of a variant."""
    return f"{VARIANTS}-{variant}"


def is_variant_artifact(artifact: str) -> bool:
    """Return whether an artifact is about the variants of a program."""
    return artifact.partition("-")[0] == VARIANTS


def list_judged_blobs(artifacts: Mapping[str, str]) -> list[str]:
    """Return the hashes of the blobs that every judgement reads, those of values and variants.

    Args:
        artifacts: Blob hash by artifact.
    """
    return [blob for name, blob in artifacts.items() if name in JUDGED or is_variant_artifact(name)]


def load_variants(
    artifacts: Mapping[str, str], blobs: BlobStore, values: Mapping[str, Value] = {}
) -> dict[str, VariantResult]:
    """Return the results of the variants of a program, by name.

    Args:
        artifacts: Blob hash by artifact.
        blobs: Store of the artifacts.
        values: Values of artifacts that are decoded already.

    Raises:
        CorruptBlobError: If a blob is missing or changed.
        CorruptValueError: If a blob is no value.
    """
    results = {}
    for variant, ending in _load_endings(artifacts, blobs).items():
        results[variant] = VariantResult(
            outcome=ending.outcome or Outcome.NOT_RUN,
            error=ending.error,
            value=load_artifact_value(name_variant_artifact(variant), artifacts, blobs, values),
        )
    return results


def load_artifact_value(
    name: str, artifacts: Mapping[str, str], blobs: BlobStore, values: Mapping[str, Value]
) -> Value | None:
    """Return the value of an artifact, None if the job has no such artifact.

    Args:
        name: Name of the artifact.
        artifacts: Blob hash by artifact.
        blobs: Store of the artifacts.
        values: Values of artifacts that are decoded already.

    Raises:
        CorruptBlobError: If its blob is missing or changed.
        CorruptValueError: If its blob is no value.
    """
    if name in values or name not in artifacts:
        return values.get(name)
    return decode_value(blobs.get(artifacts[name]))


def was_cut_short(artifacts: Mapping[str, str], blobs: BlobStore) -> bool:
    """Return whether a variant ended in a way that may be the host's fault."""
    # The job itself is `ok` then, so its outcome does not show it.
    return any(ending.outcome in CUT_SHORT for ending in _load_endings(artifacts, blobs).values())


def _load_endings(artifacts: Mapping[str, str], blobs: BlobStore) -> dict[str, VariantEnding]:
    if VARIANTS not in artifacts:
        return {}
    try:
        return msgspec.json.decode(blobs.get(artifacts[VARIANTS]), type=dict[str, VariantEnding])
    except MALFORMED as error:
        raise CorruptBlobError(f"{artifacts[VARIANTS]}: no endings of variants: {error}") from None


def build_value(head: ValueHeader, body: bytes) -> Value:
    """Return a value that a worker sent.

    Args:
        head: Structure and leaves of the value.
        body: Bytes of the leaves, one after the other.
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


def make_error(kind: str, message: str, job: Job) -> ErrorInfo:
    """Return the error of a job that ended without raising, located at its case."""
    return _make_error(kind, message, f"{job.case.file}:{job.case.line}")


def _make_error(kind: str, message: str, where: str = "") -> ErrorInfo:
    return ErrorInfo(type=kind, message=message, signature=f"{kind}: {message}", where=where)


def _make_raised_error(error: WireError) -> ErrorInfo:
    return ErrorInfo(
        type=error.type, message=error.message, where=error.where,
        signature=make_signature(error.type, error.message),
    )  # fmt: skip


def classify_raised(error: ErrorInfo) -> Outcome:
    """Return the outcome of a job that raised an error."""
    # XLA raises XlaRuntimeError, from 0.8.0 JaxRuntimeError, with the status in the message.
    text = f"{error.type}: {error.message}"
    memory = any(word in text for word in OUT_OF_MEMORY)
    return Outcome.OUT_OF_MEMORY if memory else Outcome.RAISED


def classify_termination(done: JobEnd, job: Job) -> tuple[Outcome, str]:
    """Return the outcome of a job that its supervisor ended or could not start, and the reason.

    Args:
        done: The supervisor's report.
        job: Job that was ended.
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
    """Return the last output of a job by stream, without empty streams."""
    streams = {"stdout": done.stdout, "stderr": done.stderr}
    return {name: text.encode("utf-8", "replace") for name, text in streams.items() if text}


def was_killed(done: JobEnd) -> bool:
    """Return whether a process was ended by a SIGKILL that its supervisor did not send."""
    return not done.ended and done.signal == signal.SIGKILL


def make_timeout_notes(done: JobEnd, job: Job) -> tuple[str, ...]:
    """Return a note if a job ended shortly before its timeout, else nothing."""
    # On a busier host it would time out.
    timeout = job.case.timeout
    if done.ended or done.seconds <= NEAR_TIMEOUT * timeout:
        return ()
    return (f"took {done.seconds:.1f} s, near its timeout of {timeout:g} s",)


def make_crash_error(done: JobEnd | RankEnd, job: Job, process: str = "the process") -> ErrorInfo:
    """Return the error of a job whose process ended before the job did.

    Args:
        done: Exit status of the process, or the signal that ended it.
        job: Job of the process.
        process: Description of the process for the message.
    """
    if done.signal is None:
        return make_error(
            "exit", f"{process} exited with status {done.exit} before the job ended", job
        )
    name = name_signal(done.signal)
    return make_error(name, f"{process} was ended by {name}", job)


def name_signal(number: int) -> str:
    """Return the name of a signal, `signal N` if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
