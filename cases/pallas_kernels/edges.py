"""Blocks that reach beyond the array, and memory that no step writes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import (
    F32,
    block,
    copy,
    describe,
    double,
    kernel_call,
    run,
    run_rows,
    shape,
    vector,
    window,
)

defaults(platforms=("cpu",))

LAST_BLOCK_NOT_CUT = deviation(
    "jax<0.4.31",
    error="ValueError",
    match="Cannot lower jaxpr with verifier errors",
    reason="the interpreter did not cut the last block",
    issue="jax-ml/jax#22275",
)


def _elementwise():
    return run_rows(double, shape(5), vector(5), grid=3), 2 * vector(5)


def _both_axes():
    x, spec = vector(15).reshape(3, 5), block((2, 2), lambda i, j: (i, j))
    return run(double, shape(3, 5), x, grid=(2, 3), in_specs=[spec], out_specs=spec), 2 * x


def _larger_than_the_array():
    x, spec = vector(3), block((8,), lambda i: (i,))
    return run(double, shape(3), x, grid=(1,), in_specs=[spec], out_specs=spec), 2 * x


UNEVEN = {
    "elementwise": _elementwise,
    "both_axes": _both_axes,
    "larger_than_the_array": _larger_than_the_array,
}


@probe(source="jax-ml/jax#22275", params=[*UNEVEN], deviations=[LAST_BLOCK_NOT_CUT])
def uneven_blocks(env, name):
    """Blocks need not divide the array; the part of the last block outside is not stored."""
    result, reference = UNEVEN[name]()
    return Observed(result, reference=reference)


@probe(source="jax-ml/jax#22275")
def padding_reaches_a_sum(env):
    """A sum over the last block, partly outside, is NaN unless the kernel masks the padding."""

    def total(x_ref, o_ref):
        o_ref[...] = x_ref[...].sum(keepdims=True)

    def masked_total(x_ref, o_ref):
        inside = 2 * pl.program_id(0) + lax.broadcasted_iota(np.int32, (2,), 0) < 5
        o_ref[...] = jnp.where(inside, x_ref[...], 0).sum(keepdims=True)

    specs = {"grid": 3, "out_specs": block((1,), lambda i: (i,))}
    x = vector(5) + 1
    result = {
        "masked": run_rows(masked_total, shape(3), x, **specs),
        "unmasked": run_rows(total, shape(3), x, **specs),
    }
    exact = {"masked": np.array([3, 7, 5], F32), "unmasked": np.array([3, 7, np.nan], F32)}
    return Observed(result, reference=exact)


@probe(source="jax-ml/jax#22275")
def content_of_the_padding(env):
    """The padding of the interpreter is NaN, the least integer, or False, by dtype."""
    x = np.ones(3)
    result = {}
    for dtype in ("float32", "int32", "uint8", "bool"):
        out = run_rows(copy, shape(4, dtype=dtype), x.astype(dtype), grid=2)
        result[dtype] = np.asarray(out)[3:]
    exact = {
        "float32": np.array([np.nan], F32),
        "int32": np.array([np.iinfo(np.int32).min]),
        "uint8": np.array([0], np.uint8),
        "bool": np.array([False]),
    }
    return Observed(result, reference=exact)


@probe(source="jax-ml/jax@f02d32c680d7")
def memory_that_is_not_written(env):
    """Blocks that no step writes are NaN in the interpreter, and so is a grid without steps."""

    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 1)
        def _():
            o_ref[...] = x_ref[...]

    result = {
        "one_block": run_rows(kernel, shape(8), vector()),
        "no_steps": run_rows(double, shape(8), vector(), grid=0),
    }
    one = np.where((np.arange(8) // 2) == 1, vector(), F32(np.nan))
    return Observed(result, reference={"one_block": one, "no_steps": np.full(8, np.nan, F32)})


@probe(
    source="jax-ml/jax@f02d32c680d7",
    records="outside of the array nothing is promised; the interpreter reads the last block",
)
def index_maps_beyond_the_array(env):
    """A block number beyond the array, or below zero, silently reads another block."""
    beyond, below = (block((2,), lambda i, by=by: (i + by,)) for by in (3, -1))
    return {
        "beyond": run_rows(copy, shape(8), vector(), in_specs=[beyond]),
        "below": run_rows(copy, shape(8), vector(), in_specs=[below]),
    }


PADDING_IGNORED = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="the interpreter ignored the padding: the windows began at the first element",
    issue="jax-ml/jax#22275",
)


@probe(source="jax-ml/jax@7c059d4630eb", deviations=[PADDING_IGNORED])
def padded_windows(env):
    """Windows with a padding of one begin before the first element and end behind the last.

    In 0.4.30 the padding was silently ignored: every element came from the wrong place.
    """

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.where(jnp.isnan(x_ref[...]), -1, x_ref[...])

    padded = window(2, lambda i: (2 * i,), (1, 1))
    out = run_rows(kernel, shape(10), vector(), grid=5, in_specs=[padded])
    return Observed(out, reference=np.array([-1, *range(8), -1], F32))


EMPTY_ARRAYS_REFUSED = deviation(
    "jax>=0.4.31",
    params=["array"],
    outcome="ok",
    match="ZeroDivisionError",
    reason="the number of blocks is divided by the size of a block, zero",
)
EMPTY_BATCH_REFUSED = deviation(
    "jax>=0.4.30",
    params=["batch"],
    outcome="ok",
    match="TypeError",
    reason="the first block of an empty batch is read",
)


@probe(
    source="jax-ml/jax@f02d32c680d7",
    params={"array": {"batched": False}, "batch": {"batched": True}},
    deviations=[EMPTY_ARRAYS_REFUSED, EMPTY_BATCH_REFUSED],
)
def empty(env, batched):
    """Arrays without elements, and vmap over no elements, raise confusing errors.

    0.4.30 accepts an empty array; from 0.4.31 it is a ZeroDivisionError.
    """
    f = jax.vmap(kernel_call(double, shape(4))) if batched else kernel_call(double, shape(0, 4))
    f = jax.jit(f)
    return Observed(describe(lambda: f(np.zeros((0, 4), F32))), reference="works")


def _slices(x_ref, start):
    return x_ref[pl.ds(start, 3)]


@probe(
    source="jax-ml/jax@d872812a359a",
    records="outside of the array nothing is promised; slices and elements are clamped",
)
def indices_beyond_the_array(env):
    """Slices and elements at traced places beyond the array are clamped, without an error.

    A store to element 20 of 8 changes the last element.
    """

    def kernel(start_ref, x_ref, o_ref, read_ref):
        o_ref[...] = x_ref[...]
        read_ref[pl.ds(0, 3)] = _slices(x_ref, start_ref[0])
        read_ref[3] = x_ref[start_ref[0]]
        o_ref[start_ref[0]] = F32(-1)

    out = (shape(8), shape(4))
    return {
        str(start): run(kernel, out, np.array([start], np.int32), vector()) for start in (20, -1)
    }


START_OF_NONE_IGNORED = deviation(
    "jax<0.11.1",
    params=["start"],
    outcome="ok",
    reason="without a start the size was ignored: the slice was the whole array",
    issue="jax-ml/jax@1f35b0793e2d",
)
SIZE_OF_NONE_GIVEN = deviation(
    "jax>=0.11.1",
    params=["size"],
    error="AssertionError",
    match="DShapedArray",
    reason="a size of None is a size, and no longer the same as none given",
    issue="jax-ml/jax@1f35b0793e2d",
)


@probe(
    source="jax-ml/jax@1f35b0793e2d",
    params={"start": {"start": None, "size": 2}, "size": {"start": 2, "size": None}},
    deviations=[START_OF_NONE_IGNORED, SIZE_OF_NONE_GIVEN],
)
def slices_of_none(env, start, size):
    """The sum of `pl.ds(None, 2)` and of `pl.ds(2, None)`, each the first two elements.

    Up to 0.11.0 `pl.ds(None, 2)` is all of the array, and a size of None means that the start is
    the size.
    """

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.full((1,), jnp.sum(x_ref[pl.ds(start, size)]))

    return Observed(run(kernel, shape(1), vector()), reference=vector()[:2].sum(keepdims=True))


QUOTIENTS = {
    "negative": (lambda: pl.cdiv(-7, 3), -2),
    "negative_array": (lambda: pl.cdiv(jnp.int32(-7), jnp.int32(3)), -2),
    "large_array": (lambda: pl.cdiv(jnp.int32(2**31 - 1), jnp.int32(2)), 2**30),
}
ROUNDED_AWAY = deviation(
    "jax>=0.11.2",
    params=["negative", "negative_array"],
    outcome="ok",
    reason="the quotient of a number below zero is one too large",
)
ROUNDED_AWAY_IN_ARRAYS = deviation(
    "jax>=0.4.31,<0.9.1",
    params=["negative_array"],
    outcome="ok",
    reason="the quotient of a number below zero is one too large",
)
SUM_OVERFLOWS = deviation(
    "jax<0.11.2",
    params=["large_array"],
    outcome="ok",
    reason="the divisor was added to the dividend first, which overflows",
)


@probe(
    source="jax-ml/jax@d872812a359a",
    params=[*QUOTIENTS],
    deviations=[ROUNDED_AWAY, ROUNDED_AWAY_IN_ARRAYS, SUM_OVERFLOWS],
)
def quotient_rounded_up(env, name):
    """`pl.cdiv` is a quotient rounded up, also of numbers below zero and of large numbers."""
    call, expected = QUOTIENTS[name]
    return Observed({"quotient": int(call())}, {"quotient": expected})
