"""Programs from reports of sharded arrays with wrong numbers, and their neighbours."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program
from conformance.kit.endings import refusal

defaults(devices=8, platforms=("cpu",))


def shard(mesh, array, *spec):
    """Return an array with a sharding on a mesh."""
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


LAST_ROWS_LOST = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the last row of each shard but the last was that of the whole matrix",
    issue="jax-ml/jax#18434",
)


@program(source="jax-ml/jax#18434", same_as=("eager",), deviations=[LAST_ROWS_LOST])
def shift_then_set(env):
    """Rows that are shifted, and the last one set, in one jitted function."""
    mesh = env.mesh(8, "x")

    def assign(a, value):
        return a.at[:-1].set(a[1:]).at[-1].set(jnp.full(16, value))

    def reference(a, value):
        return np.concatenate([a[1:], np.full((1, 16), value, np.float32)])

    matrix = np.arange(256, dtype=np.float32).reshape(16, 16)
    return Program(assign, (shard(mesh, matrix, "x"), np.float32(1.5)), reference=reference)


ADDED_UP = deviation(
    "jax<0.5",
    params=["one_axis_of_two"],
    outcome="ok",
    reason="copies along the axis of the mesh that the sharding does not use were added up",
    issue="jax-ml/jax#24576",
)


@program(
    source="jax-ml/jax#24576",
    deviations=[ADDED_UP],
    params={"one_axis_of_two": {"spec": ["data"]}, "both_axes": {"spec": [["data", "model"]]}},
    same_as=("eager",),
)
def concatenate_vectors(env, spec):
    """Two vectors of different length that are sharded over one axis of a mesh of two."""
    mesh = env.mesh((4, 2), ("data", "model"))
    spec = [tuple(axes) if isinstance(axes, list) else axes for axes in spec]
    vectors = [np.arange(8, dtype=np.float32), np.arange(8, 24, dtype=np.float32)]
    return Program(
        lambda a, b: jnp.concatenate([a, b]),
        [shard(mesh, vector, *spec) for vector in vectors],
        reference=lambda a, b: np.concatenate([a, b]),
    )


COPIES_ADDED_UP = deviation(
    "jax<0.5",
    outcome="ok",
    reason="copies along the axis of the mesh that the sharding does not use were added up",
    issue="jax-ml/jax#19106",
)


@program(source="jax-ml/jax#19106", same_as=("eager",), deviations=[COPIES_ADDED_UP])
def concatenate_replicated_and_sharded(env):
    """A replicated vector and a sharded one."""
    mesh = env.mesh((4, 2), ("data", "model"))
    vectors = np.arange(2, dtype=np.float32), np.arange(2, 12, dtype=np.float32)
    return Program(
        lambda a, b: jnp.concatenate([a, b]),
        (shard(mesh, vectors[0]), shard(mesh, vectors[1], "model")),
        reference=lambda a, b: np.concatenate([a, b]),
    )


CREATED = {
    "arange": lambda n: n.arange(24, dtype=np.float32),
    "linspace": lambda n: n.linspace(0, 1, 24, dtype=np.float32),
    "eye": lambda n: n.eye(24, dtype=np.float32),
    "tri": lambda n: n.tri(24, dtype=np.float32),
    "indices": lambda n: n.indices((24, 2))[0].astype(np.float32),
    "tile": lambda n: n.tile(n.arange(8, dtype=np.float32), 3),
    "concatenate": lambda n: n.concatenate([n.zeros(8, np.float32), n.ones(16, np.float32)]),
}


TWICE = deviation(
    "jax<0.5",
    params=["linspace"],
    outcome="ok",
    reason="its last element is concatenated, and the copies were added up",
    issue="jax-ml/jax#24576",
)


@program(source="jax-ml/jax#24576", params=[*CREATED], deviations=[TWICE])
def created_sharded(env, function):
    """An array that a jitted function creates with a sharding over one axis of two."""
    sharding = NamedSharding(env.mesh((4, 2), ("data", "model")), P("data"))
    create = CREATED[function]
    return Program(
        lambda: create(jnp), jit={"out_shardings": sharding}, reference=lambda: create(np)
    )


@program(source="jax-ml/jax#21403")
def cumsum_of_a_constrained_mask(env):
    """The cumulative sum of integers along a sharded axis, whose result is replicated."""
    mesh = env.mesh((4, 2), ("dp", "sp"))
    return Program(
        lambda mask: jnp.cumsum(
            lax.with_sharding_constraint(mask, NamedSharding(mesh, P("dp", "sp"))), axis=-1
        ),
        (shard(mesh, np.ones((8, 64), np.int32)),),
        jit={"out_shardings": NamedSharding(mesh, P())},
        reference=lambda mask: np.cumsum(mask, axis=-1, dtype=np.int32),
    )


@program(source="jax-ml/jax#35896", x64=True)
def arange_of_64_bits(env):
    """The largest of many integers of 64 bits that are created with a sharding, and their sum."""
    sharding = NamedSharding(env.mesh(8, "x"), P("x"))
    size = 1 << 16

    def run():
        numbers = lax.with_sharding_constraint(jnp.arange(size) + (1 << 40), sharding)
        return numbers.max(), numbers.sum(), numbers.astype(np.float64)[-1]

    largest = size - 1 + (1 << 40)
    exact = np.int64(largest), np.int64(size * (size - 1) // 2 + size * (1 << 40))
    return Program(run, reference=(*exact, np.float64(largest)))


def pad(x, low, high):
    """Return a vector with zeros at its ends, or without as many elements where negative."""
    return lax.pad(x, np.float32(0), [(low, high, 0)])


NOT_COMPILED = deviation(
    "jax>=0.5",
    error="XlaRuntimeError|JaxRuntimeError",
    match="Expected instruction to have shape equal to",
    reason="the partitioner makes a concatenation of the wrong shape",
    issue="jax-ml/jax#39301",
)


@program(source="jax-ml/jax#39301", deviations=[NOT_COMPILED])
def concatenate_parts(env):
    """Two concatenations of parts of a vector of which each device has one element."""
    mesh = env.mesh(4, "x")

    def run(x):
        rolled = lax.concatenate([pad(x, -3, 0), pad(x, 0, -1)], 0)
        return rolled + lax.concatenate([pad(x, -1, 0), pad(x, 0, -3)], 0)

    vector = np.arange(4, dtype=np.float32)
    return Program(
        run,
        (shard(mesh, vector, "x"),),
        reference=lambda x: np.roll(x, 1) + np.roll(x, -1),
    )


@program(source="jax-ml/jax#39301", params={"one": {"rows": 4}, "two": {"rows": 8}})
def transposed_roll(env, rows):
    """A roll and its transpose, where each device has one element or two."""
    mesh = env.mesh(4, "x")
    vector = np.arange(rows, dtype=np.float32)

    def run(x):
        (back,) = jax.linear_transpose(lambda y: jnp.roll(y, 1) - y, vector)(x)
        return jnp.roll(back, 1) - back

    def reference(x):
        back = np.roll(x, -1) - x
        return np.roll(back, 1) - back

    return Program(run, (shard(mesh, vector, "x"),), reference=reference)


@program(source="jax-ml/jax#27686")
def repeat_by_count(env):
    """Rows that are repeated as often as a replicated vector says, to a fixed total length."""
    mesh = env.mesh(8, "x")
    return Program(
        lambda a, counts: jnp.repeat(a, counts, axis=0, total_repeat_length=24),
        (shard(mesh, np.eye(8, dtype=np.float32), "x"), shard(mesh, np.arange(8) % 4 * 2)),
        reference=lambda a, counts: np.repeat(a, counts, axis=0),
    )


WRONG_PIECES = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="the joined pieces had wrong elements",
)


@program(source="jax-ml/jax#39100", deviations=[WRONG_PIECES])
def padded_pieces(env):
    """Pieces that are padded, multiplied and joined again, next to another such chain."""
    mesh = env.mesh(4, "x")

    def join(n, pieces):
        return n.concatenate(pieces)

    def run(n, x, z):
        def widen(a):
            return join(n, [n.pad(a[2 * k : 2 * k + 2], (1, 2)) for k in range(4)])

        def narrow(a):
            return join(n, [a[5 * k + 1 : 5 * k + 3] for k in range(4)])

        return narrow(widen(x) * z) + narrow(widen(narrow(z)))

    vectors = np.arange(1, 9, dtype=np.float32), np.arange(20, dtype=np.float32)
    return Program(
        lambda x, z: run(jnp, x, z),
        [shard(mesh, vector, "x") for vector in vectors],
        reference=lambda x, z: run(np, x, z),
    )


CRASHED = deviation(
    "jax>=0.7,<0.11",
    params=["last_axis"],
    outcome="crashed",
    reason="a check of the partitioner of FFTs failed and ended the process",
)


@program(
    source="jax-ml/jax#16909",
    deviations=[CRASHED],
    params={
        "first_axis": {"spec": ["x"]},
        "second_axis": {"spec": [None, "x"]},
        "last_axis": {"spec": [None, None, "x"]},
    },
    rtol=1e-4,
    atol=1e-3,
)
def fourier_transform_in_3d(env, spec):
    """The Fourier transform of a complex array of three axes, one of them sharded."""
    mesh = env.mesh(4, "x")
    array = np.random.RandomState(0).standard_normal((2, 4, 4, 4)).astype(np.float32)
    return Program(
        jnp.fft.fftn,
        (shard(mesh, array[0] + 1j * array[1], *spec),),
        reference=lambda x: np.fft.fftn(x).astype(np.complex64),
    )


PARTLY_REPLICATED = {
    "row": lambda x: x[0],
    "reversed": lambda x: x[::-1],
    "split_columns": lambda x: x.reshape(8, 2, 4),
}
SHARDING_OF_THE_COMPILER = deviation(
    "jax<0.7",
    params=["row", "reversed"],
    outcome="ok",
    reason="the result has the sharding of the compiler, without a mesh and a spec",
)
SHARDING_OF_SPLIT_COLUMNS = deviation(
    "jax<0.9.1",
    params=["split_columns"],
    outcome="ok",
    reason="the result has the sharding of the compiler, without a mesh and a spec",
)
SPLIT_COLUMNS_REFUSED = deviation(
    "jax>=0.9.1,<0.10",
    params=["split_columns"],
    error="IndivisibleError",
    match="is incompatible with mesh_shape",
    reason="the sharding of the compiler is none over the mesh",
)


@probe(
    source="jax-ml/jax@df8e17a54910",
    devices=8,
    params=[*PARTLY_REPLICATED],
    deviations=[SHARDING_OF_THE_COMPILER, SHARDING_OF_SPLIT_COLUMNS, SPLIT_COLUMNS_REFUSED],
)
def sharding_that_has_a_spec(env, name):
    """A result of jit that the compiler shards over two axes of a mesh has a NamedSharding.

    Before, `y.sharding.spec` was an AttributeError: the sharding was a GSPMDSharding.
    """
    rows_and_columns = NamedSharding(env.mesh((2, 4), ("a", "b")), P("a", "b"))
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    y = jax.jit(PARTLY_REPLICATED[name])(jax.device_put(x, rows_and_columns))
    observed = {"class": type(y.sharding).__name__, "value": np.asarray(y)}
    return Observed(observed, {"class": "NamedSharding", "value": PARTLY_REPLICATED[name](x)})


BITS_WERE_GATHERED = deviation(
    "jax>=0.4.36",
    outcome="ok",
    reason="a reduction of bits is an all-reduce, which XLA for CPUs does not implement",
    issue="jax-ml/jax@6e1aa3c1e7f1",
)


@probe(source="jax-ml/jax@6e1aa3c1e7f1", releases="jax>=0.4.33", deviations=[BITS_WERE_GATHERED])
def bits_of_all_shards(env):
    """On a CPU, `jnp.bitwise_or.reduce` of a sharded array outside of jit is an error from 0.4.36.

    Before, it was a loop over the elements. On one device it is right in all releases.
    """
    bits = np.arange(8, dtype=np.int32)
    sharded = shard(env.mesh(8, "x"), bits, "x")
    observed = {
        "sharded": refusal(lambda: jnp.bitwise_or.reduce(sharded), "UNIMPLEMENTED"),
        "one device": int(jnp.bitwise_or.reduce(bits)),
    }
    return Observed(observed, {"sharded": "ran", "one device": 7})


COLUMNS_SHARDED = deviation(
    "jax<0.10.1",
    outcome="ok",
    match="columns",
    reason="the columns of the result were sharded",
)


@probe(
    source="jax-ml/jax#18434",
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[COLUMNS_SHARDED],
)
def matrix_with_a_sharded_diagonal(env, jit):
    """`jnp.diag` of a sharded vector shards the rows of the matrix; up to 0.10.0, its columns."""
    x = shard(env.mesh(8, "x"), np.arange(8, dtype=np.float32), "x")
    result = (jax.jit(jnp.diag) if jit else jnp.diag)(x)
    rows = result.sharding.shard_shape((8, 8))[0] == 1
    observed = {"value": np.asarray(result), "sharded": "rows" if rows else "columns"}
    return Observed(observed, {"value": np.diag(np.arange(8.0)), "sharded": "rows"})
