"""Cotangents passed to vjp inside shard_map: which type must they have?

From 0.6.0 the cotangent of a varying output must vary, too. In 0.6.0 `value_and_grad` itself
created a replicated cotangent and failed on plain local functions. Code that writes
`vjp(f, x)[1](1.0)` fails for the same reason, also in later releases. From 0.7.0 `ones_like` of the
output varies as it should.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, deviation, program

from ._helpers import SHARDS, map_over_x


def mean_square(x):
    """Return the mean of the squares of the local numbers."""
    return jnp.mean(x**2)


def exact(x):
    """Return value and gradient of `mean_square` on each shard, in float64."""
    shards = x.astype(np.float64).reshape(SHARDS, -1)
    return np.mean(shards**2, axis=1), (2 * shards / shards.shape[1]).reshape(-1)


def exact_gradient(x):
    """Return only the gradient."""
    return exact(x)[1]


def numbers(env):
    """Return eight numbers, two for each shard."""
    return env.rng(2).normal(size=8).astype(np.float32)


REPLICATED_COTANGENT = deviation(
    "jax==0.6.0",
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)


@program(source="jax-ml/jax#28193", devices=4, deviations=[REPLICATED_COTANGENT])
def value_and_grad_sharded(env):
    """`value_and_grad` of a local loss by sharded numbers works, except in 0.6.0.

    This is the program of the report.
    """

    def body(x):
        value, gradient = jax.value_and_grad(mean_square)(x)
        return jnp.atleast_1d(value), gradient

    fn = map_over_x(env, body, P("x"), (P("x"), P("x")))
    return Program(fn, args=(numbers(env),), reference=exact)


LITERAL_DOES_NOT_VARY = deviation(
    "jax>=0.6",
    params=["one"],
    error="ValueError",
    match="for argument to (vjp|VJP) function",
    reason="a literal does not vary, but the output does",
    issue="jax-ml/jax#29832",
)
FULL_LIKE_FORGETS_AXES = deviation(
    "jax>=0.6,<0.7",
    params=["ones_like", "full_like", "lax_full_like"],
    error="ValueError",
    match="for argument to vjp function",
    reason="full_like forgets the axes over which its argument varies",
    issue="jax-ml/jax#29965",
)


@program(
    source="jax-ml/jax#29965",
    devices=4,
    params={
        "one": {"make": "one"},
        "ones_like": {"make": "ones_like"},
        "full_like": {"make": "full_like"},
        "lax_full_like": {"make": "lax_full_like"},
    },
    deviations=[LITERAL_DOES_NOT_VARY, FULL_LIKE_FORGETS_AXES],
)
def handmade_cotangent(env, make):
    """Four ways to make a cotangent of one for vjp, which needs the type of the output.

    A literal one is replicated; the `like` functions should return the type of the output,
    including the axes over which it varies.
    """

    def body(x):
        y, back = jax.vjp(mean_square, x)
        cotangent = {
            "one": lambda: jnp.float32(1),
            "ones_like": lambda: jnp.ones_like(y),
            "full_like": lambda: jnp.full_like(y, 1),
            "lax_full_like": lambda: lax.full_like(y, 1),
        }[make]()
        return back(cotangent)[0]

    fn = map_over_x(env, body, P("x"), P("x"))
    return Program(fn, args=(numbers(env),), reference=exact_gradient)
