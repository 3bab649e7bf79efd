"""A pmap among other transformations: nested, differentiated, vectorised, lowered ahead of time.

Nesting is what the pmap of 0.8.0 lost: a `shard_map` inside another over another mesh is an error.
Collectives and gradients are those of old, checked here against numbers made by NumPy.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe

from ._helpers import DEVICES, mapped, observed, rows


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    platforms=("cpu",),
    params={"collective": {"total": True}, "plain": {"total": False}},
    deviations=[
        deviation(
            "jax>=0.8",
            error="ValueError",
            match="should match the mesh passed to shard_map",
            reason="each pmap has a mesh of its own, and a shard_map within another must share one",
            issue="jax-ml/jax@aa2f995b1db5",
        )
    ],
)
def nested(env, total):
    """A pmap in a pmap, two by two devices: refused from 0.8.0.

    Write one `shard_map` over a mesh of two axes; its collectives take both names.
    """

    def cell(x):
        return lax.psum(x, ("i", "j")) if total else 2 * x

    grid = np.arange(4, dtype=np.float32).reshape(2, 2)
    out = jax.pmap(jax.pmap(cell, axis_name="j"), axis_name="i")(grid)
    return observed(out, np.full((2, 2), 6, np.float32) if total else 2 * grid)


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, platforms=("cpu",))
def nested_instead(env):
    """The same over a mesh of two axes, on every release."""
    mesh = env.mesh((2, 2), ("i", "j"))
    spec = jax.sharding.PartitionSpec("i", "j")
    total = env.compat.shard_map(
        lambda x: lax.psum(x, ("i", "j")) + 0 * x, mesh=mesh, in_specs=spec, out_specs=spec
    )
    grid = np.arange(4, dtype=np.float32).reshape(2, 2)
    return observed(jax.jit(total)(grid), np.full((2, 2), 6, np.float32))


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


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, platforms=("cpu",))
def collectives(env):
    """Each collective over the axis of a pmap, exact integers as floats, on every release."""
    x = np.arange(16, dtype=np.float32).reshape(DEVICES, 4)[:, ::-1].copy()
    made = mapped(env, lambda x: {name: fn(x) for name, (fn, _) in COLLECTIVES.items()})(x)
    return observed(made, {name: exact(x) for name, (_, exact) in COLLECTIVES.items()})


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, platforms=("cpu",))
def gradient(env):
    """The gradient of a psum'd loss: 2x from outside, four times as much from inside.

    A pmap has no types of what varies, so psum stays its own transpose in it: from 0.8.0 too,
    where the `shard_map` underneath is made with the check off.
    """

    def loss(row):
        return lax.psum(jnp.sum(row**2), "i")

    outside = jax.grad(lambda x: mapped(env, loss)(x)[0])(rows())
    made = {"inside": mapped(env, jax.grad(loss))(rows()), "outside": outside}
    return observed(made, {"inside": 8 * rows(), "outside": 2 * rows()})


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, platforms=("cpu",))
def vectorised(env):
    """`vmap` of a pmap over another axis: the psum sums over devices, not over the batch."""
    got = jax.vmap(mapped(env, lambda x: lax.psum(x, "i")), in_axes=1)(rows())
    return observed(got, np.tile(rows().sum(0)[:, None], (1, DEVICES)))


@probe(source="jax-ml/jax#31910", devices=4, platforms=("cpu",))
def ahead_of_time(env):
    """`pmap(f).lower(x).compile()(x)` returns what `pmap(f)(x)` does, also in its tree.

    A trial of the new pmap returned a list instead (jax#31910); no release has shown it.
    """
    steps = {"one": lambda row: 2 * row, "pair": lambda row: (row, 2 * row)}
    made = {k: mapped(env, step).lower(rows()).compile()(rows()) for k, step in steps.items()}
    return observed(made, {"one": 2 * rows(), "pair": (rows(), 2 * rows())})


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="one replica for each device, of a program that saw one row",
            issue="jax-ml/jax@aa2f995b1db5",
        )
    ],
)
def partitions_of_the_program(env):
    """A pmap is lowered for four partitions of one replica from 0.8.0, four replicas before.

    Whoever reads its StableHLO sees the whole batch as the argument now, and `axis_index` as a
    partition's number.
    """
    text = mapped(env, lambda row: lax.psum(row, "i")).lower(rows()).as_text()
    return observed(
        {
            "partitions": "num_partitions = 4" in text,
            "replicas": "num_replicas = 4" in text,
            "whole_batch": "tensor<4x2xf32>" in text,
        },
        {"partitions": True, "replicas": False, "whole_batch": True},
    )


@probe(
    source="jax-ml/jax@ae7924995a33",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            error="NameError",
            match="unbound axis name: k",
            reason="the axis of a collective must be the one of its pmap",
            issue="jax-ml/jax@ae7924995a33",
        )
    ],
)
def unknown_axis(env):
    """A psum over another name than the pmap's: a NameError, whose hint is shard_map from 0.7.0."""
    return observed(mapped(env, lambda row: lax.psum(row, "k"))(rows()), rows())


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, platforms=("cpu",))
def without_jit(env):
    """Under `jax.disable_jit` the collectives of a pmap are still those over its devices."""
    with jax.disable_jit():
        out = mapped(env, lambda row: lax.psum(row, "i") - row)(rows())
    return observed(out, rows().sum(0) - rows())


@probe(
    source="jax-ml/jax#14296",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.31",
            error="AssertionError",
            reason="not done, and not said",
            issue="jax-ml/jax#14296",
        ),
        deviation(
            "jax>=0.4.31,<0.8",
            error="NotImplementedError",
            match="out_axes=None is not supported",
            reason="not done, and said so",
            issue="jax-ml/jax#14296",
        ),
    ],
)
def gradient_of_one_result(env):
    """The gradient through `pmap(..., out_axes=None)`, a total all devices have: from 0.8.0."""
    total = mapped(env, lambda x: lax.psum(x**2, "i"), out_axes=None)
    x = np.arange(DEVICES, dtype=np.float32)
    return Observed(jax.grad(lambda x: total(x).sum())(x), reference=2 * x)
