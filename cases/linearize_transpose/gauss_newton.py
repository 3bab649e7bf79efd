"""Gauss-Newton products over sharded data: who sums over the shards?

J^T J v of residuals spread over shards is a sum of one product for each shard. Up to 0.5.3 AD
inside shard_map is local and the program writes the sum. From 0.6.0, with the check on, using a
replicated `w` beside sharded data inserts a `pvary`; its transpose is a psum, so the transposed
map has summed already, and a sum written after it counts every shard N times. Nothing is raised.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, deviation, program

from ._helpers import mapped, regression

SPECS = (P(), P("x"), P())


def local_product(w, x, v):
    """Return J^T J v of the residuals `tanh(x @ w)` by linearize and linear_transpose."""
    _, forward = jax.linearize(lambda w: jnp.tanh(x @ w), w)
    (back,) = jax.linear_transpose(forward, w)(forward(v))
    return back


def exact(w, x, v):
    """Return the product over all rows, in float64."""
    w, x, v = (np.asarray(a, np.float64) for a in (w, x, v))
    jacobian = (1 - np.tanh(x @ w) ** 2)[:, None] * x
    return jacobian.T @ (jacobian @ v)


def inputs(env):
    """Return parameters, rows, and a direction."""
    w, x, _ = regression(env)
    return w, x, env.rng(3).normal(size=3).astype(np.float32)


@program(
    source="jax-ml/jax#28260",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax>=0.6",
            params=["check_on"],
            outcome="ok",
            reason="the transpose of the implicit pvary sums already: four times too large",
            issue="jax-ml/jax#27893",
        )
    ],
)
def written_sum(env, check):
    """Local product, then psum: the code of 0.5, silently four times too large from 0.6.0."""

    def body(w, x, v):
        return lax.psum(local_product(w, x, v), "x")

    return Program(mapped(env, body, SPECS, P(), check=check), args=inputs(env), reference=exact)


@program(
    source="jax-ml/jax#28260",
    devices=4,
    facts={"collectives": {"all-reduce": 1}},
    deviations=[
        deviation(
            "jax<0.6",
            error="ValueError",
            match="out_specs which require replication",
            reason="AD inside shard_map is local: the products differ from shard to shard",
            issue="jax-ml/jax#27893",
        )
    ],
)
def transposed_sum(env):
    """No sum written: right from 0.6.0, where the transpose of the implicit pvary is the sum."""
    return Program(mapped(env, local_product, SPECS, P()), args=inputs(env), reference=exact)


@program(
    source="jax-ml/jax#28260",
    devices=4,
    facts={"collectives": {"all-reduce": 1}},
    same_as=("jit", "aot", "vmap_of_one", "unsharded"),
    deviations=[
        deviation(
            "jax>=0.8.1,<0.9",
            outcome="ok",
            match="same_as vmap_of_one: raised TypeError: .*'axis_index_groups'",
            platform="cpu",
            reason="a psum under the check cannot be batched",
            issue="jax-ml/jax#34249",
        )
    ],
)
def product_made_varying(env):
    """Varying copies of `w` and `v`, then a written psum: right; not batched on 0.8.1-0.8.3."""

    def body(w, x, v):
        w, v = env.compat.pvary((w, v), "x")
        return lax.psum(local_product(w, x, v), "x")

    return Program(mapped(env, body, SPECS, P()), args=inputs(env), reference=exact)


@program(
    source="jax-ml/jax#28260",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax>=0.6",
            params=["check_on"],
            outcome="ok",
            reason="the abstract argument is replicated, so the transpose sums already",
            issue="jax-ml/jax#27893",
        )
    ],
)
def bare_transpose(env, check):
    """`linear_transpose` alone, of a sharded matrix, at an abstract replicated argument.

    X^T r for rows spread over shards. The ShapeDtypeStruct says nothing of varying, so from
    0.6.0 it is replicated, and the transposed map sums before the written psum does.
    """
    w, x, y = regression(env)

    def body(x, y):
        back = jax.linear_transpose(lambda w: x @ w, jax.ShapeDtypeStruct(w.shape, w.dtype))
        return lax.psum(back(y)[0], "x")

    def exact_product(x, y):
        return x.astype(np.float64).T @ y.astype(np.float64)

    fn = mapped(env, body, (P("x"), P("x")), P(), check=check)
    return Program(fn, args=(x, y), reference=exact_product)
