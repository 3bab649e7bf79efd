"""Stretches of a scan between the good end and the worst points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.stored_job import StoredJob
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import Record
from conformance.search.metrics import TIME
from conformance.search.point_predicates import MetricPredicate
from conformance.triage.bisect.stretches import MeasuredStretch, find_stretch

if TYPE_CHECKING:
    from pathlib import Path


def scan(folder: Path, seconds: list[float]) -> dict[int, list[StoredJob]]:
    """Return a sample of each point, which took so many seconds."""
    blobs = BlobStore(folder)
    return {
        number: [
            StoredJob(
                Record(
                    case="script/slow.py", cell="c", case_hash="h", cell_hash="c",
                    outcome=Outcome.OK, stage=Stage.EXECUTE, seconds={"job": each},
                ),
                blobs,
            )
        ]
        for number, each in enumerate(seconds)
    }  # fmt: skip


def test_the_stretch_furthest_from_the_good_end_is_named(tmp_path: Path) -> None:
    """Up to the threshold; points beyond it are in the timeline."""
    predicate = MetricPredicate(metric=TIME, good=1.0, bad=400.0)
    seconds = [1.0, 7.0, 9.0, 8.0, 1.5, 400.0, 2.9, 5.0]
    assert find_stretch(predicate, scan(tmp_path, seconds)) == MeasuredStretch(1, 3, 8.0)


def test_small_differences_are_no_stretch(tmp_path: Path) -> None:
    """Nor are points on the other side of the good end, slower ones where less time is bad."""
    predicate = MetricPredicate(metric=TIME, good=10.0, bad=0.1)
    assert find_stretch(predicate, scan(tmp_path, [10.0, 90.0, 4.0, 0.1])) is None
