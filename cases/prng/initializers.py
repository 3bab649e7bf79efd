"""Initial weights of layers."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, deviation, probe

ROUNDED_TWICE = deviation(
    "jax<0.12",
    outcome="ok",
    reason="outside jit, a rounded normal number was multiplied by the standard deviation",
)


@probe(source="jax-ml/jax@7344c28d778a", platforms=("cpu",), deviations=[ROUNDED_TWICE])
def weights_outside_jit(env):
    """`nn.initializers.normal` gives the same weights with and without jit from 0.12.0 on.

    Before, a quarter of those outside jit were an ulp off. They changed in 0.12.0, and those under
    jit did not.
    """
    key, initialize = jax.random.key(0), jax.nn.initializers.normal(0.02)
    outside = np.asarray(initialize(key, (1000,)))
    inside = np.asarray(jax.jit(lambda key: initialize(key, (1000,)))(key))
    return Observed({"equal": bool((outside == inside).all())}, {"equal": True})
