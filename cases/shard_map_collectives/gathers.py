"""Gathering, scattering and exchanging: which shard gets which part, in which order.

`all_gather`, `psum_scatter` and `all_to_all` differ in the parts that they concatenate and in the
dimension; over two axes of a mesh the order of their names decides the order of the parts. The
references are reshapes and transposes of the whole array.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program
from conformance.kit.endings import ending

from ._helpers import SHARDS, map_shards, numbers, shards_of, square_mesh

defaults(devices=4)


@program(
    source="jax-ml/jax#19601",
    params={
        "tiled": {"axis": 0, "tiled": True},
        "tiled_last": {"axis": 1, "tiled": True},
        "stacked": {"axis": 0, "tiled": False},
        "stacked_last": {"axis": -1, "tiled": False},
    },
    facts={"collectives": {"all-gather": 1}},
)
def gathered(env, axis, tiled):
    """`all_gather` concatenates along a dimension, or stacks along a new one; one message."""

    def body(x):
        return lax.all_gather(x, "x", axis=axis, tiled=tiled)[None]

    def exact(x):
        join = np.concatenate if tiled else np.stack
        return np.stack([join(shards_of(x), axis=axis)] * SHARDS)

    fn = map_shards(env, body, P("x"), P("x"))
    return Program(fn, args=(numbers(env, 8, 3),), reference=exact)


TPU_USES_ALL_REDUCE = deviation(
    platform="tpu",
    outcome="ok",
    match="collectives",
    reason="for such a small array TPUs use an all-reduce",
)


@program(
    source="jax-ml/jax#6992",
    params={
        "tiled": {"dimension": 0, "tiled": True},
        "tiled_last": {"dimension": 1, "tiled": True},
        "untiled": {"dimension": 0, "tiled": False},
        "untiled_last": {"dimension": 1, "tiled": False},
    },
    facts={"collectives": {"reduce-scatter": 1}},
    deviations=[TPU_USES_ALL_REDUCE],
)
def reduced_and_scattered(env, dimension, tiled):
    """`psum_scatter` gives each shard its part of the sum; tiled keeps the dimension."""

    def body(x):
        return lax.psum_scatter(x[0], "x", scatter_dimension=dimension, tiled=tiled)[None]

    def exact(x):
        parts = np.split(x.astype(np.float64).sum(0), SHARDS, axis=dimension)
        return np.stack(parts if tiled else [part.squeeze(dimension) for part in parts])

    fn = map_shards(env, body, P("x"), P("x"))
    shape = (4, 8, 8) if tiled else (4, 4, 4)
    return Program(fn, args=(numbers(env, *shape),), reference=exact)


@program(
    source="jax-ml/jax#7351",
    facts={"collectives": {"all-gather": 1, "reduce-scatter": 1}},
    deviations=[TPU_USES_ALL_REDUCE],
)
def sum_in_two_halves(env):
    """`psum_scatter` and then `all_gather` is a `psum`.

    Between them a shard has only its part.
    """

    def body(x):
        part = lax.psum_scatter(x, "x", tiled=True)
        return lax.all_gather(jnp.sqrt(part), "x", tiled=True)

    def exact(x):
        return np.concatenate([np.sqrt(shards_of(x).sum(0))] * SHARDS)

    fn = map_shards(env, body, P("x"), P("x"))
    return Program(fn, args=(numbers(env, 32),), reference=exact)


GATHERED_TYPED_AS_VARYING = deviation(
    params=["check_on"],
    error="ValueError",
    match="out_specs",
    reason="the result of all_gather is typed as different on each shard",
)


@program(
    source="jax-ml/jax@c99d000af037",
    platforms=("cpu",),
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[GATHERED_TYPED_AS_VARYING],
)
def gathered_claimed_as_the_same(env, check):
    """The result of `all_gather` is the same on all shards, but `out_specs=P()` is refused.

    From 0.10.0 `to="invarying"` declares this. Before, sum up zeros with a part filled in, or
    switch the check off, which accepts anything.
    """
    fn = map_shards(env, lambda x: lax.all_gather(x, "x", tiled=True), P("x"), P(), check=check)
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: x.astype(np.float64))


TPU_USES_ALL_REDUCE_FROM_0_10 = deviation(
    "jax>=0.10",
    platform="tpu",
    outcome="ok",
    match="collectives",
    reason="for such a small array TPUs use an all-reduce",
)
NO_INVARYING_TARGET = deviation(
    "jax<0.10",
    error="ValueError",
    match="unexpected `to` value",
    reason="the argument `to` accepted only `varying` and `reduced`",
)


@program(
    source="jax-ml/jax@c99d000af037",
    releases="jax>=0.8.2",
    facts={"collectives": {"all-gather": 1}},
    deviations=[TPU_USES_ALL_REDUCE_FROM_0_10, NO_INVARYING_TARGET],
)
def gathered_to_invarying(env):
    """`all_gather(to="invarying")` may leave with `out_specs=P()`, and costs no more."""

    def body(x):
        return lax.all_gather(x, "x", tiled=True, to="invarying")

    fn = map_shards(env, body, P("x"), P())
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: x.astype(np.float64))


@program(source="jax-ml/jax#19709", facts={"collectives": {"all-reduce": 1}})
def gathered_by_a_sum(env):
    """A sum of parts in their places is typed as the same on all shards.

    It is the portable way to gather such a value.
    """

    def body(x):
        place = lax.axis_index("x") * x.shape[0]
        zeros = env.compat.pvary(jnp.zeros(SHARDS * x.shape[0], x.dtype), "x")
        return lax.psum(lax.dynamic_update_slice(zeros, x, (place,)), "x")

    fn = map_shards(env, body, P("x"), P())
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: x.astype(np.float64))


NEGATIVE_SCATTER_DIMENSION = deviation(
    "jax<0.11",
    params=["psum_scatter"],
    error="ValueError",
    match="scatter_dimension",
    reason="a negative dimension reached the compiler unchanged",
    issue="jax-ml/jax#20125",
)
NEGATIVE_EXCHANGE_DIMENSION = deviation(
    "jax<0.11",
    params=["all_to_all", "untiled"],
    error="ValueError|MLIRError",
    match="Operation creation failed|all_to_all",
    reason="a negative dimension reached the compiler unchanged",
    issue="jax-ml/jax#38998",
)


@probe(
    source="jax-ml/jax#20125",
    params={
        "all_gather": {"op": "all_gather"},
        "psum_scatter": {"op": "psum_scatter"},
        "all_to_all": {"op": "all_to_all"},
        "untiled": {"op": "untiled"},
    },
    deviations=[NEGATIVE_SCATTER_DIMENSION, NEGATIVE_EXCHANGE_DIMENSION],
)
def counted_from_the_end(env, op):
    """Negative dimensions: `all_gather` always accepted them, the others since 0.11.0."""
    x = numbers(env, 4, 4)
    whole = x.astype(np.float64)
    body, in_specs, reference = {
        "all_gather": (
            lambda x: lax.all_gather(x, "x", axis=-1, tiled=True),
            P("x"),
            np.concatenate(whole)[None].repeat(4, 0),
        ),
        "psum_scatter": (
            lambda x: lax.psum_scatter(x, "x", scatter_dimension=-1, tiled=True).T,
            P(),
            4 * whole.T,
        ),
        "all_to_all": (lambda x: lax.all_to_all(x, "x", -1, -2, tiled=True).T, P("x"), whole.T),
        "untiled": (lambda x: lax.all_to_all(x, "x", -1, 0), P("x"), whole.T.reshape(16, 1)),
    }[op]
    return Observed(jax.jit(map_shards(env, body, in_specs, P("x")))(x), reference=reference)


@probe(source="jax-ml/jax#19601")
def in_the_order_of_names(env):
    """Over axes `("b", "a")` of a mesh `a`, `b` parts are ordered by `b` first, then `a`.

    Shards 0 1 2 3 of the mesh are members 0 2 1 3 of the collective.
    """
    x, both = numbers(env, 16), ("b", "a")

    def body(x):
        return {
            "all_gather": lax.all_gather(x, both, tiled=True),
            "psum_scatter": lax.psum_scatter(x, both, tiled=True),
            "all_to_all": lax.all_to_all(x, both, 0, 0, tiled=True),
            "axis_index": lax.axis_index(both)[None],
        }

    members = shards_of(x)[[0, 2, 1, 3]]
    reference = {
        "all_gather": np.tile(members.ravel(), 4),
        "psum_scatter": members.sum(0)[[0, 2, 1, 3]],
        "all_to_all": members.T[[0, 2, 1, 3]].ravel(),
        "axis_index": np.array([0, 2, 1, 3], np.int32),
    }
    fn = map_shards(env, body, P(("a", "b")), P(("a", "b")), mesh=square_mesh(env))
    return Observed(jax.jit(fn)(x), reference=reference)


@program(
    source="jax-ml/jax#4141",
    params={"tiled": {"tiled": True}, "pswapaxes": {"tiled": False}},
    facts={"collectives": {"all-to-all": 1}},
)
def transposed(env, tiled):
    """`all_to_all`, or an equivalent `pswapaxes`, turns a split by rows into a split by columns."""

    def body(x):
        if tiled:
            return lax.all_to_all(x, "x", split_axis=1, concat_axis=0, tiled=True)
        return lax.pswapaxes(x.reshape(2, SHARDS, 2), "x", 1).transpose(1, 0, 2).reshape(8, 2)

    fn = map_shards(env, body, P("x", None), P(None, "x"))
    return Program(fn, args=(numbers(env, 8, 8),), reference=lambda x: x.astype(np.float64))


TPU_SPLITS_COMPLEX_NUMBERS = deviation(
    platform="tpu",
    outcome="ok",
    match="collectives",
    reason="TPUs send real and imaginary parts separately",
)


@program(
    source="jax-ml/jax#15982",
    facts={"collectives": {"all-to-all": 1}},
    rtol=1e-5,
    atol=1e-4,
    deviations=[TPU_SPLITS_COMPLEX_NUMBERS],
)
def fourier_transform_by_pencils(env):
    """A two-dimensional Fourier transform takes one all-to-all.

    It transforms local rows, transposes, and transforms local columns.
    """

    def body(x):
        rows = jnp.fft.fft(x, axis=1)
        return jnp.fft.fft(lax.all_to_all(rows, "x", 1, 0, tiled=True), axis=0)

    fn = map_shards(env, body, P("x", None), P(None, "x"))
    return Program(
        fn, args=(numbers(env, 8, 8),), reference=lambda x: np.fft.fft2(x.astype(np.float64))
    )


@probe(source="jax-ml/jax#19720")
def parts_of_no_equal_size(env):
    """Six numbers over four shards cannot be split: a ValueError while tracing.

    JAX pads none of them.
    """

    def find_ending(words, body):
        fn = jax.jit(map_shards(env, body, P("x"), P("x")))
        return ending(fn, numbers(env, 24), words=(words,))

    observed = [
        find_ending("must be divisible", lambda x: lax.psum_scatter(x, "x", tiled=True)),
        find_ending("must match", lambda x: lax.psum_scatter(x, "x", tiled=False)),
        find_ending("divisible", lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True)),
    ]
    words = ("must be divisible", "must match", "divisible")
    return Observed(observed, reference=[f"ValueError: {word}" for word in words])


NO_BROADCAST_BETWEEN_CPUS = deviation(
    outcome="ok",
    reason="jax, XLA or both have no broadcast between CPUs",
    issue="jax-ml/jax#21995",
)


@probe(
    source="jax-ml/jax#19602",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_BROADCAST_BETWEEN_CPUS],
)
def broadcast_from_one(env, check):
    """`lax.pbroadcast` hands on the part of one shard.

    CPUs do not support it, and several messages report this.
    """
    fn = map_shards(env, lambda x: lax.pbroadcast(x, "x", 2), P("x"), P("x"), check=check)
    known = ("No replication rule", "collective-broadcast", "MLIR translation rule")
    outcome = ending(jax.jit(fn), numbers(env, 8), words=known)
    return Observed(outcome, reference="accepted")


@program(source="jax-ml/jax#19602", facts={"collectives": {"all-reduce": 1}})
def broadcast_by_a_sum(env):
    """A sum to which all shards but one add zeros is a portable broadcast.

    Its result is typed as the same on all shards.
    """

    def body(x):
        return lax.psum(jnp.where(lax.axis_index("x") == 2, x, 0), "x")

    fn = map_shards(env, body, P("x"), P())
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: shards_of(x)[2])
