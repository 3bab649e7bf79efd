"""Judging stored records, without a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.job import FinishedJob
from conformance.engine.record_judge import Judge, make_record
from conformance.model.outcome import Conformance, Outcome, Stage
from tests.builders import f32
from tests.engine.worlds import good, job

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.model.record import Record

HLO = b"""\
HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %add.7 = f32[4]{0} add(%x, %x)
}
"""


def judge_pattern(folder: Path, pattern: dict[str, str], **blobs: bytes) -> Record:
    """Return the judged record of a job with a claim about a pattern."""
    one = job(folder, facts={"filecheck": pattern})
    store = BlobStore(folder / "blobs")
    finished = FinishedJob(job=one, outcome=Outcome.OK, stage=Stage.COMPILE, blobs=blobs)
    return Judge(store).judge(one, make_record(finished, store))


def test_values_of_the_same_process_are_judged_without_their_blobs(tmp_path: Path) -> None:
    """They are neither read back nor decoded, and the verdict is the same."""
    blobs, value = BlobStore(tmp_path / "blobs"), f32(1, 2)
    finished = good(job(tmp_path), 1, 2)
    record = make_record(finished, blobs)
    expected = Judge(blobs).judge(finished.job, record)
    assert expected.conformance is Conformance.CONFORMS
    values = {"value": value, "reference": value}
    empty = BlobStore(tmp_path / "empty")
    assert Judge(empty).judge(finished.job, record, values=values) == expected


def test_a_pattern_is_matched_in_the_canonical_form(tmp_path: Path) -> None:
    """Without names and layouts; the claim alone makes the job conform."""
    pattern = "CHECK: [[X:%parameter.1]] = f32[4] parameter()\nCHECK-NEXT: add([[X]], [[X]])"
    record = judge_pattern(tmp_path, {"hlo": pattern}, hlo=HLO)
    assert (record.conformance, record.verdict) == (Conformance.CONFORMS, "new")


@pytest.mark.parametrize(
    ("blobs", "reason"),
    [
        ({"hlo": HLO}, "filecheck of hlo: `CHECK: all-reduce` finds nothing in lines 1 to "),
        ({}, "filecheck of hlo: none was observed that is understood, claimed `CHECK: all-reduce`"),
        ({"hlo": b"HloModule x\n?"}, "filecheck of hlo: none was observed that is understood"),
    ],
)
def test_a_pattern_that_is_not_met(tmp_path: Path, blobs: dict[str, bytes], reason: str) -> None:
    """The job deviates, also without a text to match."""
    record = judge_pattern(tmp_path, {"hlo": "CHECK: all-reduce"}, **blobs)
    assert (record.conformance, record.verdict) == (Conformance.DEVIATES, "regressed")
    assert record.reasons[0].startswith(reason)
