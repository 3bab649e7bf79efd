"""Fixed-point iterations whose residual is summed over shards, alone and inside time steps.

The second half of jax#27664: implicit solvers iterate within each time step until a global
residual is small. The number of iterations is data-dependent, every shard must do the same
number of them (they exchange halos), and the residual is what makes them agree.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Program, deviation, program

from ._helpers import CELLS, SHARDS, P, from_left, stable_step, wave

# far from what any iteration's residual comes close to, so that rounding cannot change the count
TOLERANCE = 1.7e-7


def relax(left, source, weight=1.0):
    """Return one sweep for `u = source + weight * (left - u) / 2`, given the last left cells."""
    return (source + weight * left / 2) / (1 + weight / 2)


def sweep_until_small(source, weight=1.0, *, in_condition=False):
    """Return a shard's solution and the number of sweeps, stopping on a psum'd residual."""

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


def rounded(u, *counts):
    """Return the reference: cells in the type of the result, counts of whatever width."""
    return (u.astype(np.float32), *(np.int64(count) for count in counts))


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1, "collective-permute": 1}},
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
def residual_in_carry(env, check):
    """Relaxation until the residual, kept in the carry, is small.

    The residual may start as the Python float 1.0: it does not vary and neither does what
    replaces it, a `psum`. What decides the next iteration is thereby the same on every shard.
    """
    solve = env.compat.shard_map(
        sweep_until_small,
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=(P("x"), P()),
        check=check,
    )
    return Program(solve, args=(wave(env),), reference=lambda b: rounded(*numpy_sweeps(b)))


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1, "collective-permute": 1}},
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
def residual_in_condition(env, check):
    """The same iteration with the reduction in the loop's condition.

    A collective in `cond_fun` is evaluated once more than the body. It compiles to one
    all-reduce, in the condition's computation.
    """
    solve = env.compat.shard_map(
        lambda source: sweep_until_small(source, in_condition=True),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=(P("x"), P()),
        check=check,
    )
    return Program(solve, args=(wave(env),), reference=lambda b: rounded(*numpy_sweeps(b)))


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 2, "collective-permute": 1}},
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
def implicit_adaptive_steps(env, check):
    """The reporter's program: adaptive global time step, a fixed-point iteration inside each.

    Two nested loops, each with its own reduction: a `pmin` for the step, a `psum` for the
    residual. The step size is closed over by the inner loop and so becomes a constant of it.
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
        return rounded(u, sweeps)

    solve = env.compat.shard_map(
        lambda u: lax.while_loop(lambda c: c[0] < 0.5, step, (0.0, u, 0))[1:],
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=(P("x"), P()),
        check=check,
    )
    return Program(solve, args=(wave(env),), reference=numpy_steps)


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
            reason="a scan has a rule, but it looks into its body, where the while has none",
            issue="jax-ml/jax#27664",
        )
    ],
)
def implicit_fixed_steps(env, check):
    """A known number of steps (a scan) around the iteration (a while).

    A loop of known length has always had a replication rule, but a rule for the outer loop
    needs one for everything inside.
    """

    def numpy_steps(u):
        sweeps = 0
        for _ in range(3):
            u, more = numpy_sweeps(u, 0.5)
            sweeps += more
        return rounded(u, sweeps)

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
def rows_converge_separately(env, check):
    """Two independent problems on a 2 by 4 mesh, each reduced along its own row only.

    The residual varies over `y` and not over `x`: the rows run different numbers of sweeps.
    Residual and count therefore start marked over `y` alone, and `out_specs=P("y")` can be
    checked. An all-reduce has groups of devices, one for each row, so that no row waits for the
    other. A `ppermute` has none: put a halo exchange along `x` in this loop and, on CPUs, it
    waits for all eight devices and hangs, for the types have nothing against it.
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

    mapped = env.compat.shard_map(
        solve,
        mesh=env.mesh((2, SHARDS), ("y", "x")),
        in_specs=P("y", "x"),
        out_specs=(P("y", "x"), P("y")),
        check=check,
    )
    sources = np.stack([wave(env), 100 * wave(env)])
    return Program(mapped, args=(sources,), reference=numpy_rows)
