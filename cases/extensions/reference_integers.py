"""Integers of another dtype that are written to a reference."""

from __future__ import annotations

import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import new_reference, outcome

defaults(platforms=("cpu",))

INTEGERS = {
    "narrower": (np.int32(300), np.int8),
    "unsigned": (np.int8(-1), np.uint8),
    "signed": (np.uint32(2**31 + 5), np.int32),
}
CONVERTED = deviation(
    "jax>=0.6",
    outcome="ok",
    reason="the test for weakly typed values lets integers of every dtype pass",
    issue="jax-ml/jax@4d2808c1155b",
)


@probe(source="jax-ml/jax@4d2808c1155b", params=[*INTEGERS], deviations=[CONVERTED])
def integer_of_another_dtype(env, name):
    """An integer of another dtype than the reference is refused; from 0.6.0 it is converted.

    300 is silently stored as 44 in a reference of int8.
    """
    value, dtype = INTEGERS[name]
    ref = new_reference(np.zeros(2, dtype))

    def write():
        ref[0] = value

    observed = outcome(write, "Invalid dtype")
    return Observed((observed, ref[...]), ("ValueError: Invalid dtype", np.zeros(2, dtype)))
