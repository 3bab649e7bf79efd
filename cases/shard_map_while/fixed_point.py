"""Fixed-point iterations whose residual is summed over shards, alone and inside time steps.

This is the second half of jax#27664: implicit solvers iterate within each time step until a
global residual is small. The number of iterations depends on the data. Every shard must make the
same number of iterations, because shards exchange halos, and the residual makes them agree.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Program, deviation, program

from ._helpers import CELLS, SHARDS, P, from_left, stable_step, wave

# no iteration has a residual close to this, so rounding cannot change the count
TOLERANCE = 1.7e-7


def relax(left, source, weight=1.0):
    """Return one sweep for `u = source + weight * (left - u) / 2`, given the last left cells."""
    return (source + weight * left / 2) / (1 + weight / 2)


def sweep_until_small(source, weight=1.0, *, in_condition=False):
    """Return the solution of a shard and the number of sweeps until the residual sum is small."""

    def residual(new, old):
        return lax.psum(jnp.sum((new - old) ** 2), "x") / CELLS

    def body(carry):
        u, _, sweeps = carry
        new = relax(from_left(u), source, weight)
        return new, residual(new, u), sweeps + 1

    def lazy_body(carry):
        u, _, sweeps = carry
        return relax(from_left(u), source, weight), u, sweeps + 1

    if in_condition:
        start = (source, 2 * source, 0)
        loop = lax.while_loop(lambda c: residual(c[0], c[1]) > TOLERANCE, lazy_body, start)
    else:
        loop = lax.while_loop(lambda c: c[1] > TOLERANCE, body, (source, 1.0, 0))
    return loop[0], loop[2]


def numpy_sweeps(source, weight=1.0):
    """Return the solution and the number of sweeps, in float64 over all cells."""
    source = np.asarray(source, np.float64)
    u, residual, sweeps = source, 1.0, 0
    while residual > TOLERANCE:
        new = relax(np.roll(u, 1), source, weight)
        u, residual, sweeps = new, ((new - u) ** 2).mean(), sweeps + 1
    return u, sweeps


def round_reference(u, *counts):
    """Return the reference: cells in the dtype of the result, and counts of any width."""
    return (u.astype(np.float32), *(np.int64(count) for count in counts))


NO_RULE_FOR_WHILE = deviation(
    "jax<0.6",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the replication check had no rule for while; switch it off in these releases",
    issue="jax-ml/jax#27664",
)


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1, "collective-permute": 1}},
    deviations=[NO_RULE_FOR_WHILE],
)
def residual_in_carry(env, check):
    """Relaxation runs until the residual, which the carry holds, is small.

    The residual may start as the Python float 1.0: it does not vary, and neither does the `psum`
    that replaces it. So the decision about the next iteration is the same on every shard.
    """
    solve = env.compat.shard_map(
        sweep_until_small,
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=(P("x"), P()),
        check=check,
    )
    return Program(solve, args=(wave(env),), reference=lambda b: round_reference(*numpy_sweeps(b)))


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1, "collective-permute": 1}},
    deviations=[NO_RULE_FOR_WHILE],
)
def residual_in_condition(env, check):
    """The same iteration with the reduction in the condition of the loop.

    A collective in `cond_fun` is evaluated once more than the body. It compiles to one all-reduce,
    in the computation of the condition.
    """
    solve = env.compat.shard_map(
        lambda source: sweep_until_small(source, in_condition=True),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=(P("x"), P()),
        check=check,
    )
    return Program(solve, args=(wave(env),), reference=lambda b: round_reference(*numpy_sweeps(b)))


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 2, "collective-permute": 1}},
    deviations=[NO_RULE_FOR_WHILE],
)
def implicit_adaptive_steps(env, check):
    """The program in the report: global adaptive time steps, each with a fixed-point iteration.

    The two nested loops have a reduction each: a `pmin` for the step and a `psum` for the residual.
    The inner loop closes over the step size, which becomes a constant of that loop.
    """

    def step(carry):
        t, u, sweeps = carry
        dt = jnp.minimum(4 * lax.pmin(stable_step(u), "x"), 0.5 - t)
        u, more = sweep_until_small(u, dt * CELLS)
        return t + dt, u, sweeps + more

    def numpy_steps(u):
        t, u, sweeps = 0.0, np.asarray(u, np.float64), 0
        while t < 0.5:
            dt = min(4 * stable_step(u), 0.5 - t)
            u, more = numpy_sweeps(u, dt * CELLS)
            t, sweeps = t + dt, sweeps + more
        return round_reference(u, sweeps)

    solve = env.compat.shard_map(
        lambda u: lax.while_loop(lambda c: c[0] < 0.5, step, (0.0, u, 0))[1:],
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=(P("x"), P()),
        check=check,
    )
    return Program(solve, args=(wave(env),), reference=numpy_steps)


NO_RULE_FOR_WHILE_IN_SCAN = deviation(
    "jax<0.6",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the rule of a scan also checks its body, and the while there has no rule",
    issue="jax-ml/jax#27664",
)


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_WHILE_IN_SCAN],
)
def implicit_fixed_steps(env, check):
    """A known number of steps (a scan) around the iteration (a while).

    A loop of known length has always had a replication rule, but the rule for the outer loop needs
    rules for everything inside.
    """

    def numpy_steps(u):
        sweeps = 0
        for _ in range(3):
            u, more = numpy_sweeps(u, 0.5)
            sweeps += more
        return round_reference(u, sweeps)

    def step(_, carry):
        u, more = sweep_until_small(carry[0], 0.5)
        return u, carry[1] + more

    solve = env.compat.shard_map(
        lambda u: lax.fori_loop(0, 3, step, (u, 0)),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=(P("x"), P()),
        check=check,
    )
    return Program(solve, args=(wave(env),), reference=numpy_steps)


@program(
    source="jax-ml/jax#27664",
    devices=8,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_WHILE],
)
def rows_converge_separately(env, check):
    """Two independent problems on a 2 by 4 mesh, each reduced only along the row that holds it.

    The residual varies over `y` and not over `x`: the rows run different numbers of sweeps.
    Residual and count therefore start marked over `y` alone, and `out_specs=P("y")` can be checked.
    An all-reduce has groups of devices, one for each row, so no row waits for the other. A
    `ppermute` has no groups: a halo exchange along `x` in this loop would wait, on CPUs, for all
    eight devices and hang, and the types would not refuse it.
    """

    def solve(source):
        source = source[0]

        def body(carry):
            u, _, sweeps = carry
            new = (source + lax.psum(jnp.sum(u), "x") / CELLS / 2) / 2
            return new, lax.psum(jnp.sum((new - u) ** 2), "x") / CELLS, sweeps + 1

        start = env.compat.pvary((jnp.float32(1), jnp.int32(0)), "y")
        u, _, sweeps = lax.while_loop(lambda c: c[1] > TOLERANCE, body, (source, *start))
        return u[None], sweeps[None]

    def numpy_row(source):
        source = np.asarray(source, np.float64)
        u, residual, sweeps = source, 1.0, 0
        while residual > TOLERANCE:
            new = (source + u.mean() / 2) / 2
            u, residual, sweeps = new, ((new - u) ** 2).mean(), sweeps + 1
        return u, sweeps

    def numpy_rows(sources):
        rows = [numpy_row(source) for source in sources]
        return np.float32([u for u, _ in rows]), np.int32([sweeps for _, sweeps in rows])

    mapped_fn = env.compat.shard_map(
        solve,
        mesh=env.mesh((2, SHARDS), ("y", "x")),
        in_specs=P("y", "x"),
        out_specs=(P("y", "x"), P("y")),
        check=check,
    )
    sources = np.stack([wave(env), 100 * wave(env)])
    return Program(mapped_fn, args=(sources,), reference=numpy_rows)
