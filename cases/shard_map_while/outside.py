"""The loop around `shard_map`, `shard_map` under `vmap`, and loops run without `jit`.

Moving the loop out of `shard_map` was the other workaround for the missing rule for `while`: the
condition then reads global arrays, and no replication has to be proven.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import SHARDS, P, from_left, numpy_upwind, stable_step, upwind, wave

defaults(devices=4)


def map_one_step(env, check):
    """Return a mapped single step: cells, time and end time give the next cells and time."""

    def step(u, t, end):
        dt = jnp.minimum(lax.pmin(stable_step(u), "x"), end - t)
        return upwind(u, from_left(u), dt), t + dt

    return env.compat.shard_map(
        step,
        mesh=env.mesh(SHARDS, "x"),
        in_specs=(P("x"), P(), P()),
        out_specs=(P("x"), P()),
        check=check,
    )


NO_RULE_FOR_PMIN_UNDER_CHECK = deviation(
    "jax<0.4.34",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for pmin",
    reason="the replication check had no rule for pmin and pmax, in or out of a loop",
    issue="jax-ml/jax#20335",
)


@program(
    source="jax-ml/jax#27664",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1, "collective-permute": 1, "all-gather": 0}},
    deviations=[NO_RULE_FOR_PMIN_UNDER_CHECK],
)
def while_around_step(env, check):
    """A `while_loop` whose body calls a mapped step never needed a rule for `while`.

    Before 0.4.34 and with the check on, the `pmin` of the step itself failed. The cells stay
    sharded from one iteration to the next: nothing is gathered at the boundary.
    """
    step = map_one_step(env, check)

    def run(u, end):
        def body(carry):
            t, u, steps = carry
            u, t = step(u, t, end)
            return t, u, steps + 1

        return lax.while_loop(lambda c: c[0] < end, body, (jnp.float32(0), u, jnp.int32(0)))

    return Program(run, args=(wave(env), np.float32(0.25)), reference=numpy_upwind)


NO_RULE_FOR_PMIN = deviation(
    "jax<0.4.34",
    error="NotImplementedError",
    match="No replication rule for pmin",
    reason="the replication check had no rule for pmin and pmax, in or out of a loop",
    issue="jax-ml/jax#20335",
)


@program(
    source="jax-ml/jax#27664",
    params={"constant": {"static": True}, "argument": {"static": False}},
    deviations=[NO_RULE_FOR_PMIN],
)
def fori_around_step(env, static):
    """A `fori_loop` around the mapped step has a trip count that is known or not.

    Outside of shard_map the difference does not show on any release: each failure (the `pmin`
    before 0.4.34) occurs for both.
    """
    step = map_one_step(env, check=True)

    def run(u, n):
        def body(_, carry):
            return step(*carry, jnp.float32(1))

        return lax.fori_loop(0, 6 if static else n, body, (u, jnp.float32(0)))

    def numpy_run(u, n):
        t, u = 0.0, np.asarray(u, np.float64)
        for _ in range(n):
            dt = stable_step(u)
            t, u = t + dt, upwind(u, np.roll(u, 1), dt)
        return u.astype(np.float32), np.float32(t)

    return Program(run, args=(wave(env), np.int32(6)), reference=numpy_run)


def make_time_loop(end):
    """Return the whole time loop of a shard, a function of cells and a replicated end time."""

    def run(u, end=end):
        def body(carry):
            t, u = carry
            dt = jnp.minimum(lax.pmin(stable_step(u), "x"), end - t)
            return t + dt, upwind(u, from_left(u), dt)

        return lax.while_loop(lambda c: c[0] < end, body, (jnp.float32(0), u))[1]

    return run


NO_RULE_FOR_INNER_WHILE = deviation(
    "jax<0.6",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the inner loop is still inside shard_map",
    issue="jax-ml/jax#27664",
)


@program(
    source="jax-ml/jax#27664",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_INNER_WHILE],
)
def loops_on_both_sides(env, check):
    """A while outside of shard_map calls a mapped while until the solution is flat enough.

    The outer condition reduces a global array without a collective in the source; the compiler adds
    the collective.
    """
    run = env.compat.shard_map(
        make_time_loop(0.125),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=P("x"),
        check=check,
    )

    def flatten(u):
        return lax.while_loop(
            lambda c: jnp.max(c[0]) - jnp.min(c[0]) > 0.5,
            lambda c: (run(c[0]), c[1] + 1),
            (u, jnp.int32(0)),
        )

    def numpy_flatten(u):
        calls = 0
        while np.ptp(u) > 0.5:
            u, calls = numpy_upwind(u, 0.125)[1], calls + 1
        return u, np.int32(calls)

    return Program(flatten, args=(wave(env),), reference=numpy_flatten)


def grow(u, n):
    """Return the cells of a shard after n steps that add a share of the sum over all cells."""

    def body(carry):
        u, i = carry
        return u + lax.psum(jnp.sum(u), "x") / 64, i + 1

    return lax.while_loop(lambda c: c[1] < n, body, (u, 0))[0]


def numpy_grow(runs, counts):
    """Return the results of several runs of `grow`, each with its own number of steps."""
    runs = np.asarray(runs, np.float64)
    for i in range(max(counts)):
        runs = np.where((i < counts)[:, None], runs + runs.sum(1, keepdims=True) / 64, runs)
    return runs.astype(np.float32)


def batch_grow(env, where, check):
    """Return `grow` mapped over shards and batched by `vmap`, outside or inside of shard_map."""

    def map_shards(f, *lead):
        return env.compat.shard_map(
            f,
            mesh=env.mesh(SHARDS, "x"),
            in_specs=(P(*lead, "x"), P()),
            out_specs=P(*lead, "x"),
            check=check,
        )

    return jax.vmap(map_shards(grow)) if where == "outside" else map_shards(jax.vmap(grow), None)


def make_three_runs(env):
    """Return the cells of three runs and their numbers of steps; one run has no steps."""
    return np.stack([wave(env, low) for low in (1, 2, 3)]), np.int32([2, 0, 5])


NO_RULE_FOR_WHILE = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the replication check had no rule for while; switch it off in these releases",
    issue="jax-ml/jax#27664",
)
GROUPS_PASSED_TO_CHECKED_PSUM = deviation(
    "jax>=0.8.1,<0.9",
    error="TypeError",
    match="_psum_invariant_abstract_eval",
    reason="the batching rule passed an argument that the checked psum no longer has",
    issue="jax-ml/jax#34249",
)


@program(
    source="jax-ml/jax#34249",
    params={"outside": {"where": "outside"}, "inside": {"where": "inside"}},
    deviations=[NO_RULE_FOR_WHILE, GROUPS_PASSED_TO_CHECKED_PSUM],
)
def batch_of_runs(env, where):
    """Three runs of different length are batched by `vmap` outside or inside of shard_map.

    Under `vmap` the runs share one loop that continues until the last run is done, and a select
    keeps the finished runs unchanged. So the collectives in the body are executed for all runs.
    """
    return Program(
        batch_grow(env, where, check=True), args=make_three_runs(env), reference=numpy_grow
    )


@program(source="jax-ml/jax#34249")
def batch_of_unchecked_runs(env):
    """The same batches with the check off, outside and inside, are right on every release."""
    batches = {where: batch_grow(env, where, check=False) for where in ("outside", "inside")}
    return Program(
        lambda *args: {where: batch(*args) for where, batch in batches.items()},
        args=make_three_runs(env),
        reference=lambda *args: dict.fromkeys(batches, numpy_grow(*args)),
    )


NO_RULE_FOR_WHILE_UNDER_CHECK = deviation(
    "jax<0.6",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the replication check had no rule for while; switch it off in these releases",
    issue="jax-ml/jax#27664",
)


@probe(
    source="jax-ml/jax#27664",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_WHILE_UNDER_CHECK],
)
def without_jit(env, check):
    """The mapped time loop runs without `jit` and agrees with the reference.

    Called eagerly, shard_map runs its body one operation at a time on all shards, and a loop is one
    operation. The check then follows values, not a trace.
    """
    u = wave(env)
    run = env.compat.shard_map(
        make_time_loop(0.25),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=P("x"),
        check=check,
    )
    return Observed(run(u), numpy_upwind(u, 0.25)[1])
