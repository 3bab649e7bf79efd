"""Programs that the compiler rewrites into programs with other values.

Most of them are right without jit, where each operation is compiled alone.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import f32, inf, replace_nan

defaults(platforms=("cpu",))

START_NOT_CLAMPED = deviation(
    "jax<0.12",
    outcome="ok",
    reason="two slices were merged into one, whose start was not clamped as theirs",
    issue="jax-ml/jax#40849",
)


@probe(source="jax-ml/jax#40849", deviations=[START_NOT_CLAMPED])
def slice_of_a_slice(env):
    """Under jit, a slice out of bounds of a slice or of a roll is right from 0.12.0 on."""

    @jax.jit
    def read(x, outer, inner):
        return lax.dynamic_slice(lax.dynamic_slice(x, (outer,), (4,)), (inner,), (1,))[0]

    @jax.jit
    def read_rolled(x, shift, start):
        return lax.dynamic_slice(jnp.roll(x, shift), (start,), (4,))

    x = np.arange(10, dtype=np.int32)
    value = {
        "outer": read(x, np.int32(9), np.int32(0)),
        "inner": read(x, np.int32(3), np.int32(5)),
        "roll": read_rolled(x, np.int32(4), np.int32(13)),
    }
    six = np.int32(6)
    return Observed(value, reference={"outer": six, "inner": six, "roll": np.roll(x, 4)[-4:]})


CONSTANT_INDEX_SIGNED = deviation(
    params=["subscript", "slice"],
    outcome="ok",
    reason="a constant index of an unsigned dtype is read as a signed number",
    issue="openxla/xla#48717",
)
CONSTANT_INDEX_WAS_SIGNED = deviation(
    "jax<0.10.1",
    params=["index_in_dim"],
    outcome="ok",
    reason="a constant index of an unsigned dtype was read as a signed number",
    issue="openxla/xla#48717",
)
READS = {
    "subscript": lambda x, i: x[i],
    "slice": lambda x, i: lax.dynamic_slice(x, (i,), (1,))[0],
    "index_in_dim": lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False),
}


@probe(
    source="openxla/xla#48717",
    params=[*READS],
    deviations=[CONSTANT_INDEX_SIGNED, CONSTANT_INDEX_WAS_SIGNED],
)
def constant_uint8_index(env, name):
    """Under jit, a constant uint8 index above 127 reads element 0; an argument does not."""
    x, read = np.arange(300, dtype=np.int32), READS[name]
    value = {
        "constant": jax.jit(lambda x: read(x, jnp.uint8(200)))(x),
        "argument": jax.jit(read)(x, np.uint8(200)),
    }
    return Observed(value, reference=dict.fromkeys(value, np.int32(200)))


CROP_AND_PADDING_ADDED = deviation(
    "jax<0.12",
    outcome="ok",
    reason="a padding in the place of elements that were cropped cancelled the crop",
    issue="openxla/xla#48715",
)


@probe(source="openxla/xla#48715", deviations=[CROP_AND_PADDING_ADDED])
def sums_of_a_cropped_array(env):
    """Under jit, padded windows see no elements that a negative `lax.pad` removed, from 0.12.0."""

    @jax.jit
    def sums(x):
        cropped = lax.pad(x, np.int32(0), [(0, 0, 1), (-1, 0, 0)])
        return lax.reduce_window(cropped, np.int32(0), lax.add, (1, 2), (1, 1), ((0, 0), (1, 0)))

    return Observed(sums(np.array([[5, 7]], np.int32)), reference=np.array([[7]], np.int32))


READ_BEYOND_THE_ROW = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the padding was read from the next row",
    issue="openxla/xla#48713",
)


@probe(source="openxla/xla#48713", rtol=0, atol=0, deviations=[READ_BEYOND_THE_ROW])
def convolution_of_a_cropped_image(env):
    """The padding after a negative padding is 0 in a float32 convolution from 0.12.0 on."""
    x = np.arange(15 * 6 * 8, dtype=np.float32).reshape(1, 15, 6, 8)
    names = ("NHWC", "HWIO", "NHWC")
    kernel = np.eye(8, dtype=np.float32)[None, None]

    @jax.jit
    def convolve(x, kernel):
        padding = ((0, 0), (-5, 1))
        return lax.conv_general_dilated(x, kernel, (1, 1), padding, dimension_numbers=names)

    return Observed(convolve(x, kernel)[0, :3, 1, 0], reference=np.zeros(3))


HOLES_DROPPED = deviation(
    "jax>=0.10.2",
    outcome="ok",
    reason="the windows of YNNPACK, which take large arrays, ignore the dilation",
    issue="openxla/xla#48714",
)


@probe(source="openxla/xla#48714", deviations=[HOLES_DROPPED])
def dilated_windows(env):
    """`lax.reduce_window` of a large array silently ignores `base_dilation` from 0.10.2 on."""

    @jax.jit
    def largest(x):
        padding = ((0, 0), (0, 0))
        return lax.reduce_window(x, -inf, lax.max, (2, 1), (2, 1), padding, base_dilation=(1, 2))

    def first(*shape):
        return largest(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))[0, :4]

    value = {"8x8": first(8, 8), "64x128": first(64, 128)}
    reference = {"8x8": f32(8, -inf, 9, -inf), "64x128": f32(128, -inf, 129, -inf)}
    return Observed(value, reference=reference)


SQUARE_TAKEN_FOR_POSITIVE = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="a square was taken for positive, although it overflows",
    issue="tensorflow/tensorflow#118178",
)


@probe(source="tensorflow/tensorflow#118178", deviations=[SQUARE_TAKEN_FOR_POSITIVE])
def absolute_value_of_a_square(env):
    """Under jit, `jnp.abs(x * x)` of int8 that overflows is positive from 0.11.1 on."""
    x = np.array([12, 7, 20], np.int8)
    return Observed(jax.jit(lambda x: jnp.abs(x * x))(x), reference=np.abs(x * x))


PAIR_CANCELLED = deviation(
    "jax<0.11.1",
    params=["log_of_exp", "log2_of_exp2", "sqrt_of_square"],
    outcome="ok",
    reason="a function and its inverse were removed, although the first overflows",
    issue="openxla/xla#42732",
)
EXPONENTS_ADDED = deviation(
    "jax<0.11.2",
    params=["exp_times_exp"],
    outcome="ok",
    reason="the product of two exponentials was the exponential of a sum",
    issue="tensorflow/tensorflow#123169",
)
PAIRS = {
    "log_of_exp": (lambda n, x: n.log(n.exp(x)), 100),
    "log2_of_exp2": (lambda n, x: n.log2(n.exp2(x)), 130),
    "sqrt_of_square": (lambda n, x: n.sqrt(n.square(x)), 1e30),
    "exp_times_exp": (lambda n, x: n.exp(x) * n.exp(-x), 110),
}


@probe(source="openxla/xla#42732", params=[*PAIRS], deviations=[PAIR_CANCELLED, EXPONENTS_ADDED])
def overflow_and_inverse(env, name):
    """Under jit, `jnp.log(jnp.exp(x))` of a large x is infinite, as without jit, from 0.11.1 on."""
    fn, x = PAIRS[name]
    with np.errstate(all="ignore"):
        expected = fn(np, f32(x))
    value = jax.jit(lambda x: fn(jnp, x))(f32(x))
    return Observed(replace_nan(value), reference=replace_nan(expected))


CONSTANTS_REORDERED = deviation(
    "jax>=0.5.3,<0.8.2",
    outcome="ok",
    reason="constants were gathered at compile time, and written in another order",
    issue="jax-ml/jax#33479",
)


@probe(source="jax-ml/jax#33479", deviations=[CONSTANTS_REORDERED])
def gather_of_constants(env):
    """Under jit, `x[:, jnp.arange(5)] + 1` of a constant matrix is right again from 0.8.2 on."""
    x = jnp.broadcast_to(jnp.arange(5), (2, 5))
    value = jax.jit(lambda: x[:, jnp.arange(x.shape[1])] + 1)()
    return Observed(value, reference=np.array([[1, 2, 3, 4, 5]] * 2, np.int32))


ANGLE_FOLDED = deviation(
    "jax>=0.7.1,<0.11.1",
    outcome="ok",
    reason="the angle of two zeros was computed at compile time, as NaN",
    issue="jax-ml/jax#38681",
)


@probe(source="jax-ml/jax#38681", deviations=[ANGLE_FOLDED])
def angle_of_no_difference(env):
    """Under jit, `jnp.angle(jnp.logical_xor(t, t))` is 0 again from 0.11.1 on."""
    value = jax.jit(lambda t: jnp.angle(jnp.logical_xor(t, t)))(np.arange(4, dtype=np.int32))
    return Observed(replace_nan(value), reference=np.zeros(4))


TOO_MANY_KEYS = deviation(
    "jax>=0.4.33,<0.4.34",
    error="XlaRuntimeError",
    match="Unsupported number of sorted inputs",
    reason="a sort had at most 16 operands",
    issue="jax-ml/jax#23727",
)


@probe(source="jax-ml/jax#23727", deviations=[TOO_MANY_KEYS])
def sort_by_many_keys(env):
    """`jnp.lexsort` of 16 keys is an error on 0.4.33."""
    keys = list(env.rng(0).integers(0, 2, (16, 2)).astype(np.int32))
    return Observed(jnp.lexsort(keys), reference=np.lexsort(keys).astype(np.int32))


PARTS_ADDED_AT_ONCE = deviation(
    "jax>=0.10.2,<0.12",
    outcome="ok",
    reason="threads add their parts at the same time: some are lost, or count twice",
    issue="tensorflow/tensorflow#126812",
)


@probe(source="tensorflow/tensorflow#126812", deviations=[PARTS_ADDED_AT_ONCE])
def sums_of_a_broadcast_array(env):
    """Under jit, the sum of a large broadcast array varies from call to call, 0.10.2 to 0.11.2.

    Between one and 97 of 100 calls are wrong, so that many are made.
    """
    x = np.ones((1024, 1), np.float32)
    total = jax.jit(lambda x: jnp.sum(jnp.broadcast_to(x, (2, 1024, 1024))))
    are_right = all(total(x) == 2**21 for _ in range(300))
    return Observed(are_right, reference=True)


CAST_ROUNDS_OR_IS_DROPPED = deviation(
    "jax>=0.10.2",
    outcome="ok",
    reason="YNNPACK, which takes large arrays, rounds where it casts to int8, or does not cast",
    issue="jax-ml/jax#39887",
)


@probe(source="jax-ml/jax#39887", rtol=1e-5, deviations=[CAST_ROUNDS_OR_IS_DROPPED])
def casts_of_many_to_eight_bits(env):
    """Under jit, 1.6 as int8 is 2 or 1.6 in `jnp.max` or `jnp.mean` of a large array from 0.10.2.

    It is 1 without jit, for a small array, and for other integers.
    """

    @jax.jit
    def reduced(x, unsigned):
        return {
            "max": jnp.max(x.astype(jnp.int8)),
            "mean": jnp.mean(x.astype(jnp.int8)),
            "unsigned mean": jnp.mean(x.astype(jnp.uint8)),
            "int16 mean": jnp.mean(x.astype(jnp.int16)),
            "max of 200": jnp.max(unsigned.astype(jnp.int8)),
        }

    value = reduced(np.full((64, 512), 1.6, np.float32), np.full((64, 512), 200, np.uint8))
    one = np.float64(1)
    reference = {
        "max": np.int8(1),
        "mean": one,
        "unsigned mean": one,
        "int16 mean": one,
        "max of 200": np.int8(-56),
    }
    return Observed(value, reference=reference)


SATURATED = deviation(
    "jax>=0.10.2",
    outcome="ok",
    reason="the arithmetic of YNNPACK, which takes large arrays, saturates",
    issue="jax-ml/jax#39887",
)


@probe(source="jax-ml/jax#39887", deviations=[SATURATED])
def overflow_of_many_eight_bit_numbers(env):
    """Under jit, int8 saturates in `jnp.max` and `jnp.mean` of large arrays from 0.10.2 on.

    100 + 100 is 127, and -56 without jit or for a small array.
    """

    @jax.jit
    def reduced(x, unsigned, least):
        return {
            "max": jnp.max(x + x),
            "mean": jnp.mean(x + x),
            "unsigned mean": jnp.mean(unsigned + unsigned),
            "range": jnp.max(jnp.max(x, axis=1) - jnp.min(-x, axis=1)),
            "absolute": jnp.max(jnp.abs(least)),
        }

    values = ((100, np.int8), (200, np.uint8), (-128, np.int8))
    value = reduced(*(np.full((64, 512), number, dtype) for number, dtype in values))
    reference = {
        "max": np.int8(-56),
        "mean": np.float64(-56),
        "unsigned mean": np.float64(144),
        "range": np.int8(-56),
        "absolute": np.int8(-128),
    }
    return Observed(value, reference=reference)


ADDED_WITHOUT_WRAPPING = deviation(
    "jax>=0.10.2",
    outcome="ok",
    reason="the constant was subtracted by adding 256 less it, which YNNPACK does not wrap around",
    issue="jax-ml/jax#39887",
)


@probe(source="jax-ml/jax#39887", rtol=1e-5, deviations=[ADDED_WITHOUT_WRAPPING])
def constant_subtracted_from_many_uint8(env):
    """Under jit, `jnp.mean(x - 1)` of many uint8 numbers 200 is 455 from 0.10.2 on, not 199.

    So is the mean of an image less 128. A small array, and one without jit, are right.
    """

    @jax.jit
    def reduced(x):
        return {
            "mean": jnp.mean(x - 1),
            "max": jnp.max(x - 1),
            "scaled mean": jnp.mean((x - 128) / 255),
        }

    value = reduced(np.full((64, 512), 200, np.uint8))
    reference = {
        "mean": np.float64(199),
        "max": np.uint8(199),
        "scaled mean": np.float64(72 / 255),
    }
    return Observed(value, reference=reference)


CAST_DROPPED = deviation(
    "jax>=0.10.2",
    outcome="ok",
    reason="YNNPACK, which takes large arrays, rounds where it casts to int8, or does not cast",
    issue="jax-ml/jax#39887",
)


FRACTIONS = {
    "fraction": lambda x: jnp.mean(x - x.astype(jnp.int8)),
    "einsum": lambda x: jnp.einsum("ij,ij->i", x.astype(jnp.int8).astype(jnp.float32), x)[0],
    "windows": lambda x: lax.reduce_window(
        x.astype(jnp.int8), np.int8(-128), lax.max, (2, 2), (2, 2), "VALID"
    )[0, 0],
}


@probe(source="jax-ml/jax#39887", rtol=1e-4, deviations=[CAST_DROPPED])
def fractions_of_many(env):
    """Under jit, the mean of `x - x.astype(jnp.int8)` of many numbers 1.6 is 0 from 0.10.2 on.

    It is 0.6. `jnp.einsum` and `lax.reduce_window` do not truncate the numbers either.
    """
    x = np.full((64, 512), 1.6, np.float32)
    value = {name: jax.jit(fn)(x) for name, fn in FRACTIONS.items()}
    reference = {"fraction": np.float64(0.6), "einsum": np.float64(819.2), "windows": np.int8(1)}
    return Observed(value, reference=reference)


NOT_ROUNDED = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="the two casts were removed",
    issue="openxla/xla#10687",
)
BFLOAT16_NOT_ROUNDED = deviation(
    "jax>=0.10",
    outcome="ok",
    match="bfloat16",
    reason="the casts are not done in large sums",
    issue="openxla/xla#10687",
)


@probe(source="openxla/xla#10687", rtol=1e-5, deviations=[NOT_ROUNDED, BFLOAT16_NOT_ROUNDED])
def sum_of_rounded_numbers(env):
    """Under jit, a sum of float32 that were cast to bfloat16 and back has rounded terms.

    They are not rounded before 0.4.33, and for a large array from 0.10.0 on.
    """
    x = np.full((64, 512), 1.6, np.float32)

    def mean(x, dtype):
        return jnp.sum(x.astype(dtype).astype(jnp.float32)) / x.size

    value = {name: jax.jit(mean, static_argnums=1)(x, name) for name in ("bfloat16", "float16")}
    return Observed(value, reference={"bfloat16": np.float64(1.6015625), "float16": 1.599609375})
