"""Loops over sixteen devices, a slice of a pod: `tpu:v5e:4x4`, or two hosts of eight GPUs.

The cases show how loops of this family cope with two mesh axes and with more than one host. Where
cases are only compiled, sixteen devices cost no more than four. A CPU has sixteen devices if its
cell says so (`cpu16`).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Program, defaults, deviation, program

from ._helpers import P

defaults(devices=16)

SIDE = 4
STAGES = SIDE * SIDE
END = 0.05


def _field(n=32):
    """Return a positive periodic field."""
    x = (np.arange(n) + 0.5) / n * 2 * np.pi
    return (2 + np.sin(x)[:, None] * np.cos(x)[None]).astype(np.float32)


def _shift(u, axis, dimension):
    """Return the neighbours on the low side; the halo comes from the previous device."""
    pairs = [(i, (i + 1) % SIDE) for i in range(SIDE)]
    halo = lax.ppermute(
        lax.slice_in_dim(u, u.shape[dimension] - 1, None, axis=dimension), axis, pairs
    )
    return jnp.concatenate(
        [halo, lax.slice_in_dim(u, 0, u.shape[dimension] - 1, axis=dimension)], dimension
    )


@program(
    source="jax-ml/jax#27664",
    releases="jax>=0.6",
    facts={"collectives": {"all-reduce": 1, "collective-permute": 2}},
)
def adaptive_steps_in_two_dimensions(env):
    """A time step is global over both axes of the mesh, with halos along each axis.

    A `pmin` over two axes is one reduction over all sixteen devices, and each direction has one
    transfer.
    """

    def shard(u):
        def step(carry):
            t, u = carry
            dt = jnp.minimum(lax.pmin(0.2 / (32 * u.max()), ("y", "x")), END - t)
            west, south = _shift(u, "x", 1), _shift(u, "y", 0)
            return t + dt, u - dt * 32 * u * (2 * u - west - south)

        return lax.while_loop(lambda c: c[0] < END, step, (0.0, u))[1]

    def exact(u):
        t, u = 0.0, u.astype(np.float64)
        while t < END:
            dt = min(0.2 / (32 * u.max()), END - t)
            t, u = t + dt, u - dt * 32 * u * (2 * u - np.roll(u, 1, 1) - np.roll(u, 1, 0))
        return u

    mesh = env.mesh((SIDE, SIDE), ("y", "x"))
    mapped_fn = env.compat.shard_map(shard, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))
    return Program(mapped_fn, args=(_field(),), reference=exact)


@program(
    source="jax-ml/jax#27664",
    releases="jax>=0.6",
    facts={"collectives": {"all-reduce": 1, "collective-permute": 1}},
)
def pipeline(env):
    """Sixteen stages, eight microbatches, and a while loop whose body sends to the next stage.

    Only the last stage has the results; a psum gives them to all stages.
    """
    batches, width = 8, 128

    def shard(w, x):
        stage = lax.axis_index("stage")
        next_stage = [(i, (i + 1) % STAGES) for i in range(STAGES)]

        def step(carry):
            i, message, out = carry
            inputs = jnp.where(stage == 0, x[jnp.minimum(i, batches - 1)], message)
            outputs = jnp.tanh(inputs * w[0])
            # the first result reaches the last stage after STAGES - 1 iterations
            slot = i - (STAGES - 1)
            updated = out.at[jnp.maximum(slot, 0)].set(outputs)
            out = jnp.where((stage == STAGES - 1) & (slot >= 0), updated, out)
            return i + 1, lax.ppermute(outputs, "stage", next_stage), out

        # 0 * w[0] varies over the stages, as the carry does after a step
        zero = 0 * w[0]
        start = (0, zero, zero + jnp.zeros((batches, width), w.dtype))
        out = lax.while_loop(lambda c: c[0] < batches + STAGES - 1, step, start)[2]
        return lax.psum(out, "stage")

    def exact(w, x):
        x = x.astype(np.float64)
        for weights in w:
            x = np.tanh(x * weights)
        return x

    mesh = env.mesh(STAGES, "stage")
    mapped_fn = env.compat.shard_map(shard, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())
    w = 1 + 0.1 * env.rng(1).standard_normal((STAGES, width)).astype(np.float32)
    x = env.rng(2).standard_normal((batches, width)).astype(np.float32)
    return Program(mapped_fn, args=(w.astype(np.float32), x), reference=exact)


def _make_damped_program(env, total):
    """Return a program with a loop that divides a field by its norm, which `total` sums."""

    def shard(u):
        return lax.fori_loop(0, 5, lambda _, v: v / (1 + total((v * v).sum()) / 1024), u)

    def exact(u):
        u = u.astype(np.float64)
        for _ in range(5):
            u = u / (1 + (u * u).sum() / 1024)
        return u

    mesh = env.mesh((SIDE, SIDE), ("y", "x"))
    mapped_fn = env.compat.shard_map(shard, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))
    return Program(mapped_fn, args=(_field(),), reference=exact)


@program(source="jax-ml/jax#27664", facts={"collectives": {"all-reduce": 1}})
def sum_over_two_axes(env):
    """A norm summed over the whole slice at once is one reduction of sixteen devices."""
    return _make_damped_program(env, lambda part: lax.psum(part, ("y", "x")))


GPU_MERGES_REDUCTIONS = deviation(
    platform="cuda",
    outcome="ok",
    match="collectives",
    reason="XLA for GPUs makes one reduction of the two",
)


@program(
    source="jax-ml/jax#27664",
    facts={"collectives": {"all-reduce": 2}},
    deviations=[GPU_MERGES_REDUCTIONS],
)
def sum_over_one_axis_then_the_other(env):
    """The same sum by rows and then by columns is two reductions, of four devices each."""
    return _make_damped_program(env, lambda part: lax.psum(lax.psum(part, "x"), "y"))
