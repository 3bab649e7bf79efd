"""`scan`, `map` and prefix sums on shards: carries of several parts, outputs, gradients.

The check always had a rule for a scan. Two things changed. The type of a carry was found by
iteration up to 0.5.3 and must be stated from 0.6.0 on. The cost of a gradient depends on whether
the sum over shards of a replicated weight is made inside the loop or after it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import SHARDS, P, apply_by_shard, call_mapped, map_shards, numbers

defaults(devices=4)


CARRY_MUST_START_VARYING = deviation(
    "jax>=0.6",
    params=("bare",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="by design: every part of a carry that comes out varying must start as varying",
    issue="jax-ml/jax#27903",
)


@probe(
    source="jax-ml/jax#27903",
    params={
        "bare": {"mark": False, "check": True},
        "marked": {"mark": True, "check": True},
    },
    deviations=[CARRY_MUST_START_VARYING],
)
def shifted_carry(env, mark, check):
    """In a delay line of three, the input varies at once and the output only two steps later.

    The line starts from three constants. Up to 0.5.3 the check iterated until nothing changed,
    three times. From 0.6.0 on all three must be marked, though only one of them meets a shard
    directly.
    """
    starts = tuple(np.full(4, value, np.float32) for value in (1, 2, 3))

    def shard(u):
        first = env.compat.pvary(starts, "x") if mark else starts
        return lax.scan(lambda c, _: ((c[1], c[2], u + c[0]), c[0]), first, None, length=5)[1]

    u = numbers(env)
    observed = call_mapped(env, shard, u, out_specs=P(None, "x"), check=check)
    ones = np.ones(16)
    return Observed(observed, np.stack([ones, 2 * ones, 3 * ones, u + ones, u + 2 * ones]))


CONSTANT_HAS_NO_REPLICATION = deviation(
    "jax<0.6",
    error="Exception",
    match="Scan carry input and output got mismatched replication types",
    reason="a carry that starts as a constant has no replication to compare with that of a psum",
)


@probe(source="jax-ml/jax#15481", deviations=[CONSTANT_HAS_NO_REPLICATION])
def replicated_outputs(env):
    """Each output of a scan has a separate type: replicated for a psum, varying for its input."""

    def step(carry, row):
        total = lax.psum(row.sum(), "x")
        return carry + total, (total, row * carry)

    x = numbers(env).reshape(4, 4)
    observed = call_mapped(
        env,
        lambda x: lax.scan(step, jnp.float32(1), x, reverse=True),
        x,
        in_specs=P(None, "x"),
        out_specs=(P(), (P(), P(None, "x"))),
    )
    rows = np.float64(x)
    totals = rows.sum(1)
    carries = 1 + np.append(np.cumsum(totals[::-1])[::-1][1:], 0)
    return Observed(observed, (1 + totals.sum(), (totals, rows * carries[:, None])))


def recurrence(w, u):
    """Return the sum of a shard after three steps of u <- w u + u**2 / 4, in a scan."""
    return lax.scan(lambda c, _: (w * c + c * c / 4, None), u, None, length=3)[0].sum()


def numpy_gradient(w, u):
    """Return the derivative of the recurrence by w, summed over all numbers, in float64."""
    u, tangent = np.float64(u), np.zeros(len(u))
    for _ in range(3):
        u, tangent = w * u + u * u / 4, u + w * tangent + u * tangent / 2
    return tangent.sum()


LOCAL_GRADIENT_IS_LOCAL = deviation(
    "jax<0.6",
    params=("bare",),
    error="ValueError",
    match="require replication which can't be statically inferred",
    reason="the gradient of a local loss is local, and the check detects it",
    issue="jax-ml/jax#28193",
)
REPLICATED_COTANGENT = deviation(
    "jax==0.6.0",
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)


@program(
    source="jax-ml/jax#28193",
    params={"bare": {"mark": False}, "marked": {"mark": True}},
    deviations=[LOCAL_GRADIENT_IS_LOCAL, REPLICATED_COTANGENT],
)
def weight_of_every_step(env, mark):
    """The gradient by a weight of each step of a scan is summed in the loop or after it.

    It is taken inside shard_map, by a replicated weight. Bare, it is the global gradient from 0.6.1
    on, and the sum over shards is made in the loop, in each step. With a varying copy of the weight
    the gradient is local, and its psum comes after the loop. The text of the program has one
    all-reduce either way; three or one are executed.
    """

    def shard(w, u):
        weight = env.compat.pvary(w, "x") if mark else w
        gradient = jax.grad(recurrence)(weight, u)
        return lax.psum(gradient, "x") if mark else gradient

    fn = map_shards(env, shard, (P(), P("x")), P())
    return Program(fn, args=(np.float32(0.5), numbers(env)), reference=numpy_gradient)


@program(
    source="jax-ml/jax#3970",
    params={"check_on": {"check": True}},
    same_as=("jit", "aot", "unsharded"),
)
def gradient_of_coupled_steps(env, check):
    """The gradient from outside of a scan in which every step takes a mean over shards."""

    def shard(u):
        step = lambda c, _: (c * lax.pmean(c.mean(), "x"), None)  # noqa: E731
        return lax.scan(step, u, None, length=2)[0]

    def exact(u):
        u = np.float64(u)
        # two steps give u m**3 with m the mean; their sum is n m**4
        return np.full(len(u), 4 * u.mean() ** 3)

    fn = map_shards(env, shard, check=check)
    return Program(jax.grad(lambda u: fn(u).sum()), args=(numbers(env),), reference=exact)


REPLICATED_COTANGENT_UNDER_CHECK = deviation(
    "jax==0.6.0",
    params=("check_on",),
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)
GRADIENT_SUMMED_ALREADY = deviation(
    "jax>=0.6.1",
    params=("check_on",),
    outcome="ok",
    reason="the transpose of the implicit pvary has already summed the gradient",
    issue="jax-ml/jax#36886",
)


@program(
    source="jax-ml/jax#36886",
    params={"check_on": {"check": True}},
    platforms=("cpu",),
    deviations=[REPLICATED_COTANGENT_UNDER_CHECK, GRADIENT_SUMMED_ALREADY],
)
def training_in_a_scan(env, check):
    """Four steps of descent in a scan use the `pmean` of local gradients by the carried parameter.

    From 0.6.1 on, with the check on, each step is four times as long, and the loss still falls.
    """
    x = numbers(env)

    def shard(w, x):
        def step(w, _):
            gradient = jax.grad(lambda w: ((w * x - 1) ** 2).mean())(w)
            return w - lax.pmean(gradient, "x") / 16, None

        return lax.scan(step, w, None, length=4)[0]

    def exact(w, x):
        x = np.float64(x)
        for _ in range(4):
            w = w - (2 * (w * x - 1) * x).mean() / 16
        return np.float64(w)

    fn = map_shards(env, shard, (P(), P("x")), P(), check=check)
    return Program(fn, args=(np.float32(0.25), x), reference=exact)


INSERTED_PSUM_NOT_BATCHED = deviation(
    "jax>=0.8.1,<0.9",
    params=("check_on",),
    error="TypeError",
    match="axis_index_groups",
    reason="the inserted psum cannot be batched",
    issue="jax-ml/jax#34249",
)


@probe(
    source="jax-ml/jax#19614",
    params={"check_on": {"check": True}},
    releases="jax>=0.4.31",
    deviations=[INSERTED_PSUM_NOT_BATCHED],
)
def mapped_in_batches(env, check):
    """`lax.map` over four rows in batches of three is a scan of batches and a remainder of one row.

    Each row is multiplied by its sum over shards, which is computed for a batch at once.
    """
    x = numbers(env).reshape(4, 4)
    fn = lambda row: row * lax.psum(row, "x")  # noqa: E731
    observed = call_mapped(
        env,
        lambda x: lax.map(fn, x, batch_size=3),
        x,
        in_specs=P(None, "x"),
        out_specs=P(None, "x"),
        check=check,
    )
    rows = np.float64(x)
    return Observed(observed, rows * rows.sum(1, keepdims=True))


TPU_USES_ALL_REDUCE = deviation(
    platform="tpu",
    outcome="ok",
    match="collectives",
    reason="for so small an array a TPU uses an all-reduce",
)


@program(
    source="jax-ml/jax#15481",
    facts={"collectives": {"all-gather": 1}},
    deviations=[TPU_USES_ALL_REDUCE],
)
def prefix_sums_over_all(env):
    """Running sums over all shards: a local `associative_scan` with offsets from `all_gather`."""

    def shard(u):
        local = lax.associative_scan(jnp.add, u)
        before = jnp.arange(SHARDS) < lax.axis_index("x")
        return local + jnp.where(before, lax.all_gather(local[-1], "x"), 0).sum()

    return Program(
        map_shards(env, shard),
        args=(numbers(env),),
        reference=lambda u: np.cumsum(u, dtype=np.float64),
    )


@probe(source="jax-ml/jax#15481")
def cumulative_operations(env):
    """`cumsum`, `cumprod`, `cummax`, `cumlogsumexp`, `sort` and `top_k` run on each shard."""
    u = numbers(env)

    def shard(u):
        return (
            lax.cumsum(u),
            lax.cumprod(u, reverse=True),
            lax.cummax(u),
            lax.cumlogsumexp(u),
            lax.sort(u),
            lax.top_k(u, 2)[0],
        )

    exact = (
        np.cumsum,
        lambda u: np.cumprod(u[::-1])[::-1],
        np.maximum.accumulate,
        np.logaddexp.accumulate,
        np.sort,
        lambda u: np.sort(u)[:1:-1],
    )
    return Observed(call_mapped(env, shard, u), tuple(apply_by_shard(fn, u) for fn in exact))
