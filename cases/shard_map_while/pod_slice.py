"""Loops over sixteen devices, a slice of a pod: `tpu:v5e:4x4`, or two hosts of eight GPUs.

What two axes of a mesh and more than one host ask of the loops of this family. Sixteen devices
that are not here cost no more than four; a CPU has them where its cell says so (`cpu16`).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Program, deviation, program

from ._helpers import P

SIDE = 4
STAGES = SIDE * SIDE
END = 0.05


def _field(n=32):
    """Return a positive periodic field."""
    x = (np.arange(n) + 0.5) / n * 2 * np.pi
    return (2 + np.sin(x)[:, None] * np.cos(x)[None]).astype(np.float32)


def _shifted(u, axis, dimension):
    """Return the neighbours on the low side; the halo comes from the device before."""
    pairs = [(i, (i + 1) % SIDE) for i in range(SIDE)]
    halo = lax.ppermute(
        lax.slice_in_dim(u, u.shape[dimension] - 1, None, axis=dimension), axis, pairs
    )
    return jnp.concatenate(
        [halo, lax.slice_in_dim(u, 0, u.shape[dimension] - 1, axis=dimension)], dimension
    )


@program(
    source="jax-ml/jax#27664",
    devices=16,
    releases="jax>=0.6",
    facts={"collectives": {"all-reduce": 1, "collective-permute": 2}},
)
def adaptive_steps_in_two_dimensions(env):
    """A time step that is global over both axes of the mesh, halos along each.

    One reduction over all sixteen devices for a `pmin` over two axes, one transfer for each
    direction.
    """

    def shard(u):
        def step(carry):
            t, u = carry
            dt = jnp.minimum(lax.pmin(0.2 / (32 * u.max()), ("y", "x")), END - t)
            west, south = _shifted(u, "x", 1), _shifted(u, "y", 0)
            return t + dt, u - dt * 32 * u * (2 * u - west - south)

        return lax.while_loop(lambda c: c[0] < END, step, (0.0, u))[1]

    def by_hand(u):
        t, u = 0.0, u.astype(np.float64)
        while t < END:
            dt = min(0.2 / (32 * u.max()), END - t)
            t, u = t + dt, u - dt * 32 * u * (2 * u - np.roll(u, 1, 1) - np.roll(u, 1, 0))
        return u

    mesh = env.mesh((SIDE, SIDE), ("y", "x"))
    mapped = env.compat.shard_map(shard, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))
    return Program(mapped, args=(_field(),), reference=by_hand)


@program(
    source="jax-ml/jax#27664",
    devices=16,
    releases="jax>=0.6",
    facts={"collectives": {"all-reduce": 1, "collective-permute": 1}},
)
def pipeline(env):
    """Sixteen stages, eight microbatches, a while loop whose body hands on to the next stage.

    The last stage alone has the results; a psum gives them to all.
    """
    batches, width = 8, 128

    def shard(w, x):
        stage = lax.axis_index("stage")
        onward = [(i, (i + 1) % STAGES) for i in range(STAGES)]

        def step(carry):
            i, held, out = carry
            fed = jnp.where(stage == 0, x[jnp.minimum(i, batches - 1)], held)
            done = jnp.tanh(fed * w[0])
            slot = i - (STAGES - 1)
            kept = out.at[jnp.maximum(slot, 0)].set(done)
            out = jnp.where((stage == STAGES - 1) & (slot >= 0), kept, out)
            return i + 1, lax.ppermute(done, "stage", onward), out

        zero = 0 * w[0]
        start = (0, zero, zero + jnp.zeros((batches, width), w.dtype))
        out = lax.while_loop(lambda c: c[0] < batches + STAGES - 1, step, start)[2]
        return lax.psum(out, "stage")

    def by_hand(w, x):
        x = x.astype(np.float64)
        for weights in w:
            x = np.tanh(x * weights)
        return x

    mesh = env.mesh(STAGES, "stage")
    mapped = env.compat.shard_map(shard, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())
    w = 1 + 0.1 * env.rng(1).standard_normal((STAGES, width)).astype(np.float32)
    x = env.rng(2).standard_normal((batches, width)).astype(np.float32)
    return Program(mapped, args=(w.astype(np.float32), x), reference=by_hand)


def _damped(env, total):
    """Return a loop that divides a field by its own norm, summed up in one of two ways."""

    def shard(u):
        return lax.fori_loop(0, 5, lambda _, v: v / (1 + total((v * v).sum()) / 1024), u)

    def by_hand(u):
        u = u.astype(np.float64)
        for _ in range(5):
            u = u / (1 + (u * u).sum() / 1024)
        return u

    mesh = env.mesh((SIDE, SIDE), ("y", "x"))
    mapped = env.compat.shard_map(shard, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))
    return Program(mapped, args=(_field(),), reference=by_hand)


@program(source="jax-ml/jax#27664", devices=16, facts={"collectives": {"all-reduce": 1}})
def sum_over_two_axes(env):
    """A norm summed over the whole slice at once: one reduction of sixteen devices."""
    return _damped(env, lambda one: lax.psum(one, ("y", "x")))


@program(
    source="jax-ml/jax#27664",
    devices=16,
    facts={"collectives": {"all-reduce": 2}},
    deviations=[
        deviation(
            platform="cuda",
            outcome="ok",
            match="collectives",
            reason="XLA for GPUs makes one reduction of the two",
        )
    ],
)
def sum_over_one_axis_then_the_other(env):
    """The same by rows and then by columns: two reductions, of four devices each."""
    return _damped(env, lambda one: lax.psum(lax.psum(one, "x"), "y"))
