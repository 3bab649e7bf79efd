"""`scan`, `map` and prefix sums on shards: carries of several parts, outputs, gradients.

A scan always had a rule. What changed is how a carry gets its type: found by iteration up to
0.5.3, to be stated since 0.6.0. And what its gradient costs: where the sum over shards of a
replicated weight is made, inside the loop or after it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import SHARDS, P, by_shard, called, mapped, numbers


@probe(
    source="jax-ml/jax#27903",
    devices=4,
    params={
        "bare": {"mark": False, "check": True},
        "marked": {"mark": True, "check": True},
    },
    deviations=[
        deviation(
            "jax>=0.6",
            params=("bare",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="by design: every part of a carry that comes out varying must go in varying",
            issue="jax-ml/jax#27903",
        )
    ],
)
def shifted_carry(env, mark, check):
    """A delay line of three: what enters varies at once, what leaves only two steps later.

    The start is three constants. Up to 0.5.3 the check went round until nothing changed, three
    times; since 0.6.0 all three must be marked, though only one of them meets a shard directly.
    """
    starts = tuple(np.full(4, value, np.float32) for value in (1, 2, 3))

    def shard(u):
        first = env.compat.pvary(starts, "x") if mark else starts
        return lax.scan(lambda c, _: ((c[1], c[2], u + c[0]), c[0]), first, None, length=5)[1]

    u = numbers(env)
    seen = called(env, shard, u, out_specs=P(None, "x"), check=check)
    one = np.ones(16)
    return Observed(seen, np.stack([one, 2 * one, 3 * one, u + one, u + 2 * one]))


@probe(
    source="jax-ml/jax#15481",
    devices=4,
    deviations=[
        deviation(
            "jax<0.6",
            error="Exception",
            match="Scan carry input and output got mismatched replication types",
            reason="a carry that starts as a constant has no replication to compare with a psum's",
        )
    ],
)
def replicated_outputs(env):
    """Outputs of a scan typed each for itself: a psum of each step is replicated, its input not."""

    def step(carry, row):
        total = lax.psum(row.sum(), "x")
        return carry + total, (total, row * carry)

    x = numbers(env).reshape(4, 4)
    seen = called(
        env,
        lambda x: lax.scan(step, jnp.float32(1), x, reverse=True),
        x,
        in_specs=P(None, "x"),
        out_specs=(P(), (P(), P(None, "x"))),
    )
    rows = np.float64(x)
    totals = rows.sum(1)
    carries = 1 + np.append(np.cumsum(totals[::-1])[::-1][1:], 0)
    return Observed(seen, (1 + totals.sum(), (totals, rows * carries[:, None])))


def recurrence(w, u):
    """Return the sum of a shard after three steps of u <- w u + u**2 / 4, in a scan."""
    return lax.scan(lambda c, _: (w * c + c * c / 4, None), u, None, length=3)[0].sum()


def numpy_gradient(w, u):
    """Return the derivative by w of the recurrence, summed over all numbers, in float64."""
    u, tangent = np.float64(u), np.zeros(len(u))
    for _ in range(3):
        u, tangent = w * u + u * u / 4, u + w * tangent + u * tangent / 2
    return tangent.sum()


@program(
    source="jax-ml/jax#28193",
    devices=4,
    params={"bare": {"mark": False}, "marked": {"mark": True}},
    deviations=[
        deviation(
            "jax<0.6",
            params=("bare",),
            error="ValueError",
            match="require replication which can't be statically inferred",
            reason="the gradient of a local loss is local, and the check sees that",
            issue="jax-ml/jax#28193",
        ),
        deviation(
            "jax==0.6.0",
            error="ValueError",
            match="for argument to vjp function",
            reason="grad makes a replicated cotangent for a varying loss",
            issue="jax-ml/jax#28193",
        ),
    ],
)
def weight_of_every_step(env, mark):
    """Gradient, inside, by a replicated weight that a scan uses in each step.

    Bare it is the global gradient from 0.6.1 on, and the sum over shards is made in the loop, in
    each step. With a varying copy the gradient is local and its psum stands after the loop: one
    all-reduce either way in the program's text, three or one when it runs.
    """

    def shard(w, u):
        at = env.compat.pvary(w, "x") if mark else w
        gradient = jax.grad(recurrence)(at, u)
        return lax.psum(gradient, "x") if mark else gradient

    fn = mapped(env, shard, (P(), P("x")), P())
    return Program(fn, args=(np.float32(0.5), numbers(env)), reference=numpy_gradient)


@program(
    source="jax-ml/jax#3970",
    devices=4,
    params={"check_on": {"check": True}},
    same_as=("jit", "aot", "unsharded"),
)
def gradient_of_coupled_steps(env, check):
    """Gradient from outside of a scan whose every step takes a mean over shards."""

    def shard(u):
        step = lambda c, _: (c * lax.pmean(c.mean(), "x"), None)  # noqa: E731
        return lax.scan(step, u, None, length=2)[0]

    def exact(u):
        u = np.float64(u)
        # two steps give u m**3 with m the mean; their sum is n m**4
        return np.full(len(u), 4 * u.mean() ** 3)

    fn = mapped(env, shard, check=check)
    return Program(jax.grad(lambda u: fn(u).sum()), args=(numbers(env),), reference=exact)


@program(
    source="jax-ml/jax#36886",
    devices=4,
    params={"check_on": {"check": True}},
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax==0.6.0",
            params=("check_on",),
            error="ValueError",
            match="for argument to vjp function",
            reason="grad makes a replicated cotangent for a varying loss",
            issue="jax-ml/jax#28193",
        ),
        deviation(
            "jax>=0.6.1",
            params=("check_on",),
            outcome="ok",
            reason="the gradient is summed already, by the transpose of the implicit pvary",
            issue="jax-ml/jax#36886",
        ),
    ],
)
def training_in_a_scan(env, check):
    """Four steps of descent in a scan, the parameter in the carry: `pmean` of local gradients.

    From 0.6.1 each step is four times as long, with the check on, and the loss still falls.
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

    fn = mapped(env, shard, (P(), P("x")), P(), check=check)
    return Program(fn, args=(np.float32(0.25), x), reference=exact)


@probe(
    source="jax-ml/jax#19614",
    devices=4,
    params={"check_on": {"check": True}},
    releases="jax>=0.4.31",
    deviations=[
        deviation(
            "jax>=0.8.1,<0.9",
            params=("check_on",),
            error="TypeError",
            match="axis_index_groups",
            reason="the psum that the types insert cannot be batched",
            issue="jax-ml/jax#34249",
        )
    ],
)
def mapped_in_batches(env, check):
    """`lax.map` in batches of three over four rows: a scan of batches, and a rest of one.

    Each row is multiplied by its own sum over shards, which a batch makes together.
    """
    x = numbers(env).reshape(4, 4)
    fn = lambda row: row * lax.psum(row, "x")  # noqa: E731
    seen = called(
        env,
        lambda x: lax.map(fn, x, batch_size=3),
        x,
        in_specs=P(None, "x"),
        out_specs=P(None, "x"),
        check=check,
    )
    rows = np.float64(x)
    return Observed(seen, rows * rows.sum(1, keepdims=True))


@program(
    source="jax-ml/jax#15481",
    devices=4,
    facts={"collectives": {"all-gather": 1}},
    deviations=[
        deviation(
            platform="tpu",
            outcome="ok",
            match="collectives",
            reason="of so small an array a TPU makes an all-reduce",
        ),
    ],
)
def prefix_sums_over_all(env):
    """Running sums over all shards: a local `associative_scan`, offsets from an `all_gather`."""

    def shard(u):
        local = lax.associative_scan(jnp.add, u)
        before = jnp.arange(SHARDS) < lax.axis_index("x")
        return local + jnp.where(before, lax.all_gather(local[-1], "x"), 0).sum()

    return Program(
        mapped(env, shard), args=(numbers(env),), reference=lambda u: np.cumsum(u, dtype=np.float64)
    )


@probe(source="jax-ml/jax#15481", devices=4)
def cumulative_operations(env):
    """`cumsum`, `cumprod`, `cummax`, `cumlogsumexp`, `sort` and `top_k` of each shard."""
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
    return Observed(called(env, shard, u), tuple(by_shard(fn, u) for fn in exact))
