"""Gathering, scattering and exchanging: who ends up with which part, in which order.

`all_gather`, `psum_scatter` and `all_to_all` differ in what is concatenated along which dimension;
over two axes of a mesh the order of their names decides the order of the parts. The references
are reshapes and transposes of the whole array.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program
from conformance.kit.endings import ending

from ._helpers import SHARDS, mapped, numbers, shards_of, square_mesh


@program(
    source="jax-ml/jax#19601",
    devices=4,
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

    fn = mapped(env, body, P("x"), P("x"))
    return Program(fn, args=(numbers(env, 8, 3),), reference=exact)


@program(
    source="jax-ml/jax#6992",
    devices=4,
    params={
        "tiled": {"dimension": 0, "tiled": True},
        "tiled_last": {"dimension": 1, "tiled": True},
        "untiled": {"dimension": 0, "tiled": False},
        "untiled_last": {"dimension": 1, "tiled": False},
    },
    facts={"collectives": {"reduce-scatter": 1}},
    deviations=[
        deviation(
            platform="tpu",
            outcome="ok",
            match="collectives",
            reason="of so small an array a TPU makes an all-reduce",
        ),
    ],
)
def reduced_and_scattered(env, dimension, tiled):
    """`psum_scatter`: each shard has its part of the sum, of which tiled keeps the dimension."""

    def body(x):
        return lax.psum_scatter(x[0], "x", scatter_dimension=dimension, tiled=tiled)[None]

    def exact(x):
        parts = np.split(x.astype(np.float64).sum(0), SHARDS, axis=dimension)
        return np.stack(parts if tiled else [part.squeeze(dimension) for part in parts])

    fn = mapped(env, body, P("x"), P("x"))
    shape = (4, 8, 8) if tiled else (4, 4, 4)
    return Program(fn, args=(numbers(env, *shape),), reference=exact)


@program(
    source="jax-ml/jax#7351",
    devices=4,
    facts={"collectives": {"all-gather": 1, "reduce-scatter": 1}},
    deviations=[
        deviation(
            platform="tpu",
            outcome="ok",
            match="collectives",
            reason="of so small an array a TPU makes an all-reduce",
        ),
    ],
)
def sum_in_two_halves(env):
    """`psum_scatter` and then `all_gather` is a `psum`; between them a shard has only its part."""

    def body(x):
        part = lax.psum_scatter(x, "x", tiled=True)
        return lax.all_gather(jnp.sqrt(part), "x", tiled=True)

    def exact(x):
        return np.concatenate([np.sqrt(shards_of(x).sum(0))] * SHARDS)

    fn = mapped(env, body, P("x"), P("x"))
    return Program(fn, args=(numbers(env, 32),), reference=exact)


@program(
    source="jax-ml/jax@c99d000af037",
    devices=4,
    platforms=("cpu",),
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            params=["check_on"],
            error="ValueError",
            match="out_specs",
            reason="what all_gather gives is typed as different on each shard",
        )
    ],
)
def gathered_claimed_as_the_same(env, check):
    """What `all_gather` gives is the same on all shards, but `out_specs=P()` is refused.

    From 0.10.0 `to="invarying"` says so; before that sum up zeros with a part filled in, or switch
    the check off, which believes anything.
    """
    fn = mapped(env, lambda x: lax.all_gather(x, "x", tiled=True), P("x"), P(), check=check)
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: x.astype(np.float64))


@program(
    source="jax-ml/jax@c99d000af037",
    devices=4,
    releases="jax>=0.8.2",
    facts={"collectives": {"all-gather": 1}},
    deviations=[
        deviation(
            "jax>=0.10",
            platform="tpu",
            outcome="ok",
            match="collectives",
            reason="of so small an array a TPU makes an all-reduce",
        ),
        deviation(
            "jax<0.10",
            error="ValueError",
            match="unexpected `to` value",
            reason="there was `varying` and `reduced` only",
        ),
    ],
)
def gathered_to_invarying(env):
    """`all_gather(to="invarying")` may leave with `out_specs=P()`, and costs no more."""

    def body(x):
        return lax.all_gather(x, "x", tiled=True, to="invarying")

    fn = mapped(env, body, P("x"), P())
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: x.astype(np.float64))


@program(source="jax-ml/jax#19709", devices=4, facts={"collectives": {"all-reduce": 1}})
def gathered_by_a_sum(env):
    """The portable way to what is typed as the same on all: a sum of parts in their places."""

    def body(x):
        place = lax.axis_index("x") * x.shape[0]
        zeros = env.compat.pvary(jnp.zeros(SHARDS * x.shape[0], x.dtype), "x")
        return lax.psum(lax.dynamic_update_slice(zeros, x, (place,)), "x")

    fn = mapped(env, body, P("x"), P())
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: x.astype(np.float64))


@probe(
    source="jax-ml/jax#20125",
    devices=4,
    params={
        "all_gather": {"op": "all_gather"},
        "psum_scatter": {"op": "psum_scatter"},
        "all_to_all": {"op": "all_to_all"},
        "untiled": {"op": "untiled"},
    },
    deviations=[
        deviation(
            "jax<0.11",
            params=["psum_scatter"],
            error="ValueError",
            match="scatter_dimension",
            reason="a negative dimension reached the compiler as it was",
            issue="jax-ml/jax#20125",
        ),
        deviation(
            "jax<0.11",
            params=["all_to_all", "untiled"],
            error="ValueError|MLIRError",
            match="Operation creation failed|all_to_all",
            reason="a negative dimension reached the compiler as it was",
            issue="jax-ml/jax#38998",
        ),
    ],
)
def counted_from_the_end(env, op):
    """Negative dimensions: `all_gather` always took them, the others do since 0.11.0."""
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
    return Observed(jax.jit(mapped(env, body, in_specs, P("x")))(x), reference=reference)


@probe(source="jax-ml/jax#19601", devices=4)
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

    turned = shards_of(x)[[0, 2, 1, 3]]
    reference = {
        "all_gather": np.tile(turned.ravel(), 4),
        "psum_scatter": turned.sum(0)[[0, 2, 1, 3]],
        "all_to_all": turned.T[[0, 2, 1, 3]].ravel(),
        "axis_index": np.array([0, 2, 1, 3], np.int32),
    }
    fn = mapped(env, body, P(("a", "b")), P(("a", "b")), mesh=square_mesh(env))
    return Observed(jax.jit(fn)(x), reference=reference)


@program(
    source="jax-ml/jax#4141",
    devices=4,
    params={"tiled": {"tiled": True}, "pswapaxes": {"tiled": False}},
    facts={"collectives": {"all-to-all": 1}},
)
def transposed(env, tiled):
    """A matrix split by rows becomes one split by columns: `all_to_all`, or `pswapaxes` of it."""

    def body(x):
        if tiled:
            return lax.all_to_all(x, "x", split_axis=1, concat_axis=0, tiled=True)
        return lax.pswapaxes(x.reshape(2, SHARDS, 2), "x", 1).transpose(1, 0, 2).reshape(8, 2)

    fn = mapped(env, body, P("x", None), P(None, "x"))
    return Program(fn, args=(numbers(env, 8, 8),), reference=lambda x: x.astype(np.float64))


@program(
    source="jax-ml/jax#15982",
    devices=4,
    facts={"collectives": {"all-to-all": 1}},
    rtol=1e-5,
    atol=1e-4,
    deviations=[
        deviation(
            platform="tpu",
            outcome="ok",
            match="collectives",
            reason="a TPU sends real and imaginary parts each for itself",
        ),
    ],
)
def fourier_transform_by_pencils(env):
    """A two-dimensional Fourier transform: along local rows, transposed, along local columns."""

    def body(x):
        rows = jnp.fft.fft(x, axis=1)
        return jnp.fft.fft(lax.all_to_all(rows, "x", 1, 0, tiled=True), axis=0)

    fn = mapped(env, body, P("x", None), P(None, "x"))
    return Program(
        fn, args=(numbers(env, 8, 8),), reference=lambda x: np.fft.fft2(x.astype(np.float64))
    )


@probe(source="jax-ml/jax#19720", devices=4)
def parts_of_no_equal_size(env):
    """Six numbers over four shards cannot be split: a ValueError while tracing, none is padded."""

    def told(words, body):
        fn = jax.jit(mapped(env, body, P("x"), P("x")))
        return ending(fn, numbers(env, 24), words=(words,))

    seen = [
        told("must be divisible", lambda x: lax.psum_scatter(x, "x", tiled=True)),
        told("must match", lambda x: lax.psum_scatter(x, "x", tiled=False)),
        told("divisible", lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True)),
    ]
    words = ("must be divisible", "must match", "divisible")
    return Observed(seen, reference=[f"ValueError: {word}" for word in words])


@probe(
    source="jax-ml/jax#19602",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            outcome="ok",
            reason="jax, XLA or both have no broadcast between CPUs",
            issue="jax-ml/jax#21995",
        )
    ],
)
def broadcast_from_one(env, check):
    """`lax.pbroadcast` hands on one shard's part. CPUs do not have it, and say so in many words."""
    fn = mapped(env, lambda x: lax.pbroadcast(x, "x", 2), P("x"), P("x"), check=check)
    known = ("No replication rule", "collective-broadcast", "MLIR translation rule")
    told = ending(jax.jit(fn), numbers(env, 8), words=known)
    return Observed(told, reference="accepted")


@program(source="jax-ml/jax#19602", devices=4, facts={"collectives": {"all-reduce": 1}})
def broadcast_by_a_sum(env):
    """The portable broadcast: a sum to which all but one shard add zeros; typed as the same."""

    def body(x):
        return lax.psum(jnp.where(lax.axis_index("x") == 2, x, 0), "x")

    fn = mapped(env, body, P("x"), P())
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: shards_of(x)[2])
