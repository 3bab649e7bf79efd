"""Results as text."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.fuzz.batches import ProgramResult
from conformance.fuzz.result_text import LONGEST, render_leaf, render_result
from conformance.model.outcome import Outcome
from conformance.model.value import Leaf


def make_leaf(array: Any, **changes: Any) -> Leaf:
    """Return an array as a leaf."""
    fields = {"kind": "array", "dtype": array.dtype.name, "shape": array.shape}
    return Leaf(path="out", data=array.tobytes(), **(fields | changes))


@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        (make_leaf(np.array([1, 2], "int32")), "int32[2] [1, 2]"),
        (make_leaf(np.array(1.5, "float32"), weak_type=True), "weak float32 1.5"),
        (make_leaf(np.array([1, np.nan], ml_dtypes.bfloat16)), "bfloat16[2] [ 1., nan]"),
        (make_leaf(np.zeros((0, 2), "bool")), "bool[0,2] []"),
        (
            make_leaf(np.arange(40, dtype="uint8"), sharding="replicated[4]"),
            "uint8[40] [ 0, 1, 2, ..., 37, 38, 39] on replicated[4]",
        ),
        (Leaf(path="out", kind="python", dtype="str", data=b"'float0'"), "'float0'"),
    ],
)
def test_a_leaf_shows_its_type_and_elements(leaf: Leaf, text: str) -> None:
    """And where it is, unless that is one device."""
    assert render_leaf(leaf) == text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ProgramResult(), "no result"),
        (ProgramResult(outcome=Outcome.CRASHED, error="SIGSEGV", message="..."), "crashed"),
        (ProgramResult(outcome=Outcome.TIMED_OUT), "timed out"),
        (
            ProgramResult(outcome=Outcome.RAISED, error="TypeError", message="a\nb"),
            "TypeError: a",
        ),
    ],
)
def test_a_result_that_is_no_value_shows_its_ending(result: ProgramResult, text: str) -> None:
    """An error shows the first line of its message."""
    assert render_result(result) == text


def test_a_long_result_is_cut() -> None:
    """At the end."""
    result = ProgramResult(outcome=Outcome.RAISED, error="TypeError", message="x" * 1000)
    assert len(render_result(result)) == LONGEST
