"""Operations that the compiler joins: two constants, a function and its inverse, two writes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import f32

defaults(platforms=("cpu",))

CONSTANTS_JOINED = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the two constants were joined at compile time, as if numbers were exact",
    issue="openxla/xla#42732",
)
TWO_CONSTANTS = {
    "sum": (lambda x: (x + np.float32(1e8)) - np.float32(1e8), f32(1, 3)),
    "rounding": (lambda x: (x + np.float32(2**23)) - np.float32(2**23), f32(0.3, 1.7, 2.5)),
    "overflow": (lambda x: (x * np.float32(1e25)) * np.float32(1e-25), f32(1e20, 1)),
    "half": (lambda x: (x + np.float16(2048)) - np.float16(2048), np.float16([1, 3, 0.5])),
}


@probe(
    source="openxla/xla#42732",
    params=[*TWO_CONSTANTS],
    deviations=[CONSTANTS_JOINED],
    rtol=0,
    atol=0,
)
def two_constants(env, name):
    """Under jit, `(x + 2**23) - 2**23` rounds to a whole number from 0.12.0 on.

    Before, the result was silently x, because the two constants were joined first.
    """
    fn, x = TWO_CONSTANTS[name]
    with np.errstate(all="ignore"):
        expected = fn(x)
    return Observed(jax.jit(fn)(x), reference=expected)


INNER_FUNCTION_KEPT = deviation(
    "jax>=0.11.2",
    outcome="ok",
    reason="the inner function and the slope of the outer are computed, and one of them overflows",
    issue="jax-ml/jax#38097",
)
INVERSES = {
    "log_of_exp": (lambda x: jnp.log(jnp.exp(x)), 89),
    "log2_of_exp2": (lambda x: jnp.log2(jnp.exp2(x)), 127.5),
}


@probe(source="jax-ml/jax#38097", params=[*INVERSES], deviations=[INNER_FUNCTION_KEPT])
def derivative_of_an_inverse(env, name):
    """Under jit, the derivative of `jnp.log(jnp.exp(x))` for a large x is not 1 from 0.11.2 on.

    It is NaN, as without jit, or 0 where only the slope of the logarithm is too small.
    """
    fn, x = INVERSES[name]
    value = jax.jit(jax.grad(fn))(np.float32(x))
    return Observed(np.nan_to_num(np.asarray(value), nan=-777), reference=np.float64(1))


READ_AFTER_WRITE = deviation(
    "jax>=0.4.35",
    params=["down", "right", "slice"],
    outcome="ok",
    reason="the rows are written in place, and read after they were overwritten",
    issue="openxla/xla#49176",
)
MOVED = {
    "down": lambda y: y.at[1:].set(y[:-1])[None],
    "right": lambda y: y.at[:, 1:].set(y[:, :-1])[None],
    "slice": lambda y: lax.dynamic_update_slice(y, y[:3], (1, 0))[None],
    "flat": lambda y: y.at[1:].set(y[:-1]).reshape(-1),
    "alone": lambda y: y.at[1:].set(y[:-1]),
}


@probe(source="openxla/xla#49176", params=[*MOVED], deviations=[READ_AFTER_WRITE])
def rows_moved_in_place(env, name):
    """On a CPU under jit, `y.at[1:].set(y[:-1])[None]` is silently wrong from 0.4.35 on.

    Here y is computed in the same function; without the new axis the result is right.
    """
    x = np.arange(48, dtype=np.int32).reshape(4, 12)
    fn = MOVED[name]
    return Observed(jax.jit(lambda x: fn(x + 1))(x), reference=np.asarray(fn(jnp.asarray(x + 1))))
