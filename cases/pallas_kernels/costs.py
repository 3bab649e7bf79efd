"""Costs of functions, as `pl.estimate_cost` counts them."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import F32

defaults(platforms=("cpu",))

COSTS = {
    "two_axes": (lambda a: jnp.tensordot(a, a, 2), (3, 3), 2 * 9),
    "no_axes": (lambda a: lax.dot_general(a, a, (((), ()), ((), ()))), (3,), 2 * 9),
    "negative_power": (lambda a: a**-3, (4,), 4 * 4),
    "positive_power": (lambda a: a**3, (4,), 4 * 3),
}
COUNTED_PER_AXIS = deviation(
    "jax<0.8.2",
    params=["two_axes", "no_axes"],
    outcome="ok",
    reason="the factor of two was counted once for each axis that is summed",
    issue="jax-ml/jax@eaf6efc1beeb",
)
LOGARITHM_OF_A_NEGATIVE = deviation(
    "jax<0.11.1",
    params=["negative_power"],
    error="ValueError",
    match="math domain error|expected a positive input",
    reason="the logarithm of the exponent was taken",
    issue="jax-ml/jax@bc43d763b26d",
)


@probe(
    source="jax-ml/jax@eaf6efc1beeb",
    releases="jax>=0.4.36",
    params=[*COSTS],
    deviations=[COUNTED_PER_AXIS, LOGARITHM_OF_A_NEGATIVE],
)
def operations_of_a_function(env, name):
    """`pl.estimate_cost` counts two operations per product, over all axes together."""
    f, sizes, exact = COSTS[name]
    return Observed(pl.estimate_cost(f, np.ones(sizes, F32)).flops, reference=exact)
