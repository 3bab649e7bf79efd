"""Donation as the executable shows it: which parameter an output may overwrite.

JAX deletes a donated array after the call (topic `calls`). XLA reuses its memory, which is shown as
`input_output_alias` in the header of the module, and silently lost if shapes, shardings or memories
do not agree.
"""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, deviation, program


def _draw_normal(env, shape=(256, 256), seed=0):
    return env.rng(seed).standard_normal(shape).astype(np.float32)


@program(
    source="jax-ml/jax#15368",
    devices=4,
    facts={"donation": ["parameter 0 -> output [0] may-alias"]},
    same_as=("jit", "eager", "aot", "vmap_of_one", "unsharded"),
)
def train_step(env):
    """A result may overwrite donated, sharded parameters if it has the same sharding."""
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    return Program(
        lambda w, g: (w - 0.1 * g, (g * g).sum()),
        args=(env.put(_draw_normal(env), rows), env.put(_draw_normal(env, seed=1), rows)),
        jit={"donate_argnums": 0, "out_shardings": (rows, None)},
        reference=lambda w, g: (
            w - 0.1 * g.astype(np.float64),
            (g.astype(np.float64) ** 2).sum(),
        ),
    )


@program(
    source="jax-ml/jax#15368", devices=4, facts={"donation": ["parameter 0 -> output [] may-alias"]}
)
def in_shard_map(env):
    """A donated buffer is reused inside shard_map, where the reporter found that it was not."""
    mesh = env.mesh(4, "x")

    def shift(u):
        moved = lax.ppermute(u[-1:], "x", [(i, (i + 1) % 4) for i in range(4)])
        return lax.dynamic_update_slice_in_dim(u, moved, 0, 0)

    fn = env.compat.shard_map(shift, mesh=mesh, in_specs=P("x"), out_specs=P("x"))

    def shift_whole(u):
        u = u.copy()
        u[::64] = u[63::64][[3, 0, 1, 2]]
        return u

    return Program(
        fn,
        args=(env.put(_draw_normal(env), NamedSharding(mesh, P("x"))),),
        jit={"donate_argnums": 0},
        reference=shift_whole,
    )


@program(source="jax-ml/jax#1733", facts={"donation": []})
def halves_of_it(env):
    """A donated argument is not aliased if no output is as large."""
    return Program(
        lambda x: x[:128] + x[128:],
        args=(_draw_normal(env),),
        jit={"donate_argnums": 0},
        reference=lambda x: x[:128].astype(np.float64) + x[128:],
    )


SHARD_SHAPES_NOT_MATCHED = deviation(
    "jax<0.8",
    outcome="ok",
    match="donation",
    reason="shards of other shapes were not matched, regardless of their size",
)


@program(
    source="jax-ml/jax#1733",
    devices=4,
    facts={"donation": ["parameter 0 -> output [] may-alias"]},
    deviations=[SHARD_SHAPES_NOT_MATCHED],
)
def resharded(env):
    """A buffer donated as rows is reused for columns: shards of another shape, of equal size."""
    mesh = env.mesh(4, "x")
    rows, columns = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, "x"))
    return Program(
        lambda x: x + 1.0,
        args=(env.put(_draw_normal(env), rows),),
        jit={"donate_argnums": 0, "out_shardings": columns},
        reference=lambda x: x.astype(np.float64) + 1.0,
    )


@program(source="jax-ml/jax#1733", facts={"donation": ["parameter 0 -> output [] may-alias"]})
def carried_by_a_loop(env):
    """A donated argument that a loop updates in place has one buffer from start to end."""

    def run(x):
        return lax.fori_loop(0, 10, lambda i, y: y.at[i].mul(2.0), x)

    def double_rows(x):
        x = x.astype(np.float64)
        x[:10] *= 2.0
        return x

    return Program(jax.jit(run, donate_argnums=0), args=(_draw_normal(env),), reference=double_rows)
