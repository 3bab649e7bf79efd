"""Collectives that jit chooses for sharded operations that name none.

The shardings of arguments and results are given; the partitioner and the compiler behind it choose
how to convert them. A release that chooses otherwise is another program on the wire: an all-reduce
in place of a reduce-scatter moves twice the bytes.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, defaults, deviation, program

defaults(devices=4)

N = 256


def _draw_normal(env, shape, seed=0):
    return env.rng(seed).standard_normal(shape).astype(np.float32)


def _put_normal(env, mesh, spec, shape, seed):
    return env.put(_draw_normal(env, shape, seed), NamedSharding(mesh, spec))


def _multiply(a, b):
    return a.astype(np.float64) @ b


def _make_product(env, left, right, out):
    """Return a product of two matrices, with the shardings of both and of the result."""
    mesh = env.mesh(4, "x")
    return Program(
        lambda a, b: a @ b,
        args=(_put_normal(env, mesh, left, (N, N), 1), _put_normal(env, mesh, right, (N, N), 2)),
        jit={"out_shardings": NamedSharding(mesh, out)},
        reference=_multiply,
    )


@program(source="jax-ml/jax#8110", facts={"collectives": {"all-reduce": 1}})
def summed_product(env):
    """A product over a sharded dimension, wanted whole on each device, takes one all-reduce."""
    return _make_product(env, P(None, "x"), P("x", None), P())


CPU_SUMS_EVERYWHERE = deviation(
    platform="cpu",
    outcome="ok",
    match="collectives",
    reason="XLA for CPUs sums everything on every device, and keeps a part of it",
)


@program(
    source="jax-ml/jax#8110",
    facts={"collectives": {"reduce-scatter": 1}},
    deviations=[CPU_SUMS_EVERYWHERE],
)
def scattered_product(env):
    """A product over a sharded dimension, wanted by rows, takes one reduce-scatter.

    No device needs more of the sum than its own part.
    """
    return _make_product(env, P(None, "x"), P("x", None), P("x", None))


@program(source="jax-ml/jax#8110", facts={"collectives": {"all-gather": 1}})
def gathered_product(env):
    """A product of sharded rows and sharded columns takes one all-gather.

    Only one of the two matrices has to be gathered.
    """
    return _make_product(env, P("x", None), P(None, "x"), P(None, "x"))


@program(source="jax-ml/jax#8110", facts={"collectives": {}})
def local_product(env):
    """A product of sharded rows and a replicated matrix moves nothing."""
    return _make_product(env, P("x", None), P(), P("x", None))


def _make_resharding(env, before, after):
    mesh = env.mesh(4, "x")
    return Program(
        lambda x: x * 2.0,
        args=(_put_normal(env, mesh, before, (N, N), 3),),
        jit={"out_shardings": NamedSharding(mesh, after)},
        reference=lambda x: x.astype(np.float64) * 2.0,
    )


@program(source="jax-ml/jax#8110", facts={"collectives": {"all-to-all": 1}})
def rows_to_columns(env):
    """A change of sharding alone, from rows to columns, takes one all-to-all."""
    return _make_resharding(env, P("x", None), P(None, "x"))


@program(source="jax-ml/jax#8110", facts={"collectives": {"all-gather": 1}})
def rows_to_everywhere(env):
    """A change of sharding alone, from rows to replicated, takes one all-gather."""
    return _make_resharding(env, P("x", None), P())


def _make_uneven(env, fn, reference):
    """Return a program on ten rows over four devices, with its reference."""
    mesh = env.mesh(4, "x")
    everywhere, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))
    return Program(
        lambda x: fn(lax.with_sharding_constraint(x, rows)),
        args=(env.put(_draw_normal(env, (10, N), 4), everywhere),),
        jit={"out_shardings": everywhere},
        reference=lambda x: reference(x.astype(np.float64)),
    )


@program(source="jax-ml/jax#26946", facts={"collectives": {"all-reduce": 1}})
def uneven_sum(env):
    """The sum of ten rows on four devices, inside jit, does not include the padding.

    As a result of jit such an array is silently replicated, as jax#26946 found. Within a program
    XLA pads it, and shards it.
    """
    return _make_uneven(env, lambda x: x.sum(0), lambda x: x.sum(0))


MEMORY_ANALYSIS_ABORTS = deviation(
    "jax>=0.7,<0.7.2",
    platform="cuda",
    outcome="crashed",
    reason="memory_analysis() of the executable aborts: values_.size() == 1 (1 vs. 0)",
)


# No claim on collectives: the mathematics needs one transfer; depending on its release and the
# platform, XLA uses two, one, or a sum over all devices. The golden records which.
@program(source="jax-ml/jax#26946", deviations=[MEMORY_ANALYSIS_ABORTS])
def uneven_shift(env):
    """Ten rows on four devices, each shifted by one: the last row has to get past the padding."""
    return _make_uneven(env, lambda x: jnp.roll(x, 1, 0), lambda x: np.roll(x, 1, 0))


# No claim on collectives: their number depends on the release of XLA and on the platform.
@program(source="jax-ml/jax#26946")
def uneven_halves(env):
    """The two halves of ten rows on four devices are added: the second begins within a shard."""
    return _make_uneven(env, lambda x: x[:5] + x[5:], lambda x: x[:5] + x[5:])


@program(
    source="jax-ml/jax#8110",
    facts={"collectives": {"all-reduce": 1}},
    same_as=("jit", "eager", "aot", "vmap_of_one", "unsharded"),
)
def megatron_block(env):
    """Two products, the first split by columns, the second by rows, take one all-reduce."""
    mesh = env.mesh(4, "x")

    def block(x, up, down):
        return jnp.maximum(x @ up, 0.0) @ down

    return Program(
        block,
        args=(
            _put_normal(env, mesh, P(), (N, N), 5),
            _put_normal(env, mesh, P(None, "x"), (N, 4 * N), 6),
            _put_normal(env, mesh, P("x", None), (4 * N, N), 7),
        ),
        jit={"out_shardings": NamedSharding(mesh, P())},
        reference=lambda x, up, down: np.maximum(_multiply(x, up), 0.0) @ down,
    )
