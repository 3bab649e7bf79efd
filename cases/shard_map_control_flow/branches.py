"""`cond` and `switch` on shards: decisions, results of branches, and gradients.

All shards may take the same branch, or each shard its own. Up to 0.4.35 the check had no rule for
branches. Up to 0.5.3 it reconciled the results of the branches. From 0.6.0 on all branches must
return the same type, variance included. The types still ignore a predicate that varies.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program, raises

from ._helpers import SHARDS, SIZE, P, call_mapped, map_shards, numbers

defaults(devices=4)


NO_RULE_FOR_COND_UNDER_CHECK = deviation(
    "jax<0.4.36",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for cond",
    reason="the replication check had no rule for cond; switch it off in these releases",
    issue="jax-ml/jax#24418",
)


@program(
    source="jax-ml/jax#24418",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 2}},
    same_as=("jit", "aot"),
    deviations=[NO_RULE_FOR_COND_UNDER_CHECK],
)
def agreed_decision(env, check):
    """All shards take the same branch, with a psum in it: `u` is normalised if it is too large."""

    def shard(u):
        large = lax.psum(u.sum(), "x") > 10
        return lax.cond(large, lambda u: u / lax.psum(u.sum(), "x"), lambda u: u, u)

    fn = map_shards(env, shard, check=check)
    return Program(fn, args=(numbers(env),), reference=lambda u: u / np.float64(u).sum())


@program(
    source="jax-ml/jax#24418",
    params={"check_on": {"check": True}},
    platforms=("cpu",),
    deviations=[NO_RULE_FOR_COND_UNDER_CHECK],
)
def branch_of_each_shard(env, check):
    """A `switch` by `axis_index` gives four shards four functions, none of which communicates."""
    branches = [jnp.sin, lambda u: -u, jnp.square, lambda u: u[::-1]]
    # no branch communicates, so shards may take different branches without a deadlock
    fn = map_shards(env, lambda u: lax.switch(lax.axis_index("x"), branches, u), check=check)

    def exact(u):
        a, b, c, d = np.split(np.float64(u), SHARDS)
        return np.concatenate([np.sin(a), -b, c**2, d[::-1]])

    return Program(fn, args=(numbers(env),), reference=exact)


NO_RULE_FOR_COND = deviation(
    "jax<0.4.36",
    error="NotImplementedError",
    match="No replication rule for cond",
    reason="the replication check had no rule for cond; switch it off in these releases",
    issue="jax-ml/jax#24418",
)
BRANCH_CONSTANT_UNMARKED = deviation(
    "jax>=0.6",
    params=("bare",),
    error="TypeError",
    match="cond branches must have equal output types",
    reason="by design: a branch that returns a constant must mark it as varying",
    issue="jax-ml/jax#27903",
)


@probe(
    source="jax-ml/jax#27903",
    params={"bare": {"mark": False}, "marked": {"mark": True}},
    deviations=[NO_RULE_FOR_COND, BRANCH_CONSTANT_UNMARKED],
)
def constant_in_one_branch(env, mark):
    """One branch returns the shard, the other returns zeros made in the branch.

    The zeros do not vary. They were promoted silently up to 0.5.3; from 0.6.0 on they are a
    TypeError. Mark them.
    """

    def shard(u):
        def zeros(u):
            constant = jnp.zeros(u.shape, u.dtype)
            return env.compat.pvary(constant, "x") if mark else constant

        return lax.cond(lax.psum(u.sum(), "x") > 10, zeros, lambda u: u, u)

    u = numbers(env)
    return Observed((call_mapped(env, shard, u), call_mapped(env, shard, u / 4)), (0 * u, u / 4))


BRANCH_AXES_DIFFER = deviation(
    "jax>=0.6",
    error="TypeError",
    match="cond branches must have equal output types",
    reason="by design: branches must vary over the same axes",
    issue="jax-ml/jax#27903",
)


@probe(source="jax-ml/jax#27903", deviations=[NO_RULE_FOR_COND, BRANCH_AXES_DIFFER])
def branches_over_different_axes(env):
    """One branch varies over rows of the mesh, the other over columns; the result needs both.

    Both results are valid as P(("x", "y")). From 0.6.0 on, each must be marked as varying over the
    axis of the other.
    """
    mesh = env.mesh((2, 2), ("x", "y"))
    fn = env.compat.shard_map(
        lambda a, b, up: lax.cond(up, lambda both: both[0], lambda both: both[1], (a, b)),
        mesh=mesh,
        in_specs=(P("x"), P("y"), P()),
        out_specs=P(("x", "y")),
    )
    a = np.float32([1, 2])
    observed = [jax.jit(fn)(a, 10 * a, up) for up in (True, False)]
    return Observed(observed, [np.float64([1, 1, 2, 2]), np.float64([10, 20, 10, 20])])


REFUSED_WITHOUT_COND_RULE = deviation(
    "jax<0.4.36",
    error="NotImplementedError",
    match="No replication rule for cond",
    reason="refused for another reason: the replication check had no rule for cond",
    issue="jax-ml/jax#24418",
)
PREDICATE_NOT_IN_TYPE = deviation(
    "jax>=0.6",
    outcome="ok",
    reason="the branches type the result, whether or not the predicate varies: accepted silently",
    issue="jax-ml/jax#40823",
)
PROCESSES_RETURN_DIFFERENT_VALUES = deviation(
    "jax>=0.6",
    platform="cpu-mp",
    error="RanksDiffer",
    match="rank",
    reason="accepted silently, and each process returns its own value",
    issue="jax-ml/jax#40823",
)


@program(
    platforms=("cpu",),
    source="jax-ml/jax#40823",
    deviations=[
        REFUSED_WITHOUT_COND_RULE,
        PREDICATE_NOT_IN_TYPE,
        PROCESSES_RETURN_DIFFERENT_VALUES,
    ],
)
def constants_by_varying_decision(env):
    """Each shard picks one of two constants for itself, and the result is claimed to be equal.

    The constants do not vary, so the result is typed as replicated, and that of one shard is
    returned.
    """
    u = numbers(env) + np.float32(np.arange(SIZE) >= 8)

    def shard(u):
        return lax.cond(u.sum() > 6, lambda: jnp.float32(1), lambda: jnp.float32(2))

    fn = map_shards(env, shard, out_specs=P())
    return Program(fn, args=(u,), reference=raises("ValueError|TypeError", match="out_specs|var"))


def differentiate_by_shard(env, form, *, check=True):
    """Return the derivative of a sum over shards, of 2x on the first and 3x on three others."""

    def shard(x):
        first = lax.axis_index("x") == 0
        operand = env.compat.pvary(x, "x") if form == "marked" else x
        return lax.cond(first, lambda x: 2 * x, lambda x: 3 * x, operand)[None]

    fn = map_shards(env, shard, P(), P("x"), check=check)
    return jax.jit(jax.grad(lambda x: fn(x).sum()))(np.float32(2))


SUM_INSERTED_IN_BRANCH = deviation(
    "jax>=0.6",
    outcome="ok",
    reason="the sum over shards is inserted in branches that the shards do not take together",
    issue="jax-ml/jax#40823",
)


@probe(source="jax-ml/jax#40823", releases="jax>=0.6", deviations=[SUM_INSERTED_IN_BRANCH])
def gradient_by_varying_decision(env):
    """The derivative of 2x on one shard and 3x on three is 11; a bare `cond` silently gives 8.

    The branches take a replicated x, so the sum over shards is inserted in the branches, and each
    shard sums in its own branch. Up to 0.5.3 the shards waited for ever in two different sums, so
    the case does not run on these releases.
    """
    return Observed(differentiate_by_shard(env, "bare"), np.float64(11))


NO_RULE_FOR_COND_WHEN_MARKED = deviation(
    "jax<0.4.36",
    params=("marked",),
    error="NotImplementedError",
    match="No replication rule for cond",
    reason="the replication check had no rule for cond; switch it off in these releases",
    issue="jax-ml/jax#24418",
)


@probe(
    source="jax-ml/jax#40823",
    params={
        "marked": {"form": "marked", "check": True},
        "check_off": {"form": "bare", "check": False},
    },
    deviations=[NO_RULE_FOR_COND_WHEN_MARKED],
)
def gradient_by_varying_decision_mended(env, form, check):
    """The same derivative is 11 with a marked operand, and on every release without the check."""
    return Observed(differentiate_by_shard(env, form, check=check), np.float64(11))


BRANCH_TRANSPOSES_DIFFER = deviation(
    "jax>=0.4.36,<0.6",
    params=("check_on",),
    error="Exception",
    match="branches of cond produced mismatched replication types",
    reason="the branches of the transpose differ in which results need a sum over shards",
    issue="jax-ml/jax#24418",
)


@program(
    source="jax-ml/jax#24418",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1}},
    deviations=[NO_RULE_FOR_COND_UNDER_CHECK, BRANCH_TRANSPOSES_DIFFER],
)
def gradient_through_a_branch(env, check):
    """A gradient from outside by a replicated weight that only one branch uses is summed once."""
    u = numbers(env)

    def shard(w, u):
        return lax.cond(w > 1, lambda w: w * w * u, lambda _: u, w)

    fn = map_shards(env, shard, (P(), P("x")), check=check)
    gradient = jax.grad(lambda w, u: fn(w, u).sum())
    return Program(
        gradient, args=(np.float32(3), u), reference=lambda w, u: 2 * w * np.float64(u).sum()
    )


@probe(
    source="jax-ml/jax#15780",
    params={"check_on": {"check": True}},
    deviations=[NO_RULE_FOR_COND_UNDER_CHECK],
)
def index_read_by_one_branch(env, check):
    """An `axis_index` made outside of a `cond` can be used in one of its branches.

    The instruction sank into the branch, where XLA did not know that it was inside shard_map.
    """

    def shard(u):
        index = lax.axis_index("x")
        other = env.compat.pvary(jnp.float32(5), "x")
        return lax.cond(u[0] > 0, lambda: u < index + 1, lambda: u < other)

    u = numbers(env)
    observed = call_mapped(env, shard, u, check=check)
    return Observed(observed, u < np.repeat(np.arange(1, 5), 4))


NO_RULE_FOR_PLATFORM_INDEX = deviation(
    "jax<0.4.36",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for platform_index",
    reason="the replication check had no rule for platform_index; switch it off in these releases",
    issue="jax-ml/jax#24418",
)


@probe(
    source="jax-ml/jax#24418",
    params={"check_on": {"check": True}},
    deviations=[NO_RULE_FOR_PLATFORM_INDEX],
)
def branch_by_platform(env, check):
    """`platform_dependent`, a switch on the platform, runs in shard_map; no rule up to 0.4.35."""
    u = numbers(env)

    def shard(u):
        return lax.platform_dependent(u, cpu=lambda u: u + 1, default=lambda u: u - 1)

    return Observed(call_mapped(env, shard, u, check=check), u + np.float64(1))


NO_RULE_FOR_PMAX = deviation(
    "jax<0.4.34",
    error="NotImplementedError",
    match="No replication rule for pmax",
    reason="the replication check had no rule for pmax; switch it off in these releases",
    issue="jax-ml/jax#20335",
)
NO_RULE_FOR_COND_IN_BATCH = deviation(
    "jax>=0.4.34,<0.4.36",
    params=("mapped_outside",),
    error="NotImplementedError",
    match="No replication rule for cond",
    reason="the replication check had no rule for cond; switch it off in these releases",
    issue="jax-ml/jax#24418",
)
SELECT_OPERANDS_DIFFER = deviation(
    "jax>=0.4.36,<0.6",
    params=("mapped_outside",),
    error="Exception",
    match="Primitive select_n requires argument replication types to match",
    reason="vmap makes the cond a select, and the check did not match the types of its operands",
)
INSERTED_PSUM_NOT_BATCHED = deviation(
    "jax>=0.8.1,<0.9",
    error="TypeError",
    match="axis_index_groups",
    reason="the inserted psum cannot be batched",
    issue="jax-ml/jax#34249",
)


@program(
    source="jax-ml/jax#24418",
    params={"mapped_inside": {"inside": True}, "mapped_outside": {"inside": False}},
    platforms=("cpu",),
    deviations=[
        NO_RULE_FOR_PMAX,
        NO_RULE_FOR_COND_IN_BATCH,
        SELECT_OPERANDS_DIFFER,
        INSERTED_PSUM_NOT_BATCHED,
    ],
)
def batched_decision(env, inside):
    """A `cond` under `vmap` is a select: both branches run, and so does the psum of each.

    Batched inside or outside of shard_map, all rows together need one all-reduce.
    """

    def row(u):
        large = lax.pmax(u.max(), "x") > 1.44
        return lax.cond(large, lambda u: lax.psum(u, "x"), lambda u: -lax.psum(u, "x"), u)

    if inside:
        fn = map_shards(env, jax.vmap(row), P(None, "x"), P())
    else:
        fn = jax.vmap(map_shards(env, row, P("x"), P()))
    u = numbers(env).reshape(2, 8)

    def exact(u):
        total = np.float64(u).reshape(2, SHARDS, 2).sum(1)
        return np.where(u.max(1, keepdims=True) > 1.44, total, -total)

    return Program(fn, args=(u,), reference=exact)


@probe(source="jax-ml/jax#24418", deviations=[NO_RULE_FOR_COND])
def branch_in_a_scan(env):
    """All shards together decide a `cond` in each step of a scan, by the mean over shards."""

    def step(u, factor):
        mean = lax.pmean(u.mean(), "x")
        u = lax.cond(mean > 2, lambda u: u / factor, lambda u: u * factor, u)
        return u, mean

    u = numbers(env)
    factors = np.float32([2, 3, 1.5, 2])
    observed = call_mapped(
        env,
        lambda u: lax.scan(step, u, factors),
        u,
        out_specs=(P("x"), P()),
    )
    exact, means = np.float64(u), []
    for factor in np.float64(factors):
        means.append(exact.mean())
        exact = exact / factor if means[-1] > 2 else exact * factor
    return Observed(observed, (exact, np.array(means)))
