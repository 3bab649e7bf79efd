"""Arrays of indices of columns of a mutable array, which select as they do in NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import new_reference

AXIS_OF_INDICES_FIRST = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the axis of an array of indices came first, wherever the array is",
    issue="jax-ml/jax@9f5f6edb8548",
)
defaults(platforms=("cpu",), source="jax-ml/jax@9f5f6edb8548", deviations=[AXIS_OF_INDICES_FIRST])

COLUMNS = np.array([2, 0], np.int32)


def matrix():
    """Return a matrix of two rows and three columns."""
    return np.arange(6, dtype=np.float32).reshape(2, 3)


@probe(params={"jit": {"jit": True}, "eager": {"jit": False}})
def columns_of_a_reference(env, jit):
    """`ref[:, columns]` is the matrix of these columns; up to 0.5.3 it was silently transposed."""

    def read(x):
        return new_reference(x)[:, COLUMNS]

    return Observed((jax.jit(read) if jit else read)(matrix()), reference=matrix()[:, COLUMNS])


@probe(params=["set", "add"])
def columns_written_to_a_reference(env, name):
    """`ref[:, columns] = x` writes each column of x; up to 0.5.3 it silently wrote its rows."""
    numbers = np.float32([[10, 20], [30, 40]])

    @jax.jit
    def write(x):
        ref = new_reference(x)
        if name == "set":
            ref[:, COLUMNS] = jnp.asarray(numbers)
        else:
            ref[:, COLUMNS] += jnp.asarray(numbers)
        return ref[...]

    exact = matrix()
    exact[:, COLUMNS] = numbers + (exact[:, COLUMNS] if name == "add" else 0)
    return Observed(write(matrix()), reference=exact)
