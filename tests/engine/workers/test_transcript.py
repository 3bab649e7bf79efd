"""From the events of a worker to the finished job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.workers.messages import JobEnd, ValueHeader, read_message
from conformance.engine.workers.transcript import Transcript, build_value
from conformance.model.outcome import Outcome, Stage
from conformance.model.traceback import decode_traceback
from conformance.model.value import decode_value
from tests.engine.worlds import array, job

if TYPE_CHECKING:
    from pathlib import Path

ERROR = {
    "type": "ValueError",
    "message": "bad 0x7f1234567890",
    "where": "f.py:3",
    "traceback": "Trace",
}
LEAF = {
    "path": "out", "kind": "array", "dtype": "float32", "shape": [2], "weak_type": False,
    "sharding": "single", "memory_kind": "", "nbytes": 8,
}  # fmt: skip
END = {"end": True}


def transcript(*events: dict[str, Any]) -> Transcript:
    """Return a transcript that has taken events."""
    made = Transcript()
    for event in events:
        made.take({"kind": "event", "job": "1", "body": 0, **event}, b"text")
    return made


@pytest.mark.parametrize(
    ("events", "done", "end"),
    [
        ([END], {"exit": 0}, ("ok", None, "")),
        ([{"error": ERROR}, END], {"exit": 0}, ("raised", "ValueError", "bad 0x7f1234567890")),
        ([{"unsupported": "no"}, END], {"exit": 0}, ("unsupported", "unsupported", "no")),
        ([], {"exit": 3}, ("crashed", "exit", "status 3")),
        ([], {"exit": None, "signal": 11}, ("crashed", "SIGSEGV", "ended by SIGSEGV")),
        ([], {"exit": None, "signal": 63}, ("crashed", "signal 63", "ended by signal 63")),
        ([{"error": ERROR}], {"signal": 6}, ("crashed", "SIGABRT", "ended by SIGABRT")),
        ([END], {"ended": "timeout", "signal": 9}, ("timed_out", "timeout", "timeout of 60 s")),
        ([], {"ended": "memory", "signal": 9}, ("out_of_memory", "memory", "4096 MiB")),
        ([], {"ended": "garbled", "signal": 9}, ("crashed", "garbled", "own channel")),
        ([], {"ended": "infra", "stderr": "no pipes"}, ("infra", "infra", "no pipes")),
        ([], {"ended": "cancelled"}, ("infra", "cancelled", "cancelled")),
    ],
)
def test_each_end_has_one_outcome(
    tmp_path: Path,
    events: list[dict[str, Any]],
    done: dict[str, Any],
    end: tuple[str, str | None, str],
) -> None:
    """The supervisor's report comes first, then events of the job, then the end of the process."""
    finished = transcript(*events).finish(job(tmp_path), JobEnd(**done))
    outcome, type_, message = end
    assert finished.outcome == outcome
    assert (finished.error.type if finished.error else None) == type_
    assert message in (finished.error.message if finished.error else "")


@pytest.mark.parametrize(
    "error",
    [
        {"type": "MemoryError", "message": ""},
        {"type": "XlaRuntimeError", "message": "RESOURCE_EXHAUSTED: Out of memory allocating"},
    ],
)
def test_errors_about_memory_are_out_of_memory(tmp_path: Path, error: dict[str, str]) -> None:
    """In the words of XLA and of Python."""
    finished = transcript({"error": {**ERROR, **error}}, END).finish(job(tmp_path), JobEnd())
    assert finished.outcome is Outcome.OUT_OF_MEMORY


def test_an_abnormal_end_is_located_at_the_case(tmp_path: Path) -> None:
    """It has no traceback."""
    finished = transcript().finish(job(tmp_path), JobEnd(signal=11))
    assert finished.error is not None
    assert finished.error.where == f"{tmp_path}/family/topic.py:7"


def test_the_first_error_counts(tmp_path: Path) -> None:
    """An error of the reference after that of the program adds nothing."""
    later = {**ERROR, "type": "CaseError", "traceback": "Later"}
    finished = transcript({"error": ERROR}, {"error": later}, END).finish(job(tmp_path), JobEnd())
    assert finished.error is not None
    assert finished.error.type == "ValueError"
    assert finished.blobs["traceback"] == b"Trace"
    assert "0x7f1234567890" not in finished.error.signature


def test_stages_seconds_and_artifacts_are_kept(tmp_path: Path) -> None:
    """With any end."""
    finished = transcript(
        {"stage": "build"}, {"seconds": ["build", 0.5]}, {"stage": "lower"}, {"artifact": "jaxpr"}
    ).finish(job(tmp_path), JobEnd(signal=9, seconds=2.0, max_rss_bytes=7, stderr="é"))
    assert finished.stage is Stage.LOWER
    assert finished.seconds == {"build": 0.5, "job": 2.0}
    assert finished.blobs == {"jaxpr": b"text", "stderr": "é".encode()}
    assert finished.max_rss_bytes == 7


def test_a_value_crosses_the_wire() -> None:
    """Leaves' bytes are cut from the body in their order."""
    body = array(1, 2) + array(3, 4)
    value = build_value(
        read_message({"structure": "(*, *)", "leaves": [LEAF, LEAF]}, ValueHeader), body
    )
    assert [leaf.data for leaf in value.leaves] == [array(1, 2), array(3, 4)]
    made = Transcript()
    made.take({"value": {"structure": "(*, *)", "leaves": [LEAF, LEAF]}}, body)
    assert decode_value(made.blobs["value"]) == made.values["value"] == value


def test_an_unknown_event_is_an_error() -> None:
    """A worker of another version must not be misread."""
    with pytest.raises(ValueError, match="expected a known one"):
        Transcript().take({"surprise": 1}, b"")


@pytest.mark.parametrize(
    ("seconds", "done", "notes"),
    [
        (48.0, {}, ()),
        (48.1, {}, ("took 48.1 s, near its timeout of 60 s",)),
        (61.0, {"ended": "timeout"}, ()),
        (59.0, {"ended": "memory"}, ()),
    ],
)
def test_a_job_near_its_timeout_gets_a_note(
    tmp_path: Path, seconds: float, done: dict[str, Any], notes: tuple[str, ...]
) -> None:
    """Beyond 80 %, unless the supervisor ended it."""
    finished = transcript(END).finish(job(tmp_path), JobEnd(seconds=seconds, **done))
    assert finished.notes == notes


@pytest.mark.parametrize(
    ("done", "killed"),
    [
        ({"signal": 9}, True),
        ({"signal": 9, "ended": "memory"}, False),
        ({"signal": 11}, False),
        ({"exit": 0}, False),
    ],
)
def test_a_kill_from_outside_is_recognised(
    tmp_path: Path, done: dict[str, Any], *, killed: bool
) -> None:
    """The supervisor reports the kills that it sent."""
    assert transcript().finish(job(tmp_path), JobEnd(**done)).killed is killed


def test_frames_are_an_artifact(tmp_path: Path) -> None:
    """Of the first error, as the text is. Neither identifies the error."""
    frames = [{"type": "ValueError", "message": "bad", "frames": []}]
    told = {**ERROR, "traceback": "text", "frames": frames}
    made = transcript({"error": told}, {"error": {**ERROR, "frames": []}}, END)
    finished = made.finish(job(tmp_path), JobEnd(exit=0))
    (one,) = decode_traceback(finished.blobs["frames"])
    assert (one.type, one.message) == ("ValueError", "bad")
    assert finished.blobs["traceback"] == b"text"
    plain = transcript({"error": ERROR}, END).finish(job(tmp_path), JobEnd(exit=0))
    assert plain.error == finished.error
    assert "frames" not in plain.blobs
