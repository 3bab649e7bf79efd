"""Variants of a program: from the events of the worker to an artifact, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.cache.results import ResultCache
from conformance.engine.record_judge import load_observation, make_record
from conformance.engine.workers.messages import JobEnd
from conformance.model.outcome import Outcome, Stage
from tests.engine.workers.test_transcript import END, ERROR, LEAF, transcript
from tests.engine.worlds import array, job

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import FinishedJob
    from conformance.model.observation import Observation

BEGUN = {"same_as": "eager"}
HEAD = {"structure": "*", "leaves": [LEAF]}
ASKED = ("jit", "eager", "aot")


def finish_job(folder: Path, *events: dict[str, Any], **done: Any) -> FinishedJob:
    """Return how a job ended whose program ran, and was run in other ways."""
    said = transcript({"stage": "execute"})
    said.take({"value": HEAD}, array(1, 2))
    said.take({"same_as": "jit"}, b"")
    said.take({"same_as": "jit", "value": HEAD}, array(3, 4))
    for event in events:
        said.take({"kind": "event", "job": "1", **event}, b"")
    return said.finish(job(folder, same_as=ASKED), JobEnd(**done))


def load_result(ended: FinishedJob, folder: Path) -> Observation:
    """Return what is stored of a job, decoded again."""
    blobs = BlobStore(folder / "blobs")
    return load_observation(make_record(ended, blobs), blobs)


def test_the_value_of_a_variant_is_an_artifact(tmp_path: Path) -> None:
    """The program's own value is unaffected."""
    ended = finish_job(tmp_path, BEGUN, {**BEGUN, "skipped": "not here"}, END)
    seen = load_result(ended, tmp_path)
    assert seen.value is not None
    assert seen.value.leaves[0].data == array(1, 2)
    jit, eager = seen.variants["jit"], seen.variants["eager"]
    assert jit.value is not None
    assert (jit.outcome, jit.value.leaves[0].data) == (Outcome.OK, array(3, 4))
    assert (eager.outcome, eager.value) == (Outcome.UNSUPPORTED, None)
    assert eager.error is not None
    assert eager.error.message == "not here"


def test_a_variant_that_raises_is_no_failure_of_the_job(tmp_path: Path) -> None:
    """The job ended well, and the variant has the error."""
    ended = finish_job(tmp_path, BEGUN, {**BEGUN, "error": ERROR}, END)
    assert (ended.outcome, ended.error) == (Outcome.OK, None)
    assert "traceback" not in ended.blobs
    eager = load_result(ended, tmp_path).variants["eager"]
    assert eager.error is not None
    assert (eager.outcome, eager.error.type) == (Outcome.RAISED, "ValueError")


@pytest.mark.parametrize(
    ("done", "outcome"),
    [
        ({"signal": 11}, Outcome.CRASHED),
        ({"ended": "timeout", "signal": 9}, Outcome.TIMED_OUT),
        ({"ended": "memory", "signal": 9}, Outcome.OUT_OF_MEMORY),
    ],
)
def test_an_end_during_a_variant_is_the_variants_ending(
    tmp_path: Path, done: dict[str, Any], outcome: Outcome
) -> None:
    """Earlier results stay, later variants are not run, and the result is not cached."""
    ended = finish_job(tmp_path, BEGUN, stderr="last words", **done)
    assert (ended.outcome, ended.stage, ended.error) == (Outcome.OK, Stage.EXECUTE, None)
    assert ended.blobs["stderr"] == b"last words"
    ways = load_result(ended, tmp_path).variants
    assert [ways[way].outcome for way in ASKED] == [Outcome.OK, outcome, Outcome.NOT_RUN]
    assert ways["aot"].error is not None
    assert ways["aot"].error.message == "eager had ended the process"
    assert not is_cached(ended, tmp_path)


def test_a_cancelled_job_is_infra(tmp_path: Path) -> None:
    """With any events before."""
    assert finish_job(tmp_path, BEGUN, ended="cancelled").outcome is Outcome.INFRA


def test_a_program_that_crashes_before_its_variants_crashes(tmp_path: Path) -> None:
    """Only a running variant can be responsible for a crash."""
    assert finish_job(tmp_path, signal=11).outcome is Outcome.CRASHED


def test_a_variant_that_raised_is_cached(tmp_path: Path) -> None:
    """It would raise again."""
    assert is_cached(finish_job(tmp_path, BEGUN, {**BEGUN, "error": ERROR}, END), tmp_path)


def is_cached(ended: FinishedJob, folder: Path) -> bool:
    """Say whether a cache stores the record of a finished job."""
    cache, blobs = ResultCache(folder / "cache"), BlobStore(folder / "blobs")
    cache.put(ended.job, make_record(ended, blobs), blobs)
    return cache.take(ended.job, blobs) is not None
