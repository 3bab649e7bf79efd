"""Conversions of NumPy arrays by `lax.convert_element_type`: XLA makes them, or NumPy does."""

from __future__ import annotations

import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))

WRAPPED_IN_ONE_RELEASE = deviation(
    "jax>=0.7.2,<0.8",
    outcome="ok",
    reason="NumPy converts the array: out of range, it wraps or gives the least integer",
    issue="jax-ml/jax@b43662fe28d1",
)
WRAPPED = deviation(
    "jax>=0.11",
    outcome="ok",
    reason="NumPy converts the array again",
    issue="jax-ml/jax@f7337b26486d",
)
OUT_OF_RANGE = {
    "negative": {"value": -1.0, "dtype": "uint8", "limit": 0},
    "too_large": {"value": 300.0, "dtype": "uint8", "limit": 255},
    "infinite": {"value": 1e39, "dtype": "int32", "limit": 2147483647},
}


@probe(
    source="jax-ml/jax@f7337b26486d",
    params=OUT_OF_RANGE,
    deviations=[WRAPPED_IN_ONE_RELEASE, WRAPPED],
)
def conversion_out_of_range(env, value, dtype, limit):
    """A float of a NumPy array that the integer dtype cannot hold becomes its nearest number."""
    with np.errstate(over="ignore", invalid="ignore"):
        result = lax.convert_element_type(np.float32([value, 7]), np.dtype(dtype))
    return Observed(result, reference=np.array([limit, 7], dtype))


TWICE = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the array was converted to float32 before",
    issue="jax-ml/jax@b43662fe28d1",
)
TWICE_AGAIN = deviation(
    "jax>=0.8,<0.11",
    outcome="ok",
    reason="the array is converted to float32 before",
    issue="jax-ml/jax@6a3f1e3c7b91",
)
OF_64_BITS = {
    "integer": {"value": 16777217.0, "dtype": "int32"},
    "half": {"value": 1.0004882812509095, "dtype": "float16"},
    "boolean": {"value": 1e-50, "dtype": "bool"},
}


@probe(
    source="jax-ml/jax@f7337b26486d",
    params=OF_64_BITS,
    rtol=0,
    deviations=[TWICE, TWICE_AGAIN],
)
def conversion_of_double_precision(env, value, dtype):
    """A float64 of a NumPy array is rounded once, without x64, too."""
    x = np.float64([value, 3])
    result = lax.convert_element_type(x, np.dtype(dtype))
    return Observed(result, reference=x.astype(dtype))
