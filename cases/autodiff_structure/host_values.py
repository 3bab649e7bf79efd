"""Derivatives with values of the host: NumPy arrays and Python numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import floats

defaults(platforms=("cpu",))


UPDATE_HAS_NO_TYPE = deviation(
    "jax>=0.7,<0.10",
    error="AttributeError",
    match="has no attribute 'aval'",
    reason="the rule read the sharding from an attribute of tracers and arrays of JAX",
    issue="jax-ml/jax@07585ef42b55",
)


@probe(source="jax-ml/jax@07585ef42b55", deviations=[UPDATE_HAS_NO_TYPE])
def transpose_of_an_update_of_numpy(env):
    """The transpose of `dynamic_update_slice(x, u, (0,))` by x, for a NumPy array u, works.

    From 0.7.0 to 0.9.2, it was an AttributeError.
    """
    zeros = np.zeros(2, np.float32)
    transpose = jax.linear_transpose(
        lambda x: lax.dynamic_update_slice(x, zeros, (0,)), floats(0, 0, 0, 0)
    )
    return Observed(transpose(floats(1, 2, 3, 4))[0], reference=floats(0, 0, 3, 4))


CURVES = {
    "clip": lambda x: jnp.clip(x, 0, 1),
    "power": lambda x: x**2.0,
}


SLOPE_OF_CLIP_IS_FLOAT32 = deviation(
    "jax>=0.11.2",
    params=["clip"],
    outcome="ok",
    match="float32",
    reason="the slope at the end of the interval is not weakly typed",
)
SLOPE_OF_POWER_IS_FLOAT32 = deviation(
    "jax>=0.4.33",
    params=["power"],
    outcome="ok",
    match="float32",
    reason="the slope of the power is not weakly typed",
)


@probe(
    source="jax-ml/jax#20229",
    params=[*CURVES],
    deviations=[SLOPE_OF_CLIP_IS_FLOAT32, SLOPE_OF_POWER_IS_FLOAT32],
)
def sum_with_a_slope(env, name):
    """The slope at a Python number plus a bfloat16 is bfloat16, as the slope is weakly typed.

    From 0.4.33 on that of `x**2.0`, and from 0.11.2 on that of `jnp.clip`, is silently float32.
    """
    slope = jax.grad(CURVES[name])(1.0)
    return Observed({"dtype": (slope + jnp.bfloat16(1)).dtype.name}, {"dtype": "bfloat16"})


TYPE_OF_JAX = deviation(
    "jax>=0.7.2",
    outcome="ok",
    reason="constants of a trace keep a private type, which says whether they are weakly typed",
    issue="jax-ml/jax@b43662fe28d1",
)
CONSTANTS = {"array": lambda: np.float32([1, 2]), "number": lambda: 3.0}


@probe(source="jax-ml/jax@b43662fe28d1", params=[*CONSTANTS], deviations=[TYPE_OF_JAX])
def constant_from_a_checkpoint(env, name):
    """A value of the host that a function returns is of the same type through `jax.checkpoint`.

    Outside of jit, from 0.7.2 on, it is of a private type of JAX.
    """
    function = CONSTANTS[name]
    through = jax.checkpoint(function)()
    return Observed(type(through).__name__, reference=type(function()).__name__)
