"""Time loops whose adaptive step is global: the program for which jax#27664 was opened.

An explicit solver may advance only by the smallest stable step of any shard, so the step is a
`pmin` and the number of steps is not known beforehand: a `while_loop` inside `shard_map`. Up to
0.5.3 the replication check had no rule for `while` and refused every such program, whichever
values it computed; the only workaround was to switch the check off. From 0.6.0 on replication is
part of the types (varying manual axes, VMA), and the loop is checked like anything else.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Program, defaults, deviation, program

from ._helpers import SHARDS, P, from_left, numpy_upwind, stable_step, upwind, wave

defaults(devices=4)


def advance(end):
    """Return the time loop of a shard to `end`; it gives time, cells and number of steps."""

    def body(carry):
        t, u, steps = carry
        dt = jnp.minimum(lax.pmin(stable_step(u), "x"), end - t)
        return t + dt, upwind(u, from_left(u), dt), steps + 1

    return lambda u: lax.while_loop(lambda carry: carry[0] < end, body, (0.0, u, 0))


NO_RULE_FOR_WHILE_UNDER_CHECK = deviation(
    "jax<0.6",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the replication check had no rule for while; switch it off in these releases",
    issue="jax-ml/jax#27664",
)


@program(
    source="jax-ml/jax#27664",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1, "collective-permute": 1}},
    same_as=("jit", "aot", "vmap_of_one"),
    deviations=[NO_RULE_FOR_WHILE_UNDER_CHECK],
)
def adaptive_time_step(env, check):
    """Burgers' equation to t = 0.25 with the largest step that is stable on every shard.

    The carry mixes values that differ between shards (the cells) with values that do not (time,
    step count). Time stays replicated because the step is a `pmin`, and so `out_specs=P()` can be
    checked. Marking values as varying is a matter of types: the loop has one all-reduce and one
    halo exchange, with the check on or off.
    """
    u = wave(env)
    step = env.compat.shard_map(
        advance(0.25),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=(P(), P("x"), P()),
        check=check,
    )
    return Program(step, args=(u,), reference=lambda u: numpy_upwind(u, 0.25))


@program(
    source="jax-ml/jax#27664",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_WHILE_UNDER_CHECK],
)
def end_time_argument(env, check):
    """The end time is a replicated argument that the loop closes over, not a constant.

    Closed-over values become constants of the condition and of the body, and their variance must be
    known as well as that of the carry: the rule of a loop has three lists to check, not only the
    carry.
    """
    args = (wave(env), np.float32(0.125))
    step = env.compat.shard_map(
        lambda u, end: advance(end)(u),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=(P("x"), P()),
        out_specs=(P(), P("x"), P()),
        check=check,
    )
    return Program(step, args=args, reference=numpy_upwind)


NO_RULE_FOR_WHILE = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the replication check had no rule for while; switch it off in these releases",
    issue="jax-ml/jax#27664",
)


@program(
    source="jax-ml/jax#27664",
    params={"where": {"branch": False}, "cond": {"branch": True}},
    deviations=[NO_RULE_FOR_WHILE],
)
def rejected_steps(env, branch):
    """A controller halves a step that changes any cell by too much, and doubles it otherwise.

    A `pmin` decides whether to accept a step, so all shards agree. Selecting with `where` and
    branching with `cond` are the same program. A `cond` on a decision that differs between shards
    would be another matter (jax#40823).
    """

    def attempt(u, left, dt):
        new = upwind(u, left, dt)
        return new, abs(new - u).max() < 0.25

    def body(carry):
        t, u, dt, tries = carry
        new, fine = attempt(u, from_left(u), dt)
        fine = lax.pmin(fine.astype(jnp.int32), "x") > 0
        pick = lax.cond if branch else lambda p, f, g: jnp.where(p, f(), g())
        u = pick(fine, lambda: new, lambda: u)
        return jnp.where(fine, t + dt, t), u, jnp.where(fine, 2 * dt, dt / 2), tries + 1

    def numpy_controlled(u):
        t, u, dt, tries = 0.0, np.asarray(u, np.float64), 0.125, 0
        while t < 0.125:
            new, fine = attempt(u, np.roll(u, 1), dt)
            t, u, dt, tries = (
                (t + dt, new, 2 * dt, tries + 1) if fine else (t, u, dt / 2, tries + 1)
            )
        return np.float64(t), u.astype(np.float32), np.float64(dt), np.int64(tries)

    loop = env.compat.shard_map(
        lambda u: lax.while_loop(lambda carry: carry[0] < 0.125, body, (0.0, u, 0.125, 0)),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=(P(), P("x"), P(), P()),
    )
    return Program(loop, args=(wave(env),), reference=numpy_controlled)


def make_local_clock(env, axes):
    """Return a loop without a pmin: every shard uses its own stable step until 0.1."""

    def body(carry):
        t, steps, u = carry
        return t + stable_step(u), steps + 1, u

    def loop(u):
        start = env.compat.pvary((jnp.float32(0), jnp.int32(0)), "x") if axes else (0.0, 0)
        t, steps, _ = lax.while_loop(lambda carry: carry[0] < 0.1, body, (*start, u))
        return t, steps

    return loop


def numpy_local_clock(u):
    """Return the clock and the step count of every shard."""
    steps = [stable_step(part) for part in np.asarray(u, np.float64).reshape(SHARDS, -1)]
    counts = [int(np.ceil(0.1 / dt)) for dt in steps]
    return np.float32([n * dt for n, dt in zip(counts, steps)]), np.int32(counts)  # noqa: B905


@program(
    source="jax-ml/jax#27664",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_WHILE_UNDER_CHECK],
)
def local_time_step(env, check):
    """Without a `pmin` every shard may run its own number of iterations.

    Nothing inside the loop communicates, so shards need not agree on the trip count. The clock and
    the counter are made varying before the loop because they differ between shards after it.
    """
    loop = make_local_clock(env, "x")
    clocks = env.compat.shard_map(
        lambda u: tuple(leaf[None] for leaf in loop(u)),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=(P("x"), P("x")),
        check=check,
    )
    return Program(clocks, args=(wave(env),), reference=numpy_local_clock)
