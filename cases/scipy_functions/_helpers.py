"""The comparison of this family: functions of jax against SciPy and their derivatives."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed

STEP = 1e-5
"""Step of central differences in float64, whose error is near 1e-10."""


def compare_function(fn, reference, x):
    """Return the values and derivatives of an elementwise function, with those of its reference.

    Args:
        fn: Function of an array, float32.
        reference: The same in NumPy or SciPy, float64.
        x: Points, away from singularities, float64 of any shape.
    """

    def run(a):
        return jax.jvp(fn, (a,), (np.ones_like(x, np.float32),))

    value, derivative = jax.jit(run)(x.astype(np.float32))
    # The reference is evaluated at the rounded points, which jax is given.
    x = x.astype(np.float32).astype(np.float64)
    slope = (reference(x + STEP) - reference(x - STEP)) / (2 * STEP)
    return Observed(
        {"value": value, "derivative": derivative},
        {"value": np.asarray(reference(x), np.float64), "derivative": slope},
    )


def compare_values(fn, reference, *args):
    """Return the result of a jitted function of float32, with that of SciPy in float64.

    Args:
        fn: Function of arrays.
        reference: The same in NumPy or SciPy.
        args: Arrays, float64; those of other dtypes are passed unchanged.
    """
    few = [a.astype(np.float32) if a.dtype == np.float64 else a for a in args]
    exact = [a.astype(np.float64) if a.dtype == np.float32 else a for a in few]
    return Observed(jax.jit(fn)(*few), reference(*exact))
