"""Criteria of candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.cache.blobs import BlobStore
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


def test_same_failure_compares_type_and_message(blobs: BlobStore) -> None:
    """And requires that the good cell does not fail."""
    kept = SameFailure(ended(blobs, error="ValueError: shapes (3,) and (4,) do not fit"))
    same = ended(blobs, error="ValueError: shapes (1,) and (2,) do not fit")
    assert kept.holds(same, ended(blobs))
    assert kept.holds(same, None)
    assert not kept.holds(same, same)
    assert not kept.holds(ended(blobs), ended(blobs))
    assert not kept.may_hold(ended(blobs, error="TypeError: shapes (3,) and (4,) do not fit"))


def test_output_difference_keeps_its_words(blobs: BlobStore) -> None:
    """Numbers may change."""
    numbers = SameOutputDifference(ended(blobs, "loss 1.5"), ended(blobs, "loss 2.5"))
    assert numbers.about == "prints 'loss 1.5' instead of 'loss 2.5'"
    assert numbers.holds(ended(blobs, "0.1"), ended(blobs, "0.2"))
    assert not numbers.holds(ended(blobs, "0.1"), ended(blobs, "0.1"))
    assert not numbers.holds(ended(blobs, "0.1"), None)
    words = SameOutputDifference(ended(blobs, "a float32 of 3"), ended(blobs, "a float64 of 3"))
    assert words.holds(ended(blobs, "float32"), ended(blobs, "float64"))
    assert not words.holds(ended(blobs, "0.1"), ended(blobs, "0.2"))
    assert not words.holds(ended(blobs, error="KeyError: 'a'"), ended(blobs, "float64"))


def test_absent_error_is_still_raised_in_the_good_cell(blobs: BlobStore) -> None:
    """For the same reason."""
    kept = SameErrorAbsence(ended(blobs, error="ValueError: shapes (3,) and (4,) do not fit"))
    assert kept.about == "runs, expected ValueError: shapes (3,) and (4,) do not fit"
    assert kept.holds(
        ended(blobs), ended(blobs, error="ValueError: shapes (1,) and (2,) do not fit")
    )
    assert not kept.holds(ended(blobs), ended(blobs, error="TypeError: no"))
    assert not kept.holds(ended(blobs), ended(blobs))
    assert not kept.holds(ended(blobs), None)
    assert not kept.holds(ended(blobs, error="ValueError: a"), ended(blobs, error="ValueError: a"))
