"""Gauss-Newton products over sharded data: who sums over the shards?

J^T J v of residuals that are spread over shards is a sum of one product for each shard. Up to 0.5.3
AD inside shard_map is local, and the program writes the sum. From 0.6.0, with the check on, using a
replicated `w` together with sharded data inserts a `pvary`; its transpose is a psum, so the
transposed map has already summed, and a sum written after it counts every shard N times. No error
is raised.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, defaults, deviation, program

from ._helpers import map_over_x, regression

defaults(devices=4)

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
    """Return parameters, rows and a direction."""
    w, x, _ = regression(env)
    return w, x, env.rng(3).normal(size=3).astype(np.float32)


TRANSPOSE_SUMS_ALREADY = deviation(
    "jax>=0.6",
    params=["check_on"],
    outcome="ok",
    reason="the transpose of the implicit pvary already sums: four times too large",
    issue="jax-ml/jax#27893",
)


@program(
    source="jax-ml/jax#28260",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[TRANSPOSE_SUMS_ALREADY],
)
def written_sum(env, check):
    """A local product followed by psum is silently four times too large from 0.6.0.

    This is the code that was right in 0.5.
    """

    def body(w, x, v):
        return lax.psum(local_product(w, x, v), "x")

    return Program(
        map_over_x(env, body, SPECS, P(), check=check), args=inputs(env), reference=exact
    )


PRODUCTS_DIFFER_BETWEEN_SHARDS = deviation(
    "jax<0.6",
    error="ValueError",
    match="out_specs which require replication",
    reason="AD inside shard_map is local, so the products differ between shards",
    issue="jax-ml/jax#27893",
)


@program(
    source="jax-ml/jax#28260",
    facts={"collectives": {"all-reduce": 1}},
    deviations=[PRODUCTS_DIFFER_BETWEEN_SHARDS],
)
def transposed_sum(env):
    """Without a written sum the product is right from 0.6.0.

    The transpose of the implicit pvary is the sum.
    """
    return Program(map_over_x(env, local_product, SPECS, P()), args=inputs(env), reference=exact)


PSUM_NOT_BATCHED = deviation(
    "jax>=0.8.1,<0.9",
    outcome="ok",
    match="same_as vmap_of_one: raised TypeError: .*'axis_index_groups'",
    platform="cpu",
    reason="a psum under the check cannot be batched",
    issue="jax-ml/jax#34249",
)


@program(
    source="jax-ml/jax#28260",
    facts={"collectives": {"all-reduce": 1}},
    same_as=("jit", "aot", "vmap_of_one", "unsharded"),
    deviations=[PSUM_NOT_BATCHED],
)
def product_made_varying(env):
    """Varying copies of `w` and `v`, followed by a written psum, give the right product.

    The program cannot be batched on 0.8.1 to 0.8.3.
    """

    def body(w, x, v):
        w, v = env.compat.pvary((w, v), "x")
        return lax.psum(local_product(w, x, v), "x")

    return Program(map_over_x(env, body, SPECS, P()), args=inputs(env), reference=exact)


ABSTRACT_ARGUMENT_IS_REPLICATED = deviation(
    "jax>=0.6",
    params=["check_on"],
    outcome="ok",
    reason="the abstract argument is replicated, so the transpose already sums",
    issue="jax-ml/jax#27893",
)


@program(
    source="jax-ml/jax#28260",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[ABSTRACT_ARGUMENT_IS_REPLICATED],
)
def bare_transpose(env, check):
    """`linear_transpose` alone, of a sharded matrix, at an abstract replicated argument.

    X^T r for rows that are spread over shards. The ShapeDtypeStruct does not state any varying
    axes, so from 0.6.0 it is replicated, and the transposed map sums before the written psum does.
    """
    w, x, y = regression(env)

    def body(x, y):
        back = jax.linear_transpose(lambda w: x @ w, jax.ShapeDtypeStruct(w.shape, w.dtype))
        return lax.psum(back(y)[0], "x")

    def exact_product(x, y):
        return x.astype(np.float64).T @ y.astype(np.float64)

    fn = map_over_x(env, body, (P("x"), P("x")), P(), check=check)
    return Program(fn, args=(x, y), reference=exact_product)
