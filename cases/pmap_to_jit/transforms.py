"""pmap with other transformations: nested, differentiated, vectorised, lowered ahead of time.

The pmap of 0.8.0 cannot be nested: a `shard_map` inside another over another mesh is an error.
Collectives and gradients are unchanged; the cases compare them with NumPy.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import DEVICES, map_rows, observe, rows

defaults(devices=4, platforms=("cpu",))


NESTED_MESHES_DIFFER = deviation(
    "jax>=0.8",
    error="ValueError",
    match="should match the mesh passed to shard_map",
    reason="each pmap has a separate mesh, and a shard_map within another must share its mesh",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    params={"collective": {"total": True}, "plain": {"total": False}},
    deviations=[NESTED_MESHES_DIFFER],
)
def nested(env, total):
    """A pmap in a pmap, on two by two devices, is refused from 0.8.0.

    Write a single `shard_map` over a mesh of two axes; its collectives accept both names.
    """

    def cell(x):
        return lax.psum(x, ("i", "j")) if total else 2 * x

    grid = np.arange(4, dtype=np.float32).reshape(2, 2)
    out = jax.pmap(jax.pmap(cell, axis_name="j"), axis_name="i")(grid)
    return observe(out, np.full((2, 2), 6, np.float32) if total else 2 * grid)


@probe(source="jax-ml/jax@aa2f995b1db5")
def nested_instead(env):
    """A `shard_map` over a mesh of two axes replaces a nested pmap on every release."""
    mesh = env.mesh((2, 2), ("i", "j"))
    spec = jax.sharding.PartitionSpec("i", "j")
    total = env.compat.shard_map(
        lambda x: lax.psum(x, ("i", "j")) + 0 * x, mesh=mesh, in_specs=spec, out_specs=spec
    )
    grid = np.arange(4, dtype=np.float32).reshape(2, 2)
    return observe(jax.jit(total)(grid), np.full((2, 2), 6, np.float32))


COLLECTIVES = {
    "psum": (lambda x: lax.psum(x, "i"), lambda x: np.tile(x.sum(0), (4, 1))),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda x: np.tile(x.mean(0), (4, 1))),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda x: np.tile(x.max(0), (4, 1))),
    "pmin": (lambda x: lax.pmin(x, "i"), lambda x: np.tile(x.min(0), (4, 1))),
    "all_gather": (lambda x: lax.all_gather(x, "i"), lambda x: np.tile(x, (4, 1, 1))),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), lambda x: x.sum(0)),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: x.T),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [3, 2, 1, 0]), lambda x: x[::-1]),
    "ppermute": (
        lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]),
        lambda x: np.stack([x[2], x[0], x[1], 0 * x[3]]),
    ),
    "groups": (
        lambda x: lax.psum(x, "i", axis_index_groups=[[0, 3], [1, 2]]),
        lambda x: np.stack([x[0] + x[3], x[1] + x[2], x[1] + x[2], x[0] + x[3]]),
    ),
    "axis_index": (
        lambda x: lax.axis_index("i") + 0 * x.astype(jnp.int32),
        lambda x: np.arange(4, dtype=np.int32)[:, None] + 0 * x.astype(np.int32),
    ),
}


@probe(source="jax-ml/jax@aa2f995b1db5")
def collectives(env):
    """Each collective over the axis of a pmap is exact for integers as floats, on every release."""
    x = np.arange(16, dtype=np.float32).reshape(DEVICES, 4)[:, ::-1].copy()
    values = map_rows(env, lambda x: {name: fn(x) for name, (fn, _) in COLLECTIVES.items()})(x)
    return observe(values, {name: exact(x) for name, (_, exact) in COLLECTIVES.items()})


@probe(source="jax-ml/jax@aa2f995b1db5")
def gradient(env):
    """The gradient of a psum'd loss is 2x outside the pmap, and four times as much inside.

    Types within a pmap do not record what varies, so psum is its own transpose, also from 0.8.0,
    where the underlying `shard_map` has the check off.
    """

    def loss(row):
        return lax.psum(jnp.sum(row**2), "i")

    outside = jax.grad(lambda x: map_rows(env, loss)(x)[0])(rows())
    gradients = {"inside": map_rows(env, jax.grad(loss))(rows()), "outside": outside}
    return observe(gradients, {"inside": 8 * rows(), "outside": 2 * rows()})


@probe(source="jax-ml/jax@aa2f995b1db5")
def vectorised(env):
    """Under `vmap` over another axis, the psum of a pmap sums over devices, not over the batch."""
    totals = jax.vmap(map_rows(env, lambda x: lax.psum(x, "i")), in_axes=1)(rows())
    return observe(totals, np.tile(rows().sum(0)[:, None], (1, DEVICES)))


@probe(source="jax-ml/jax#31910")
def ahead_of_time(env):
    """`pmap(f).lower(x).compile()(x)` returns the same values and tree as `pmap(f)(x)`.

    A trial of the new pmap returned a list instead (jax#31910); no release has shown it.
    """
    steps = {"one": lambda row: 2 * row, "pair": lambda row: (row, 2 * row)}
    values = {k: map_rows(env, step).lower(rows()).compile()(rows()) for k, step in steps.items()}
    return observe(values, {"one": 2 * rows(), "pair": (rows(), 2 * rows())})


ONE_REPLICA_PER_DEVICE = deviation(
    "jax<0.8",
    outcome="ok",
    reason="the program had one replica for each device, and a single row as its argument",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@aa2f995b1db5", deviations=[ONE_REPLICA_PER_DEVICE])
def partitions_of_the_program(env):
    """A pmap is lowered for four partitions of one replica from 0.8.0, before for four replicas.

    In its StableHLO the argument is now the whole batch, and `axis_index` the number of a
    partition.
    """
    text = map_rows(env, lambda row: lax.psum(row, "i")).lower(rows()).as_text()
    return observe(
        {
            "partitions": "num_partitions = 4" in text,
            "replicas": "num_replicas = 4" in text,
            "whole_batch": "tensor<4x2xf32>" in text,
        },
        {"partitions": True, "replicas": False, "whole_batch": True},
    )


UNKNOWN_AXIS_REFUSED = deviation(
    error="NameError",
    match="unbound axis name: k",
    reason="the axis of a collective must be that of its pmap",
    issue="jax-ml/jax@ae7924995a33",
)


@probe(source="jax-ml/jax@ae7924995a33", deviations=[UNKNOWN_AXIS_REFUSED])
def unknown_axis(env):
    """A psum over a name other than the axis of its pmap is a NameError.

    From 0.7.0 the message recommends shard_map.
    """
    return observe(map_rows(env, lambda row: lax.psum(row, "k"))(rows()), rows())


@probe(source="jax-ml/jax@aa2f995b1db5")
def without_jit(env):
    """Under `jax.disable_jit` the collectives of a pmap still run over its devices."""
    with jax.disable_jit():
        out = map_rows(env, lambda row: lax.psum(row, "i") - row)(rows())
    return observe(out, rows().sum(0) - rows())


GRADIENT_ASSERTION_FAILED = deviation(
    "jax<0.4.31",
    error="AssertionError",
    reason="not implemented; an assertion failed without an explanation",
    issue="jax-ml/jax#14296",
)
GRADIENT_NOT_IMPLEMENTED = deviation(
    "jax>=0.4.31,<0.8",
    error="NotImplementedError",
    match="out_axes=None is not supported",
    reason="not implemented, as the message states",
    issue="jax-ml/jax#14296",
)


@probe(source="jax-ml/jax#14296", deviations=[GRADIENT_ASSERTION_FAILED, GRADIENT_NOT_IMPLEMENTED])
def gradient_of_one_result(env):
    """The gradient through `pmap(..., out_axes=None)` works from 0.8.0.

    The result is a total that all devices have.
    """
    total = map_rows(env, lambda x: lax.psum(x**2, "i"), out_axes=None)
    x = np.arange(DEVICES, dtype=np.float32)
    return Observed(jax.grad(lambda x: total(x).sum())(x), reference=2 * x)


JIT_OF_PMAP_WARNS = deviation(
    "jax<0.8",
    outcome="ok",
    reason="a UserWarning about inefficient transfers between devices",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@aa2f995b1db5", deviations=[JIT_OF_PMAP_WARNS])
def warning_under_jit(env):
    """A pmap under `jit` gave a UserWarning up to 0.7.2; as jit of shard_map it gives none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = jax.jit(map_rows(env, lambda x: 2 * x))(rows())
    found = sorted({w.category.__name__ for w in caught if "pmap" in str(w.message)})
    return observe((out, found), (2 * rows(), []))


AXIS_ASSERTED = deviation(
    "jax<0.8",
    error="AssertionError",
    reason="an axis is a position, not negative",
)
ROWS_JOINED_AT_AXIS_ZERO = deviation(
    "jax>=0.8",
    outcome="ok",
    reason="the new axis is the last one, but the results are joined along the first",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    deviations=[AXIS_ASSERTED, ROWS_JOINED_AT_AXIS_ZERO],
)
def result_along_the_last_axis(env):
    """`pmap(f, out_axes=-1)` of rows silently returns a single column from 0.8.0 on.

    `vmap` returns the rows as columns. Before, pmap raised an AssertionError; `out_axes=1` works.
    """
    return observe(map_rows(env, lambda row: 2 * row, out_axes=-1)(rows()), 2 * rows().T)
