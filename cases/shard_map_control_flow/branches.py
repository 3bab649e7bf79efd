"""`cond` and `switch` on shards: who decides, what branches return, which gradient comes back.

A branch may be taken by all shards or by each for itself. Up to 0.4.35 the check had no rule for
branches at all; to 0.5.3 it matched what branches return; from 0.6.0 on they must return one
type, variance included. What the types still do not see is a predicate that varies.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import SHARDS, SIZE, P, called, mapped, numbers


@program(
    source="jax-ml/jax#24418",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 2}},
    same_as=("jit", "aot"),
    deviations=[
        deviation(
            "jax<0.4.36",
            params=("check_on",),
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the replication check knew no cond; switch it off there",
            issue="jax-ml/jax#24418",
        )
    ],
)
def agreed_decision(env, check):
    """A branch taken by all or by none, with a sum over shards inside: normalised if too large."""

    def shard(u):
        large = lax.psum(u.sum(), "x") > 10
        return lax.cond(large, lambda u: u / lax.psum(u.sum(), "x"), lambda u: u, u)

    fn = mapped(env, shard, check=check)
    return Program(fn, args=(numbers(env),), reference=lambda u: u / np.float64(u).sum())


@program(
    source="jax-ml/jax#24418",
    devices=4,
    params={"check_on": {"check": True}},
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.36",
            params=("check_on",),
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the replication check knew no cond; switch it off there",
            issue="jax-ml/jax#24418",
        )
    ],
)
def branch_of_each_shard(env, check):
    """A `switch` by `axis_index`: four shards, four functions, none of which communicates."""
    branches = [jnp.sin, lambda u: -u, jnp.square, lambda u: u[::-1]]
    fn = mapped(env, lambda u: lax.switch(lax.axis_index("x"), branches, u), check=check)

    def exact(u):
        a, b, c, d = np.split(np.float64(u), SHARDS)
        return np.concatenate([np.sin(a), -b, c**2, d[::-1]])

    return Program(fn, args=(numbers(env),), reference=exact)


@probe(
    source="jax-ml/jax#27903",
    devices=4,
    params={"bare": {"mark": False}, "marked": {"mark": True}},
    deviations=[
        deviation(
            "jax<0.4.36",
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the replication check knew no cond; switch it off there",
            issue="jax-ml/jax#24418",
        ),
        deviation(
            "jax>=0.6",
            params=("bare",),
            error="TypeError",
            match="cond branches must have equal output types",
            reason="by design: a branch that returns a constant must mark it as varying",
            issue="jax-ml/jax#27903",
        ),
    ],
)
def constant_in_one_branch(env, mark):
    """One branch returns the shard, the other zeros made on the spot.

    Promoted silently up to 0.5.3, a TypeError since: zeros do not vary. Mark them.
    """

    def shard(u):
        def zeros(u):
            made = jnp.zeros(u.shape, u.dtype)
            return env.compat.pvary(made, "x") if mark else made

        return lax.cond(lax.psum(u.sum(), "x") > 10, zeros, lambda u: u, u)

    u = numbers(env)
    return Observed((called(env, shard, u), called(env, shard, u / 4)), (0 * u, u / 4))


@probe(
    source="jax-ml/jax#27903",
    devices=4,
    deviations=[
        deviation(
            "jax<0.4.36",
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the replication check knew no cond; switch it off there",
            issue="jax-ml/jax#24418",
        ),
        deviation(
            "jax>=0.6",
            error="TypeError",
            match="cond branches must have equal output types",
            reason="by design: branches must vary over the same axes",
            issue="jax-ml/jax#27903",
        ),
    ],
)
def branches_over_different_axes(env):
    """One branch varies over rows of the mesh, the other over columns: they need both.

    Both are right as P(("x", "y")); from 0.6.0 on each has to be marked over the other's axis.
    """
    mesh = env.mesh((2, 2), ("x", "y"))
    fn = env.compat.shard_map(
        lambda a, b, up: lax.cond(up, lambda both: both[0], lambda both: both[1], (a, b)),
        mesh=mesh,
        in_specs=(P("x"), P("y"), P()),
        out_specs=P(("x", "y")),
    )
    a = np.float32([1, 2])
    seen = [jax.jit(fn)(a, 10 * a, up) for up in (True, False)]
    return Observed(seen, [np.float64([1, 1, 2, 2]), np.float64([10, 20, 10, 20])])


@program(
    platforms=("cpu",),
    source="jax-ml/jax#40823",
    devices=4,
    deviations=[
        deviation(
            "jax<0.4.36",
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="refused, but for another reason: the check knew no cond",
            issue="jax-ml/jax#24418",
        ),
        deviation(
            "jax>=0.6",
            outcome="ok",
            reason="a result is typed by what branches return, whoever decides: accepted silently",
            issue="jax-ml/jax#40823",
        ),
        deviation(
            "jax>=0.6",
            platform="cpu-mp",
            error="RanksDiffer",
            match="rank",
            reason="accepted silently, and each process returns its own",
            issue="jax-ml/jax#40823",
        ),
    ],
)
def constants_by_varying_decision(env):
    """Each shard picks one of two constants for itself; claimed to be equal everywhere.

    The constants do not vary, so the result is typed as replicated, and one shard's is returned.
    """
    u = numbers(env) + np.float32(np.arange(SIZE) >= 8)

    def shard(u):
        return lax.cond(u.sum() > 6, lambda: jnp.float32(1), lambda: jnp.float32(2))

    fn = mapped(env, shard, out_specs=P())
    return Program(fn, args=(u,), reference=raises("ValueError|TypeError", match="out_specs|var"))


def two_or_three(env, form, *, check=True):
    """Return d/dx of 2x on the first shard and 3x on three others."""

    def shard(x):
        first = lax.axis_index("x") == 0
        if form == "where":
            return jnp.where(first, 2 * x, 3 * x)[None]
        at = env.compat.pvary(x, "x") if form == "marked" else x
        return lax.cond(first, lambda x: 2 * x, lambda x: 3 * x, at)[None]

    fn = mapped(env, shard, P(), P("x"), check=check)
    return jax.jit(jax.grad(lambda x: fn(x).sum()))(np.float32(2))


@probe(
    source="jax-ml/jax#40823",
    devices=4,
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax>=0.6",
            outcome="ok",
            reason="the sum over shards is put inside of branches that shards do not take together",
            issue="jax-ml/jax#40823",
        )
    ],
)
def gradient_by_varying_decision(env):
    """d/dx of 2x on the first shard and 3x on three others is 11; a bare `cond` gives 8, silently.

    The branches see a replicated x, so the sum over shards is put inside of them, and each shard
    sums its own. Up to 0.5.3 the shards waited in two different sums for ever; not asked there.
    """
    return Observed(two_or_three(env, "bare"), np.float64(11))


@probe(
    source="jax-ml/jax#40823",
    devices=4,
    params={
        "marked": {"form": "marked", "check": True},
        "check_off": {"form": "bare", "check": False},
    },
    deviations=[
        deviation(
            "jax<0.4.36",
            params=("marked",),
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the replication check knew no cond; switch it off there",
            issue="jax-ml/jax#24418",
        )
    ],
)
def gradient_by_varying_decision_mended(env, form, check):
    """The same with `where`, with a marked operand, or without the check: 11 on every release."""
    return Observed(two_or_three(env, form, check=check), np.float64(11))


@program(
    source="jax-ml/jax#24418",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1}},
    deviations=[
        deviation(
            "jax<0.4.36",
            params=("check_on",),
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the replication check knew no cond; switch it off there",
            issue="jax-ml/jax#24418",
        ),
        deviation(
            "jax>=0.4.36,<0.6",
            params=("check_on",),
            error="Exception",
            match="branches of cond produced mismatched replication types",
            reason="the branches of the transpose differ in what they need summed",
            issue="jax-ml/jax#24418",
        ),
    ],
)
def gradient_through_a_branch(env, check):
    """Gradient from outside by a replicated weight that only one branch uses: summed once."""
    u = numbers(env)

    def shard(w, u):
        return lax.cond(w > 1, lambda w: w * w * u, lambda _: u, w)

    fn = mapped(env, shard, (P(), P("x")), check=check)
    gradient = jax.grad(lambda w, u: fn(w, u).sum())
    return Program(
        gradient, args=(np.float32(3), u), reference=lambda w, u: 2 * w * np.float64(u).sum()
    )


@probe(
    source="jax-ml/jax#15780",
    devices=4,
    params={"check_on": {"check": True}},
    deviations=[
        deviation(
            "jax<0.4.36",
            params=("check_on",),
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the replication check knew no cond; switch it off there",
            issue="jax-ml/jax#24418",
        )
    ],
)
def index_read_by_one_branch(env, check):
    """An `axis_index` made outside of a `cond` and used in one of its branches.

    The instruction sank into the branch, where XLA did not know it was inside shard_map.
    """

    def shard(u):
        index = lax.axis_index("x")
        other = env.compat.pvary(jnp.float32(5), "x")
        return lax.cond(u[0] > 0, lambda: u < index + 1, lambda: u < other)

    u = numbers(env)
    seen = called(env, shard, u, check=check)
    return Observed(seen, u < np.repeat(np.arange(1, 5), 4))


@probe(
    source="jax-ml/jax#24418",
    devices=4,
    params={"check_on": {"check": True}},
    deviations=[
        deviation(
            "jax<0.4.36",
            params=("check_on",),
            error="NotImplementedError",
            match="No replication rule for platform_index",
            reason="the replication check knew no platform_index; switch it off there",
            issue="jax-ml/jax#24418",
        )
    ],
)
def branch_by_platform(env, check):
    """`platform_dependent` inside shard_map: a switch on the platform; no rule up to 0.4.35."""
    u = numbers(env)

    def shard(u):
        return lax.platform_dependent(u, cpu=lambda u: u + 1, default=lambda u: u - 1)

    return Observed(called(env, shard, u, check=check), u + np.float64(1))


@program(
    source="jax-ml/jax#24418",
    devices=4,
    params={"mapped_inside": {"inside": True}, "mapped_outside": {"inside": False}},
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.34",
            error="NotImplementedError",
            match="No replication rule for pmax",
            reason="the replication check knew no pmax; switch it off there",
            issue="jax-ml/jax#20335",
        ),
        deviation(
            "jax>=0.4.34,<0.4.36",
            params=("mapped_outside",),
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the replication check knew no cond; switch it off there",
            issue="jax-ml/jax#24418",
        ),
        deviation(
            "jax>=0.4.36,<0.6",
            params=("mapped_outside",),
            error="Exception",
            match="Primitive select_n requires argument replication types to match",
            reason="a batched decision becomes a select, whose parts the check did not make alike",
        ),
        deviation(
            "jax>=0.8.1,<0.9",
            error="TypeError",
            match="axis_index_groups",
            reason="the psum that the types insert cannot be batched",
            issue="jax-ml/jax#34249",
        ),
    ],
)
def batched_decision(env, inside):
    """A `cond` under `vmap`: a select, so that both branches run, and so does their psum.

    Batched inside or outside of shard_map, there is one all-reduce of all rows together.
    """

    def row(u):
        large = lax.pmax(u.max(), "x") > 1.44
        return lax.cond(large, lambda u: lax.psum(u, "x"), lambda u: -lax.psum(u, "x"), u)

    if inside:
        fn = mapped(env, jax.vmap(row), P(None, "x"), P())
    else:
        fn = jax.vmap(mapped(env, row, P("x"), P()))
    u = numbers(env).reshape(2, 8)

    def exact(u):
        total = np.float64(u).reshape(2, SHARDS, 2).sum(1)
        return np.where(u.max(1, keepdims=True) > 1.44, total, -total)

    return Program(fn, args=(u,), reference=exact)


@probe(
    source="jax-ml/jax#24418",
    devices=4,
    deviations=[
        deviation(
            "jax<0.4.36",
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the replication check knew no cond; switch it off there",
            issue="jax-ml/jax#24418",
        )
    ],
)
def branch_in_a_scan(env):
    """A `cond` in a scan, its decision carried along and made by all shards together."""

    def step(u, factor):
        mean = lax.pmean(u.mean(), "x")
        u = lax.cond(mean > 2, lambda u: u / factor, lambda u: u * factor, u)
        return u, mean

    u = numbers(env)
    factors = np.float32([2, 3, 1.5, 2])
    seen = called(
        env,
        lambda u: lax.scan(step, u, factors),
        u,
        out_specs=(P("x"), P()),
    )
    exact, means = np.float64(u), []
    for factor in np.float64(factors):
        means.append(exact.mean())
        exact = exact / factor if means[-1] > 2 else exact * factor
    return Observed(seen, (exact, np.array(means)))
