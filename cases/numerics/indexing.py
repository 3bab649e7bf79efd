"""Indices beyond the array, duplicates, sets and searches: what happens where NumPy would raise.

Nothing can be raised on a device, so an index out of bounds reads NaN or the last element and
writes nothing, according to the mode. A default that moves here changes results in silence.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import f32, nan, numbered

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def five():
    """Return 0, 1, 2, 3, 4 as float32."""
    return np.arange(5, dtype=np.float32)


@probe(source="jax-ml/jax@0b470361dac5", platforms=("cpu",))
def reading_out_of_bounds(env):
    """Indexing clips, `take` and `.get(mode="fill")` give NaN; negative ones count from the end."""
    at = np.array([7, -7, -1])

    @jax.jit
    def read(x):
        return {
            "x[...]": x[at],
            "take": jnp.take(x, at),
            "get": x.at[at].get(),
            "clip": x.at[at].get(mode="clip"),
            "fill": x.at[at].get(mode="fill"),
            "filled": x.at[at].get(mode="fill", fill_value=-9),
            "wrap": jnp.take(x, at, mode="wrap"),
            "along": jnp.take_along_axis(x, at, 0),
        }

    wanted = {
        "x[...]": f32(4, 0, 4),
        "take": f32(nan, nan, 4),
        "get": f32(4, 0, 4),
        "clip": f32(4, 0, 4),
        "fill": f32(nan, nan, 4),
        "filled": f32(-9, -9, 4),
        "wrap": f32(2, 3, 4),
        "along": f32(nan, nan, 4),
    }
    return Observed(numbered(read(five())), reference=numbered(wanted))


@probe(source="jax-ml/jax@0b470361dac5", platforms=("cpu",))
def filled_by_type(env):
    """What stands for nothing: NaN, the least signed integer, the largest unsigned, True."""
    types = ("float32", "bfloat16", "int32", "uint8", "bool")

    @jax.jit
    def read(xs):
        return {name: x.at[9].get(mode="fill").astype(jnp.float32) for name, x in xs.items()}

    made = read({name: np.zeros(3, jnp.dtype(name)) for name in types})
    wanted = dict(zip(types, f32(nan, nan, -(2**31), 255, 1), strict=True))
    return Observed(numbered(made), reference=numbered(wanted))


@probe(source="jax-ml/jax@0b470361dac5", platforms=("cpu",))
def writing_out_of_bounds(env):
    """Updates out of bounds are dropped, or clipped if asked; duplicates add up."""

    @jax.jit
    def write(x):
        return {
            "set": x.at[np.array([7, -7, -1])].set(9),
            "clip": x.at[np.array([7])].set(9, mode="clip"),
            "add": x.at[np.array([1, 1])].add(1),
            "multiply": x.at[np.array([1, 1])].multiply(3),
            "max": x.at[np.array([0, 4])].max(2),
            "power": x.at[3].power(2),
        }

    wanted = {
        "set": f32(0, 1, 2, 3, 9),
        "clip": f32(0, 1, 2, 3, 9),
        "add": f32(0, 3, 2, 3, 4),
        "multiply": f32(0, 9, 2, 3, 4),
        "max": f32(2, 1, 2, 3, 4),
        "power": f32(0, 1, 2, 9, 4),
    }
    return Observed(write(five()), reference=wanted)


@probe(source="jax-ml/jax@1e5d9a915889", platforms=("cpu",))
def slices_that_do_not_fit(env):
    """`dynamic_slice` moves its start so that the slice fits; negative ones are from the end."""

    @jax.jit
    def sliced(x):
        return {
            "late": lax.dynamic_slice(x, (4,), (3,)),
            "negative": lax.dynamic_slice(x, (-4,), (3,)),
            "far": lax.dynamic_slice(x, (-9,), (3,)),
            "index": lax.dynamic_index_in_dim(x, -1),
            "update": lax.dynamic_update_slice(x, f32(8, 9), (4,)),
        }

    wanted = {
        "late": f32(2, 3, 4),
        "negative": f32(1, 2, 3),
        "far": f32(0, 1, 2),
        "index": f32(4),
        "update": f32(0, 1, 2, 8, 9),
    }
    return Observed(sliced(five()), reference=wanted)


@probe(
    source="jax-ml/jax#29434",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7",
            error="TypeError",
            match="wrap_negative_indices",
            reason="the argument came with 0.7.0",
            issue="jax-ml/jax#29434",
        )
    ],
)
def negative_indices_unwrapped(env):
    """`wrap_negative_indices=False`, from 0.7.0: a negative index is out of bounds."""

    @jax.jit
    def read(x):
        return x.at[np.array([-1])].get(mode="fill", wrap_negative_indices=False)

    return Observed(numbered(read(five())), reference=numbered(f32(nan)))


@probe(
    source="jax-ml/jax@a192b7251553",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="the bounds check took every unsigned index for one beyond",
            issue="jax-ml/jax@a192b7251553",
        )
    ],
)
def unravelled_unsigned(env):
    """`unravel_index` of an unsigned 5 in a 2x3 array: (1, 2), since 0.7.2; (0, 0) before."""
    made = jax.jit(lambda i: jnp.unravel_index(i, (2, 3)))(np.uint32([5]))
    return Observed(made, reference=(np.uint32([1]), np.uint32([2])))


@probe(
    source="jax-ml/jax@bcb4d2bae4fc",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="integers became float32",
            issue="jax-ml/jax@bcb4d2bae4fc",
        )
    ],
)
def unwrapped_integers(env):
    """`unwrap` of integers is of integers, since 0.7.2."""
    made = jax.jit(lambda x: jnp.unwrap(x, period=6))(np.int32([0, 5, 10]))
    return Observed(made, reference=np.int32([0, -1, -2]))


@probe(
    source="jax-ml/jax@261141615dd3",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6.1",
            outcome="ok",
            reason="a number below zero was taken for no bit",
            issue="jax-ml/jax@261141615dd3",
        )
    ],
)
def packed_negative_numbers(env):
    """`packbits` of -1: a bit that is set, since 0.6.1, as in NumPy."""
    made = jnp.packbits(np.array([-1, 0, 1, 0, 0, 0, 0, 0]))
    return Observed(made, reference=np.uint8([160]))


@probe(
    source="jax-ml/jax@7ff86dcbe90d",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8",
            error="IndexError",
            match="boolean index did not match shape",
            reason="the mask was flat, the array was not",
            issue="jax-ml/jax@7ff86dcbe90d",
        )
    ],
)
def difference_of_matrices(env):
    """`setdiff1d(assume_unique=True)` of a matrix is flat, since 0.8.0."""
    matrix = np.array([[1, 2], [3, 4]])
    made = jnp.setdiff1d(matrix, np.array([2]), assume_unique=True)
    return Observed(made, reference=np.int32([1, 3, 4]))


@probe(
    source="jax-ml/jax#32305",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="-0.0, from a division by the largest of a count and zero",
            issue="jax-ml/jax#32305",
        )
    ],
)
def covariance_of_nothing(env):
    """`cov` of no observations is NaN since 0.8.0, and -0.0 before."""
    return Observed(numbered(jnp.cov(f32())), reference=numbered(np.float64(nan)))


@probe(
    source="jax-ml/jax#32308",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="one row was transposed back, as in NumPy before 2.2",
            issue="jax-ml/jax#32308",
        )
    ],
)
def covariance_of_one_row(env):
    """`cov(rowvar=False)` of one row of three: a 3x3 matrix since 0.8.0, a number before."""
    made = jnp.cov(f32(1, 2, 4)[None], rowvar=False)
    return Observed({"dimensions": made.ndim}, reference={"dimensions": 2})


@probe(
    source="jax-ml/jax@7857bd3319f0",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.31",
            outcome="ok",
            reason="along an axis the inverse kept the other axes, as in NumPy 2.0",
            issue="jax-ml/jax@7857bd3319f0",
        )
    ],
)
def shape_of_the_inverse(env):
    """`unique(axis=0, return_inverse=True)`: an inverse of one axis since 0.4.31."""

    def inverses(x):
        return [jnp.unique(x, size=2, return_inverse=True, axis=axis)[1] for axis in (None, 0)]

    made = [x.shape for x in jax.eval_shape(inverses, np.array([[3, 1], [3, 1]]))]
    return Observed(made, reference=[(2, 2), (2,)])


@probe(source="jax-ml/jax@6c5ef1a40486", platforms=("cpu",))
def unique_values(env):
    """`unique`: NaNs are one or many, both zeros are one, and a size cuts off or fills up."""

    @jax.jit
    def unique(x, nans):
        more = {"return_index": True, "return_counts": True}
        return {
            "nans": jnp.unique(nans, size=5),
            "nans apart": jnp.unique(nans, size=5, fill_value=-1, equal_nan=False),
            "sized": jnp.unique(x, size=4, fill_value=-1, **more),
            "cut": jnp.unique(x, size=1),
        }

    wanted = {
        "nans": f32(-0.0, 1, nan, -0.0, -0.0),
        "nans apart": f32(-0.0, 1, nan, nan, -1),
        "sized": (np.int32([1, 3, -1, -1]), np.int32([1, 0, 1, 1]), np.int32([1, 2, 0, 0])),
        "cut": np.int32([1]),
    }
    made = unique(np.int32([3, 1, 3]), f32(nan, 1, nan, -0.0, 0))
    return Observed(numbered(made), reference=numbered(wanted))


@probe(source="jax-ml/jax@2185cb1caf0c", platforms=("cpu",))
def searches(env):
    """`searchsorted` by its four methods, on either side, with NaN; and `digitize` downwards."""
    methods = ("scan", "scan_unrolled", "sort", "compare_all")

    @jax.jit
    def search(x, at):
        made = {m: jnp.searchsorted(x, at[:3], method=m) for m in methods}
        made["right"] = jnp.searchsorted(x, at, side="right")
        made["nan in it"] = jnp.searchsorted(f32(1, nan), at[3:])
        return {**made, "down": jnp.digitize(at[:2], f32(2, 1))}

    wanted = dict.fromkeys(methods, np.int32([1, 0, 4]))
    wanted |= {
        "right": np.int32([3, 0, 4, 4]),
        "nan in it": np.int32([1]),
        "down": np.int32([0, 2]),
    }
    return Observed(search(f32(1, 2, 2, 3), f32(2, 0, 4, nan)), reference=wanted)


@probe(source="jax-ml/jax@77af61c3120a", platforms=("cpu",), rtol=1e-6)
def quantiles(env):
    """The methods of `quantile`, NaN in it, and what the nan-form makes of it."""

    @jax.jit
    def quantile(x, nans, q):
        made = {m: jnp.quantile(x, q, method=m) for m in METHODS}
        return {**made, "nan": jnp.quantile(nans, 0.5), "left out": jnp.nanmedian(nans)}

    wanted = {
        "linear": f32(1, 1.4, 3.4, 10),
        "lower": f32(1, 1, 3, 10),
        "higher": f32(1, 2, 4, 10),
        "midpoint": f32(1, 1.5, 3.5, 10),
        "nearest": f32(1, 1, 3, 10),
        "nan": np.float32(nan),
        "left out": np.float32(1.5),
    }
    made = quantile(f32(4, 1, 3, 2, 10), f32(1, nan, 2), f32(0, 0.1, 0.6, 1))
    return Observed(numbered(made), reference=numbered(wanted))


@probe(
    source="jax-ml/jax@fd38966d7793",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7.1",
            outcome="ok",
            match="required positional argument|TypeError",
            reason="the axis had no default",
            issue="jax-ml/jax@fd38966d7793",
        )
    ],
)
def axis_of_take_along(env):
    """`take_along_axis(x, i)` without an axis takes the last one, from 0.7.1."""
    x, at = np.arange(6).reshape(2, 3), np.array([[0], [1]])
    seen = refusal(lambda: jnp.take_along_axis(x, at), "required positional argument")
    return Observed(seen, reference="ran")


@probe(
    source="jax-ml/jax#28158",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.34",
            outcome="ok",
            match="gradient",
            reason="the gradient went through the bits, where it is lost",
            issue="jax-ml/jax#23923",
        ),
        deviation(
            "jax>=0.4.34,<0.6.1",
            outcome="ok",
            match="inf against 1.26",
            reason="two to the power was taken as a float32, which is infinite from 128 on",
            issue="jax-ml/jax#28158",
        ),
    ],
)
def scaled_by_powers_of_two(env):
    """`ldexp` with an exponent that has no float of its own; `frexp` of zero, and back."""

    @jax.jit
    def scaled(x, exponent, y):
        return {
            "ldexp": jnp.ldexp(x, exponent),
            "frexp": jnp.frexp(y),
            "gradient": jax.grad(lambda z: jnp.ldexp(z, 2))(y[1]),
        }

    wanted = {
        "ldexp": f32(2.0**100, 2.0**127, 0.75 * 2.0**-100),
        "frexp": (f32(0, -0.5, 0.75), np.int32([0, 4, 0])),
        "gradient": np.float64(4),
    }
    made = scaled(f32(2.0**-100, 1, 0.75), np.int32([200, 127, -100]), f32(0, -8, 0.75))
    return Observed(made, reference=wanted)


@probe(
    source="jax-ml/jax#26888",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.4.36,<0.5.3",
            outcome="ok",
            match="1 of 25 elements differ",
            reason="before and after all axes at once, not one axis after the other",
            issue="jax-ml/jax#26888",
        )
    ],
)
def corners_of_a_pad(env):
    """`pad` with one constant before and another after: a corner is that of the last axis.

    From 0.4.36 to 0.5.2 the corner before the last axis and after the first had the other one.
    """
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    made = jax.jit(lambda x: jnp.pad(x, 1, constant_values=(-1, -2)))(x)
    return Observed(made, reference=np.pad(x, 1, constant_values=(-1, -2)))
