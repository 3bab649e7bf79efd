"""The loop around `shard_map`, `shard_map` under `vmap`, and loops run without `jit`.

Pulling the loop out of `shard_map` was the other way around the missing rule for `while`: the
condition then sees global arrays and no replication is to be proven.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import SHARDS, P, from_left, numpy_upwind, stable_step, upwind, wave


def one_step(env, check):
    """Return a mapped single step: cells and end time left to the next cells and time."""

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


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1, "collective-permute": 1, "all-gather": 0}},
    deviations=[
        deviation(
            "jax<0.4.34",
            params=("check_on",),
            error="NotImplementedError",
            match="No replication rule for pmin",
            reason="the replication check knew no pmin and no pmax, in or out of a loop",
            issue="jax-ml/jax#20335",
        )
    ],
)
def while_around_step(env, check):
    """A `while_loop` whose body calls a mapped step: no rule for `while` was ever needed.

    What did fail, before 0.4.34 and with the check on, was the `pmin` of the step itself.
    The cells stay sharded from one iteration to the next: nothing is gathered at the boundary.
    """
    step = one_step(env, check)

    def run(u, end):
        def body(carry):
            t, u, steps = carry
            u, t = step(u, t, end)
            return t, u, steps + 1

        return lax.while_loop(lambda c: c[0] < end, body, (jnp.float32(0), u, jnp.int32(0)))

    return Program(run, args=(wave(env), np.float32(0.25)), reference=numpy_upwind)


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={"constant": {"static": True}, "argument": {"static": False}},
    deviations=[
        deviation(
            "jax<0.4.34",
            error="NotImplementedError",
            match="No replication rule for pmin",
            reason="the replication check knew no pmin and no pmax, in or out of a loop",
            issue="jax-ml/jax#20335",
        )
    ],
)
def fori_around_step(env, static):
    """A `fori_loop` around the mapped step, with a trip count that is known or not.

    Outside of shard_map the difference does not show on any release; whatever fails (the `pmin`
    before 0.4.34) fails for both.
    """
    step = one_step(env, check=True)

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


def run_to(end):
    """Return a shard's whole time loop as a function of the cells and a replicated end time."""

    def run(u, end=end):
        def body(carry):
            t, u = carry
            dt = jnp.minimum(lax.pmin(stable_step(u), "x"), end - t)
            return t + dt, upwind(u, from_left(u), dt)

        return lax.while_loop(lambda c: c[0] < end, body, (jnp.float32(0), u))[1]

    return run


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax<0.6",
            params=("check_on",),
            error="NotImplementedError",
            match="No replication rule for while",
            reason="the inner loop is inside shard_map still",
            issue="jax-ml/jax#27664",
        )
    ],
)
def loops_on_both_sides(env, check):
    """A while outside that calls a mapped while, until the solution is flat enough.

    The outer condition reduces a global array without a collective in the source; the compiler
    adds it.
    """
    run = env.compat.shard_map(
        run_to(0.125), mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x"), check=check
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
    """Return a shard's cells after n steps that add a share of the sum over all cells."""

    def body(carry):
        u, i = carry
        return u + lax.psum(jnp.sum(u), "x") / 64, i + 1

    return lax.while_loop(lambda c: c[1] < n, body, (u, 0))[0]


def numpy_grow(runs, counts):
    """Return several runs of `grow`, each with its own number of steps."""
    runs = np.asarray(runs, np.float64)
    for i in range(max(counts)):
        runs = np.where((i < counts)[:, None], runs + runs.sum(1, keepdims=True) / 64, runs)
    return runs.astype(np.float32)


def batched(env, where, check):
    """Return `grow` mapped over shards and batched by `vmap`, outside or inside of shard_map."""

    def mapped(f, *lead):
        return env.compat.shard_map(
            f,
            mesh=env.mesh(SHARDS, "x"),
            in_specs=(P(*lead, "x"), P()),
            out_specs=P(*lead, "x"),
            check=check,
        )

    return jax.vmap(mapped(grow)) if where == "outside" else mapped(jax.vmap(grow), None)


def three_runs(env):
    """Return the cells of three runs and their numbers of steps, none among them."""
    return np.stack([wave(env, low) for low in (1, 2, 3)]), np.int32([2, 0, 5])


@program(
    source="jax-ml/jax#34249",
    devices=4,
    params={"outside": {"where": "outside"}, "inside": {"where": "inside"}},
    deviations=[
        deviation(
            "jax<0.6",
            error="NotImplementedError",
            match="No replication rule for while",
            reason="the replication check knew no while; switch it off there",
            issue="jax-ml/jax#27664",
        ),
        deviation(
            "jax>=0.8.1,<0.9",
            error="TypeError",
            match="_psum_invariant_abstract_eval",
            reason="the batching rule of a checked psum handed on an argument it no longer takes",
            issue="jax-ml/jax#34249",
        ),
    ],
)
def batch_of_runs(env, where):
    """Three runs of different length, batched by `vmap` outside or inside of shard_map.

    Under `vmap` the runs share one loop that goes on until the last is done, the others held
    still by a select: the collectives in the body are then executed for all of them.
    """
    return Program(batched(env, where, check=True), args=three_runs(env), reference=numpy_grow)


@program(source="jax-ml/jax#34249", devices=4)
def batch_of_unchecked_runs(env):
    """The same batches with the check off, outside and inside: right on every release."""
    ways = {where: batched(env, where, check=False) for where in ("outside", "inside")}
    return Program(
        lambda *args: {where: way(*args) for where, way in ways.items()},
        args=three_runs(env),
        reference=lambda *args: dict.fromkeys(ways, numpy_grow(*args)),
    )


@probe(
    source="jax-ml/jax#27664",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax<0.6",
            params=("check_on",),
            error="NotImplementedError",
            match="No replication rule for while",
            reason="the replication check knew no while; switch it off there",
            issue="jax-ml/jax#27664",
        )
    ],
)
def without_jit(env, check):
    """The mapped time loop called without `jit`, against the reference.

    Called eagerly, shard_map runs its body one operation at a time on all shards, and a loop is
    one operation; the check then follows values, not a trace.
    """
    u = wave(env)
    run = env.compat.shard_map(
        run_to(0.25), mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x"), check=check
    )
    return Observed(run(u), numpy_upwind(u, 0.25)[1])
