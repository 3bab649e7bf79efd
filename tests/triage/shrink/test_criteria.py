"""Criteria of candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.blobs import BlobStore
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.search.predicates import OUTPUT
from conformance.triage.shrink.criteria import SameErrorAbsence, SameFailure, SameOutputDifference
from conformance.triage.shrink.results import ScriptResult

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    """Where outputs are."""
    return BlobStore(tmp_path)


def ended(blobs: BlobStore, printed: str = "", error: str = "") -> ScriptResult:
    """Return a script that printed something, or raised."""
    type_, _, message = error.partition(": ")
    record = Record(
        case="script/one.py", cell="one", case_hash="1", cell_hash="2", stage=Stage.EXECUTE,
        outcome=Outcome.RAISED if error else Outcome.OK,
        error=ErrorInfo(type=type_, message=message, signature=error) if error else None,
        artifacts={OUTPUT: blobs.put(printed.encode())},
    )  # fmt: skip
    return ScriptResult(record, blobs)


def test_a_failure_stays_the_same(blobs: BlobStore) -> None:
    """The same error here, and none in the other cell."""
    kept = SameFailure(ended(blobs, error="ValueError: shapes (3,) and (4,) do not fit"))
    same = ended(blobs, error="ValueError: shapes (1,) and (2,) do not fit")
    assert kept.holds(same, ended(blobs))
    assert kept.holds(same, None)
    assert not kept.holds(same, same)
    assert not kept.holds(ended(blobs), ended(blobs))
    assert not kept.may_hold(ended(blobs, error="TypeError: shapes (3,) and (4,) do not fit"))


def test_a_difference_stays_of_its_kind(blobs: BlobStore) -> None:
    """Numbers may become others; a word that differs stays one that does."""
    numbers = SameOutputDifference(ended(blobs, "loss 1.5"), ended(blobs, "loss 2.5"))
    assert numbers.about == "prints 'loss 1.5' instead of 'loss 2.5'"
    assert numbers.holds(ended(blobs, "0.1"), ended(blobs, "0.2"))
    assert not numbers.holds(ended(blobs, "0.1"), ended(blobs, "0.1"))
    assert not numbers.holds(ended(blobs, "0.1"), None)
    words = SameOutputDifference(ended(blobs, "a float32 of 3"), ended(blobs, "a float64 of 3"))
    assert words.holds(ended(blobs, "float32"), ended(blobs, "float64"))
    assert not words.holds(ended(blobs, "0.1"), ended(blobs, "0.2"))
    assert not words.holds(ended(blobs, error="KeyError: 'a'"), ended(blobs, "float64"))


def test_an_error_that_is_missing_stays_missing(blobs: BlobStore) -> None:
    """It is raised in the other cell, for the same reason."""
    kept = SameErrorAbsence(ended(blobs, error="ValueError: shapes (3,) and (4,) do not fit"))
    assert kept.about == "runs, expected ValueError: shapes (3,) and (4,) do not fit"
    assert kept.holds(
        ended(blobs), ended(blobs, error="ValueError: shapes (1,) and (2,) do not fit")
    )
    assert not kept.holds(ended(blobs), ended(blobs, error="TypeError: no"))
    assert not kept.holds(ended(blobs), ended(blobs))
    assert not kept.holds(ended(blobs), None)
    assert not kept.holds(ended(blobs, error="ValueError: a"), ended(blobs, error="ValueError: a"))
