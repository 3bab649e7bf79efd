"""The comparison of this family: functions of arrays without elements against NumPy."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed

SHAPES = ((0,), (0, 3), (3, 0))
SQUARE = ((0, 0),)


def compare(fn, shapes=SHAPES, dtype=np.float32):
    """Return the results of a jitted function for empty arrays of some shapes, with NumPy's.

    Args:
        fn: Function of a namespace, `jnp` or `np`, and an array.
        shapes: Shapes of the arrays.
        dtype: Type of the arrays.
    """
    observed, expected = {}, {}
    for shape in shapes:
        x = np.zeros(shape, dtype)
        observed[str(shape)] = describe(lambda x=x: jax.jit(lambda a: fn(jnp, a))(x))
        expected[str(shape)] = describe(lambda x=x: fn(np, x))
    return Observed(observed, expected)


def describe(call):
    """Return shape and elements of each array of a result as text, or the type of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            leaves = jax.tree_util.tree_leaves(call())
    except Exception as error:  # noqa: BLE001 - the type of the error is the observation
        return "error" if isinstance(error, (TypeError, ValueError, IndexError)) else repr(error)
    return "; ".join(f"{np.shape(leaf)} {np.ravel(leaf).tolist()}" for leaf in leaves)
