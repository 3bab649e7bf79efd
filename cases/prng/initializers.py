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


ONLY_ARITHMETIC_MEANS = deviation(
    "jax<0.5.1",
    error="ValueError",
    match="invalid mode for variance scaling initializer",
    reason="the mode was added in 0.5.1",
    issue="jax-ml/jax@96d3447e89b7",
)


@probe(
    source="jax-ml/jax@96d3447e89b7",
    platforms=("cpu",),
    rtol=1e-5,
    deviations=[ONLY_ARITHMETIC_MEANS],
)
def geometric_mean_of_fans(env):
    """`variance_scaling` knows the mode `fan_geo_avg` from 0.5.1 on.

    For 4 inputs and 16 outputs it gives the weights for 8 inputs.
    """

    def weights(scale, mode):
        initialize = jax.nn.initializers.variance_scaling(scale, mode, "uniform")
        return np.asarray(jax.jit(lambda key: initialize(key, (4, 16)))(jax.random.key(0)))

    return Observed(weights(1, "fan_geo_avg"), reference=np.float64(weights(0.5, "fan_in")))


ONLY_SQUARE = deviation(
    "jax<0.5.3",
    error="TypeError",
    match="unexpected keyword argument 'm'",
    reason="the argument was added in 0.5.3",
    issue="jax-ml/jax@ba428d8cdac1",
)


@probe(
    source="jax-ml/jax@ba428d8cdac1",
    platforms=("cpu",),
    rtol=1e-5,
    atol=1e-5,
    deviations=[ONLY_SQUARE],
)
def orthogonal_rows(env):
    """`jax.random.orthogonal(key, 2, m=3)` has two orthonormal rows; it works from 0.5.3 on."""
    x = np.asarray(jax.jit(lambda key: jax.random.orthogonal(key, 2, m=3))(jax.random.key(0)))
    return Observed(x @ x.T, reference=np.eye(2))
