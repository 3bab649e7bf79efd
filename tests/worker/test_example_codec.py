"""Values as JSON between processes of different Pythons."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.kit.strategies import Strategy
from conformance.worker.example_codec import decode, encode, find_dtype
from tests.laws.test_spelling import PLAIN


@given(PLAIN | st.complex_numbers())
def test_what_is_decoded_is_what_was_encoded(value: Any) -> None:
    """Also types and dtypes."""
    found = decode(json.loads(json.dumps(encode(value))))
    np.testing.assert_equal(found, value)
    assert type(found) is type(value)
    assert getattr(found, "dtype", None) == getattr(value, "dtype", None)


def test_arrays_may_be_written() -> None:
    """A case may change its input."""
    found = decode(encode(np.zeros(2)))
    found[0] = 1
    assert found[0] == 1


def test_arrays_arrive_in_native_byte_order() -> None:
    """JAX has no other."""
    assert decode(encode(np.array([1], ">i2"))).tolist() == [1]


def test_strategies_and_dtypes_are_encoded() -> None:
    """Those of ml_dtypes, too."""
    strategy = Strategy("arrays", (np.float32, (2,)), {"elements": Strategy("just", (1,))})
    assert decode(encode(strategy)) == Strategy(
        "arrays", (np.dtype("float32"), (2,)), {"elements": Strategy("just", (1,))}
    )
    assert decode({"dtype": "bfloat16"}) == find_dtype("bfloat16")
    assert decode(encode(np.array([1.5], find_dtype("bfloat16")))).dtype.name == "bfloat16"


@pytest.mark.parametrize("value", [object(), abs, {1}, b"bytes", np.array(["text"])])
def test_other_values_are_refused(value: object) -> None:
    """Without their text, which may have an address."""
    with pytest.raises(TypeError, match=f"^a {type(value).__name__} is no plain data$"):
        encode([value])


def test_malformed_data_are_refused() -> None:
    """They come from another process."""
    with pytest.raises(ValueError, match="is no encoded value"):
        decode({"unknown": 1})
