"""Derivatives of each collective, taken inside the map and outside of it.

Inside, the loss is summed over shards, so it is one number and there is one gradient. Up to 0.5.3
a sum was transposed to a sum, and the gradient of each shard was multiplied by the number of
shards. With the types of 0.6.0 it is right; without the check it is unchanged. Outside, all
gradients are right on every release. The reference is the collective as a matrix, transposed in
NumPy.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import (
    COLLECTIVES,
    RING,
    SHARDS,
    compute_shards,
    map_collective,
    map_shards,
    matrix_of,
    numbers,
    shards_of,
)

defaults(devices=4)

EXCHANGES = ("all_gather", "psum_scatter", "ppermute", "all_to_all")
"""Collectives after which the shards hold different values."""


def compute_gradient(op, x):
    """Return the gradient of the squares of a collective, summed over shards, in float64."""
    matrix = matrix_of(op, len(x))
    return 2 * matrix.T @ (matrix @ x.astype(np.float64))


def observe_gradients(env, ops, check, loss):
    """Observe the gradients that each shard computes from the losses that it sees."""
    x = numbers(env, 16)

    def body(x):
        losses = {op: lambda x, op=op: loss((COLLECTIVES[op](x) ** 2).sum()) for op in ops}
        return {op: jax.grad(fn)(x) for op, fn in losses.items()}

    fn = jax.jit(map_shards(env, body, P("x"), P("x"), check=check))
    return Observed(fn(x), reference={op: compute_gradient(op, x) for op in ops})


REPLICATED_SUM_REFUSED = deviation(
    "jax<0.4.31",
    params=["psum", "pmean"],
    error="Exception",
    match="must be applied to a device-varying replication type",
    reason="the replication check refused the sum of a value that is equal on all shards",
    issue="jax-ml/jax#19175",
)
SUMS_TRANSPOSED_TO_SUMS = deviation(
    "jax>=0.4.31,<0.6",
    params=["psum", "pmean"],
    outcome="ok",
    reason="the transpose of a sum was a sum: four times, or sixteen, as large",
    issue="jax-ml/jax#3970",
)
LOSS_SUM_TRANSPOSED_TO_SUM = deviation(
    "jax<0.6",
    params=["exchanges"],
    outcome="ok",
    reason="the transpose of a sum was a sum: four times as large",
    issue="jax-ml/jax#3970",
)


@probe(
    source="jax-ml/jax#3970",
    params={
        "psum": {"op": "psum"},
        "pmean": {"op": "pmean"},
        "exchanges": {"op": "exchanges"},
    },
    deviations=[REPLICATED_SUM_REFUSED, SUMS_TRANSPOSED_TO_SUMS, LOSS_SUM_TRANSPOSED_TO_SUM],
)
def inside(env, op):
    """Gradient, inside the map, of a loss that is summed over shards after a collective."""
    ops = EXCHANGES if op == "exchanges" else (op,)
    return observe_gradients(env, ops, True, lambda local: lax.psum(local, "x"))


PSUM_IS_ITS_TRANSPOSE = deviation(
    outcome="ok",
    reason="without the check psum is its own transpose: four times as large",
    issue="jax-ml/jax#3970",
)


@probe(source="jax-ml/jax#3970", deviations=[PSUM_IS_ITS_TRANSPOSE])
def inside_unchecked(env):
    """Without the check, the gradient of a summed loss is too large on every release.

    The factor is the number of shards. Omit the sum of the loss there: see `inside_of_local_loss`.
    """
    return observe_gradients(env, ("psum", *EXCHANGES), False, lambda local: lax.psum(local, "x"))


REPLICATED_PSUM_REFUSED = deviation(
    "jax<0.4.31",
    params=["psum"],
    error="Exception",
    match="must be applied to a device-varying replication type",
    reason="the replication check refused the sum of a value that is equal on all shards",
    issue="jax-ml/jax#19175",
)
REPLICATED_COTANGENT = deviation(
    "jax==0.6.0",
    params=["all_gather", "psum_scatter", "ppermute", "all_to_all"],
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)
LOSS_COUNTED_ONCE = deviation(
    "jax>=0.6",
    params=["psum"],
    outcome="ok",
    reason="the loss is the same on all shards, so one loss and not the sum of four: a quarter",
    issue="jax-ml/jax#3970",
)


@probe(
    source="jax-ml/jax#28193",
    params={
        "all_gather": {"op": "all_gather", "check": True},
        "psum_scatter": {"op": "psum_scatter", "check": True},
        "ppermute": {"op": "ppermute", "check": True},
        "all_to_all": {"op": "all_to_all", "check": True},
        "psum": {"op": "psum", "check": True},
        "unchecked": {"op": "all", "check": False},
    },
    deviations=[REPLICATED_PSUM_REFUSED, REPLICATED_COTANGENT, LOSS_COUNTED_ONCE],
)
def inside_of_local_loss(env, op, check):
    """Gradients, inside the map, of each shard's own loss make up the gradient of their sum.

    Collectives exchange cotangents, so the loss of every shard counts. If a collective makes the
    loss the same on all shards, as `psum` does here, it counts once since 0.6.0, four times before.
    """
    ops = ("psum", *EXCHANGES) if op == "all" else (op,)
    return observe_gradients(env, ops, check, lambda local: local)


REPLICATED_COTANGENT_UNDER_CHECK = deviation(
    "jax==0.6.0",
    params=["check_on"],
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)
MARK_TRANSPOSE_REFUSED = deviation(
    "jax>=0.8.2,<0.9.1",
    params=["check_off"],
    error="ValueError",
    match="variant->invariant collective",
    reason="the transpose of a mark without meaning was summed, and refused",
    issue="jax-ml/jax@f037af0c312f",
)
MARK_HAS_NO_EFFECT = deviation(
    "jax>=0.9.1",
    params=["check_off"],
    outcome="ok",
    reason="without the check the mark has no effect: each shard keeps its own gradient",
    issue="jax-ml/jax@f037af0c312f",
)


@probe(
    source="jax-ml/jax@f037af0c312f",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[REPLICATED_COTANGENT_UNDER_CHECK, MARK_TRANSPOSE_REFUSED, MARK_HAS_NO_EFFECT],
)
def of_a_marked_parameter(env, check):
    """Gradient through `pvary`, whose transpose is a sum over shards: not without the check.

    Code that relied on the mark to sum gradients with the check off silently gets the separate
    gradient of each shard since 0.9.1. Use `psum` there.
    """
    x = numbers(env, 8)

    def body(w, x):
        return jax.grad(lambda w: (env.compat.pvary(w, "x") * x).sum())(w)[None]

    fn = jax.jit(map_shards(env, body, (P(), P("x")), P("x"), check=check))
    return Observed(fn(np.float32(2), x), reference=np.full(SHARDS, x.sum(dtype=np.float64)))


@probe(source="jax-ml/jax#3970")
def forward_mode(env):
    """Derivatives along a direction are the collective of the direction, inside and outside."""
    x, direction = numbers(env, 16), numbers(env, 16, seed=1)
    ops = ("psum", *EXCHANGES)

    def body(x, direction):
        squares = lambda x: {op: COLLECTIVES[op](x) ** 2 for op in ops}  # noqa: E731 - short
        return jax.jvp(squares, (x,), (direction,))[1]

    inside = jax.jit(map_shards(env, body, P("x"), P("x")))(x, direction)
    squares = jax.jit(lambda x: {op: map_collective(env, op)(x) ** 2 for op in ops})
    outside = jax.jvp(squares, (x,), (direction,))[1]
    exact = {op: 2 * compute_shards(op, x) * compute_shards(op, direction) for op in ops}
    return Observed((inside, outside), reference=(exact, exact))


def build_gradient(env, op, check):
    """Return a program for the gradient of a weighted sum of the results of all shards."""

    def loss(x):
        gathered = map_collective(env, op, check=check)(x)
        return (gathered * jnp.arange(gathered.size, dtype=x.dtype)).sum()

    def exact(x):
        return matrix_of(op, len(x)).T @ np.arange(len(compute_shards(op, x)), dtype=np.float64)

    return Program(jax.grad(loss), args=(numbers(env, 16),), reference=exact)


TPU_USES_ALL_REDUCE = deviation(
    platform="tpu",
    outcome="ok",
    match="collectives",
    reason="for such a small array TPUs use an all-reduce",
)


@program(
    source="jax-ml/jax#7351",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"reduce-scatter": 1}},
    deviations=[TPU_USES_ALL_REDUCE],
)
def of_all_gather(env, check):
    """From outside: the transpose of `all_gather` is a reduce-scatter and nothing else."""
    return build_gradient(env, "all_gather", check)


@program(
    source="jax-ml/jax#7351",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-gather": 1}},
    deviations=[TPU_USES_ALL_REDUCE],
)
def of_psum_scatter(env, check):
    """From outside: the transpose of `psum_scatter` is an all-gather and nothing else."""
    return build_gradient(env, "psum_scatter", check)


@program(source="jax-ml/jax#15982", facts={"collectives": {"all-to-all": 1}})
def of_all_to_all(env):
    """From outside: the transpose of `all_to_all` is another `all_to_all`."""
    return build_gradient(env, "all_to_all", True)


@program(source="jax-ml/jax#1147", facts={"collectives": {"collective-permute": 1}})
def of_ppermute(env):
    """From outside: the transpose of a `ppermute` is the inverse permutation."""
    return build_gradient(env, "ppermute", True)


@program(
    source="jax-ml/jax#3970",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1}},
)
def of_psum(env, check):
    """From outside, with `out_specs=P("x")`: cotangents of four copies of the sum are summed."""
    return build_gradient(env, "psum", check)


@program(source="jax-ml/jax#1147", facts={"collectives": {"collective-permute": 2}})
def of_an_open_chain(env):
    """Numbers that a chain of shards drops have no derivative: the last shard gets zeros."""
    chain = RING[:-1]

    def loss(x):
        return (
            map_shards(env, lambda x: lax.ppermute(x, "x", chain), P("x"), P("x"))(x) ** 2
        ).sum()

    def exact(x):
        parts = 2 * shards_of(x)
        parts[-1] = 0
        return parts.ravel()

    return Program(jax.grad(loss), args=(numbers(env, 8),), reference=exact)


@probe(source="jax-ml/jax#15982")
def along_other_dimensions(env):
    """Transposes of `all_to_all`, `all_gather` and `psum_scatter` of matrices, by their columns.

    In one dimension a rule that uses the wrong dimension looks the same as the right rule.
    """
    x, batch = numbers(env, 8, 8), numbers(env, 4, 8, 8)
    turned, all_wide, narrow = (numbers(env, *s, seed=1) for s in ((8, 8), (4, 2, 32), (4, 8, 2)))

    def gradient(body, x, weights, out):
        fn = map_shards(env, body, P("x"), out)
        return jax.grad(lambda x: (fn(x) * weights).sum())(x)

    def seen(x, batch):
        return {
            "all_to_all": gradient(
                lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), x, turned, P(None, "x")
            ),
            "all_gather": gradient(
                lambda x: lax.all_gather(x, "x", axis=1, tiled=True)[None], x, all_wide, P("x")
            ),
            "psum_scatter": gradient(
                lambda x: lax.psum_scatter(x[0], "x", scatter_dimension=1, tiled=True)[None],
                batch, narrow, P("x"),
            ),
        }  # fmt: skip

    parts = np.split(np.float64(all_wide).sum(0), SHARDS, axis=1)
    reference = {
        "all_to_all": turned,
        "all_gather": np.concatenate(parts),
        "psum_scatter": np.stack([np.concatenate(np.float64(narrow), axis=1)] * SHARDS),
    }
    return Observed(jax.jit(seen)(x, batch), reference=reference)
