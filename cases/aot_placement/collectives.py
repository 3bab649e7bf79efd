"""Which collectives jit chooses for sharded operations that name none.

The sharding of arguments and results is given, how to get from one to the other is left to the
partitioner and the compiler behind it. A release that chooses otherwise is another program on
the wire: an all-reduce in place of a reduce-scatter moves twice the bytes.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, deviation, program

N = 256


def _normal(env, shape, seed=0):
    return env.rng(seed).standard_normal(shape).astype(np.float32)


def _placed(env, mesh, spec, shape, seed):
    return env.put(_normal(env, shape, seed), NamedSharding(mesh, spec))


def _double(a, b):
    return a.astype(np.float64) @ b


def _product(env, left, right, out):
    """Return a product of two matrices, the three of them sharded as told."""
    mesh = env.mesh(4, "x")
    return Program(
        lambda a, b: a @ b,
        args=(_placed(env, mesh, left, (N, N), 1), _placed(env, mesh, right, (N, N), 2)),
        jit={"out_shardings": NamedSharding(mesh, out)},
        reference=_double,
    )


@program(source="jax-ml/jax#8110", devices=4, facts={"collectives": {"all-reduce": 1}})
def summed_product(env):
    """A product whose contracted dimension is sharded, wanted whole on each device."""
    return _product(env, P(None, "x"), P("x", None), P())


@program(
    source="jax-ml/jax#8110",
    devices=4,
    facts={"collectives": {"reduce-scatter": 1}},
    deviations=[
        deviation(
            platform="cpu",
            outcome="ok",
            match="collectives",
            reason="XLA for CPUs sums everything everywhere, and keeps a part of it",
        )
    ],
)
def scattered_product(env):
    """The same product, wanted by rows: no device needs more of the sum than its own."""
    return _product(env, P(None, "x"), P("x", None), P("x", None))


@program(source="jax-ml/jax#8110", devices=4, facts={"collectives": {"all-gather": 1}})
def gathered_product(env):
    """Rows times columns: one side has to be gathered, and one is enough."""
    return _product(env, P("x", None), P(None, "x"), P(None, "x"))


@program(source="jax-ml/jax#8110", devices=4, facts={"collectives": {}})
def local_product(env):
    """Rows times everything: nothing has to be moved."""
    return _product(env, P("x", None), P(), P("x", None))


def _resharded(env, before, after):
    mesh = env.mesh(4, "x")
    return Program(
        lambda x: x * 2.0,
        args=(_placed(env, mesh, before, (N, N), 3),),
        jit={"out_shardings": NamedSharding(mesh, after)},
        reference=lambda x: x.astype(np.float64) * 2.0,
    )


@program(source="jax-ml/jax#8110", devices=4, facts={"collectives": {"all-to-all": 1}})
def rows_to_columns(env):
    """A change of sharding alone, from one dimension to the other."""
    return _resharded(env, P("x", None), P(None, "x"))


@program(source="jax-ml/jax#8110", devices=4, facts={"collectives": {"all-gather": 1}})
def rows_to_everywhere(env):
    """A change of sharding alone, to replicated."""
    return _resharded(env, P("x", None), P())


def _uneven(env, fn, by_hand):
    """Return a function of ten rows on four devices, and what it should give."""
    mesh = env.mesh(4, "x")
    everywhere, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))
    return Program(
        lambda x: fn(lax.with_sharding_constraint(x, rows)),
        args=(env.put(_normal(env, (10, N), 4), everywhere),),
        jit={"out_shardings": everywhere},
        reference=lambda x: by_hand(x.astype(np.float64)),
    )


@program(source="jax-ml/jax#26946", devices=4, facts={"collectives": {"all-reduce": 1}})
def uneven_sum(env):
    """Ten rows on four devices inside jit, summed: the padding may not be seen in the sum.

    As a result of jit such an array is replicated without a word, which is what jax#26946 found.
    Within a program XLA pads it, and shards it.
    """
    return _uneven(env, lambda x: x.sum(0), lambda x: x.sum(0))


@program(
    source="jax-ml/jax#26946",
    devices=4,
    # No claim on collectives: mathematics asks for one transfer; XLA takes two, one, or a sum over
    # all devices, by its release and platform. The golden has what it takes.
    deviations=[
        deviation(
            "jax>=0.7,<0.7.2",
            platform="cuda",
            outcome="crashed",
            reason="memory_analysis() of the executable aborts: values_.size() == 1 (1 vs. 0)",
        ),
    ],
)
def uneven_shift(env):
    """Ten rows on four devices, each moved by one: the last has to get past the padding."""
    return _uneven(env, lambda x: jnp.roll(x, 1, 0), lambda x: np.roll(x, 1, 0))


@program(
    source="jax-ml/jax#26946",
    devices=4,
    # No claim on collectives: how many XLA takes differs by its release and platform.
)
def uneven_halves(env):
    """Ten rows on four devices, the halves added: neither half begins where a shard does."""
    return _uneven(env, lambda x: x[:5] + x[5:], lambda x: x[:5] + x[5:])


@program(
    source="jax-ml/jax#8110",
    devices=4,
    facts={"collectives": {"all-reduce": 1}},
    same_as=("jit", "eager", "aot", "vmap_of_one", "unsharded"),
)
def megatron_block(env):
    """Two products, the first split by columns, the second by rows: one all-reduce is enough."""
    mesh = env.mesh(4, "x")

    def block(x, up, down):
        return jnp.maximum(x @ up, 0.0) @ down

    return Program(
        block,
        args=(
            _placed(env, mesh, P(), (N, N), 5),
            _placed(env, mesh, P(None, "x"), (N, 4 * N), 6),
            _placed(env, mesh, P("x", None), (4 * N, N), 7),
        ),
        jit={"out_shardings": NamedSharding(mesh, P())},
        reference=lambda x, up, down: np.maximum(_double(x, up), 0.0) @ down,
    )
