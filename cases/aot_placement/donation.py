"""Donation as the executable has it: which parameter an output may overwrite.

That a donated array is gone after the call is jax's doing (topic `calls`). That its memory is
used again is XLA's, stated as `input_output_alias` in the header of the module, and lost without
a word when shapes, shardings or memories do not agree.
"""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, deviation, program


def _numbers(env, shape=(256, 256), seed=0):
    return env.rng(seed).standard_normal(shape).astype(np.float32)


@program(
    source="jax-ml/jax#15368",
    devices=4,
    facts={"donation": ["parameter 0 -> output [0] may-alias"]},
    same_as=("jit", "eager", "aot", "vmap_of_one", "unsharded"),
)
def train_step(env):
    """Parameters donated, sharded, given back with the same sharding."""
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    return Program(
        lambda w, g: (w - 0.1 * g, (g * g).sum()),
        args=(env.put(_numbers(env), rows), env.put(_numbers(env, seed=1), rows)),
        jit={"donate_argnums": 0, "out_shardings": (rows, None)},
        reference=lambda w, g: (
            w - 0.1 * g.astype(np.float64),
            (g.astype(np.float64) ** 2).sum(),
        ),
    )


@program(
    source="jax-ml/jax#15368",
    devices=4,
    facts={"donation": ["parameter 0 -> output [] may-alias"]},
)
def in_shard_map(env):
    """The same inside shard_map, where the reporter found that the buffer was not used again."""
    mesh = env.mesh(4, "x")

    def shift(u):
        moved = lax.ppermute(u[-1:], "x", [(i, (i + 1) % 4) for i in range(4)])
        return lax.dynamic_update_slice_in_dim(u, moved, 0, 0)

    fn = env.compat.shard_map(shift, mesh=mesh, in_specs=P("x"), out_specs=P("x"))

    def by_hand(u):
        u = u.copy()
        u[::64] = u[63::64][[3, 0, 1, 2]]
        return u

    return Program(
        fn,
        args=(env.put(_numbers(env), NamedSharding(mesh, P("x"))),),
        jit={"donate_argnums": 0},
        reference=by_hand,
    )


@program(source="jax-ml/jax#1733", facts={"donation": []})
def halves_of_it(env):
    """A donated argument that no output is as large as is not aliased to any."""
    return Program(
        lambda x: x[:128] + x[128:],
        args=(_numbers(env),),
        jit={"donate_argnums": 0},
        reference=lambda x: x[:128].astype(np.float64) + x[128:],
    )


@program(
    source="jax-ml/jax#1733",
    devices=4,
    facts={"donation": ["parameter 0 -> output [] may-alias"]},
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            match="donation",
            reason="shards of other shapes were not matched, however large",
        )
    ],
)
def resharded(env):
    """Donated as rows, wanted as columns: shards of another shape, but of the same size."""
    mesh = env.mesh(4, "x")
    rows, columns = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, "x"))
    return Program(
        lambda x: x + 1.0,
        args=(env.put(_numbers(env), rows),),
        jit={"donate_argnums": 0, "out_shardings": columns},
        reference=lambda x: x.astype(np.float64) + 1.0,
    )


@program(source="jax-ml/jax#1733", facts={"donation": ["parameter 0 -> output [] may-alias"]})
def carried_by_a_loop(env):
    """A donated argument that a loop updates in place: one buffer from start to end."""

    def run(x):
        return lax.fori_loop(0, 10, lambda i, y: y.at[i].mul(2.0), x)

    def by_hand(x):
        x = x.astype(np.float64)
        x[:10] *= 2.0
        return x

    return Program(jax.jit(run, donate_argnums=0), args=(_numbers(env),), reference=by_hand)
