"""Subscripts that selected the wrong elements, had no derivative, or were refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program, raises
from conformance.kit.endings import refusal

from ._helpers import f32

defaults(platforms=("cpu",))

LARGE_INDEX_WRAPPED = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="all indices were converted to the dtype of the smallest, in which 999 is -25",
    issue="jax-ml/jax#31396",
)


@probe(source="jax-ml/jax#31396", deviations=[LARGE_INDEX_WRAPPED])
def large_index_beside_an_int8(env):
    """`x[999, i]` with an int8 `i` reads row 999 from 0.8.1 on; before, silently row 0."""
    x = jnp.asarray(np.arange(1000, dtype=np.int32)[:, None])
    traced = jax.jit(lambda x, i: x[999, i])(x, np.int8(0))
    result = {"eager": x[999, jnp.int8(0)], "jit": traced}
    return Observed(result, reference={"eager": np.int32(999), "jit": np.int32(999)})


READS_OF_THE_LAST = {
    "element": lambda x, i: x[jnp.asarray(i)],
    "traced": lambda x, i: jax.jit(lambda i: x[i])(i),
    "taken": lambda x, i: jnp.take(x, jnp.asarray(i)),
    "elements": lambda x, i: x[jnp.asarray([i])][0],
    "updated": lambda x, i: x.at[jnp.asarray(i)].add(0)[-1],
    "number_of_numpy": lambda x, i: x[i],
    "index_in_dim": lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False),
}
LENGTH_IN_8_BITS = [
    deviation(
        params=["element", "traced", "taken"],
        outcome="ok",
        reason="the length is added in the dtype of the index, in which 1000 is -24",
        issue="jax-ml/jax#31396",
    ),
    deviation(
        params=["elements", "updated"],
        error="OverflowError",
        match="Python integer 1000 out of bounds for int8",
        reason="the length is added in the dtype of the index",
        issue="jax-ml/jax#31396",
    ),
    deviation(
        "jax<0.9.1",
        params=["number_of_numpy"],
        error="OverflowError",
        match="Python integer 1000 out of bounds for int8",
        reason="the length was added in the dtype of the index",
        issue="jax-ml/jax#31396",
    ),
    deviation(
        "jax<0.10.1",
        params=["index_in_dim"],
        error="OverflowError",
        match="Python integer 1000 out of bounds for int8",
        reason="the length was added in the dtype of the index",
        issue="jax-ml/jax#31396",
    ),
    deviation(
        "jax>=0.10.1",
        params=["index_in_dim"],
        outcome="ok",
        reason="the length is added in the dtype of the index, in which 1000 is -24",
        issue="jax-ml/jax#31396",
    ),
]


@probe(source="jax-ml/jax#31396", params=[*READS_OF_THE_LAST], deviations=LENGTH_IN_8_BITS)
def int8_index_from_the_end(env, name):
    """The int8 index -1 reads the last of 1,000 elements.

    An array or a tracer silently reads the first, `jnp.take` a fill value; most others are refused.
    """
    x = jnp.arange(1000)
    return Observed(READS_OF_THE_LAST[name](x, np.int8(-1)), np.int32(999))


ELLIPSIS_OVERLOOKED = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="an ellipsis of no axes was dropped before the axes were ordered",
    issue="jax-ml/jax#25109",
)


@probe(source="jax-ml/jax#25109", deviations=[ELLIPSIS_OVERLOOKED])
def ellipsis_of_no_axes(env):
    """`x[:, i, ..., j]` puts the axis of the indices first, as in NumPy, from 0.4.36 on."""
    x = np.arange(12, dtype=np.int32).reshape(3, 2, 2)
    index = (slice(None), np.array([0, 1]), ..., np.array([0, 1]))
    return Observed(jax.jit(lambda x: x[index])(x), reference=x[index])


EMPTY_MASK_REFUSED = deviation(
    "jax<0.4.33",
    error="IndexError",
    match="boolean index did not match shape",
    reason="a mask had to have the shape of the array",
    issue="jax-ml/jax#22886",
)


@probe(source="jax-ml/jax#22886", deviations=[EMPTY_MASK_REFUSED])
def mask_of_no_elements(env):
    """`x[mask]` with a mask of no elements is empty, as in NumPy, from 0.4.33 on."""
    x, mask = make_matrix(), np.zeros((0, 4), bool)
    return Observed(jnp.asarray(x)[mask], reference=x[mask])


def make_matrix():
    """Return 0 to 11 in three rows, as float32."""
    return np.arange(12, dtype=np.float32).reshape(3, 4)


CLIPPED_GET_LOST_GRADIENT = deviation(
    "jax<0.5",
    params=["get"],
    outcome="ok",
    match="batched",
    reason="under vmap, the gradient assumed an index within bounds",
    issue="jax-ml/jax#25878",
)
SLICE_LOST_GRADIENT = deviation(
    "jax<0.9",
    params=["dynamic_index"],
    outcome="ok",
    match="batched",
    reason="under vmap, the gradient assumed an index within bounds",
    issue="jax-ml/jax#34228",
)
CLIPPED_READS = {
    "get": lambda x, i: x.at[i].get(mode="clip"),
    "dynamic_index": lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False),
}


@probe(
    source="jax-ml/jax#34228",
    params=[*CLIPPED_READS],
    deviations=[CLIPPED_GET_LOST_GRADIENT, SLICE_LOST_GRADIENT],
)
def gradient_of_clipped_reads(env, name):
    """The gradient of a read that is clipped to the last element is that of the last element.

    Under vmap, it was silently 0.
    """
    read = CLIPPED_READS[name]

    @jax.jit
    def gradients(x, at):
        batched = jax.vmap(read, (None, 0))
        return {
            "single": jax.grad(read)(x, at[0]),
            "batched": jax.grad(lambda x: batched(x, at).sum())(x),
        }

    expected = {"single": f32(0, 1), "batched": f32(0, 1)}
    return Observed(gradients(f32(1, 2), np.array([7])), reference=expected)


FLOAT_BESIDE_ARRAY = deviation(
    "jax<0.5.3",
    outcome="ok",
    match="IndexError",
    reason="the error named the array of integers beside the float",
    issue="jax-ml/jax@b2c45b8eb9f5",
)


@probe(source="jax-ml/jax@b2c45b8eb9f5", deviations=[FLOAT_BESIDE_ARRAY])
def float_beside_an_array(env):
    """`x[i, 1.0]` with an array `i` is a TypeError about the float from 0.5.3 on."""
    x, rows = jnp.asarray(make_matrix()), np.arange(2)
    words = ("integer or boolean", "float", "Indexing mode not yet supported")
    return Observed(refusal(lambda: x[rows, 1.0], *words), "TypeError: integer or boolean, float")


FLAT_INDEX_OVERFLOWED = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="the flat index had the dtype of the indices, in which it overflowed silently",
    issue="jax-ml/jax@3208104446dc",
)
SMALL_FLAT_INDEX = raises("ValueError", match="not large enough to hold flattened index")


@program(source="jax-ml/jax@3208104446dc", deviations=[FLAT_INDEX_OVERFLOWED])
def flat_index_in_uint8(env):
    """`ravel_multi_index` of uint8 (20, 5) in 30 x 30 is refused from 0.9.1 on; before, it was 93.

    The flat index is 605.
    """
    at = (np.uint8([20]), np.uint8([5]))
    return Program(
        lambda *at: jnp.ravel_multi_index(at, (30, 30), mode="clip"), at, reference=SMALL_FLAT_INDEX
    )


TEXT_WAS_COMPARED = deviation(
    "jax<0.10",
    outcome="ok",
    reason="Python compared the text with each element",
    issue="jax-ml/jax@c98c39cd6d1d",
)


@probe(source="jax-ml/jax@c98c39cd6d1d", deviations=[TEXT_WAS_COMPARED])
def text_in_an_array(env):
    """`"a" in x` is a TypeError from 0.10.0 on; before, it was False."""
    x = jnp.asarray(f32(1, 2))
    outcomes = {
        "text": refusal(lambda: "a" in x, "unsupported operand"),
        "number": refusal(lambda: 2 in x),
    }
    return Observed(outcomes, {"text": "TypeError: unsupported operand", "number": "ran"})


NO_SLICE_OBJECTS = deviation(
    "jax<0.9.1",
    error="IndexError",
    reason="only kernels accepted slice objects of Pallas",
    issue="jax-ml/jax@6156decd6007",
)


@probe(source="jax-ml/jax@6156decd6007", deviations=[NO_SLICE_OBJECTS])
def slice_object_of_pallas(env):
    """`x[pl.ds(start, 2)]` with a traced start works outside of kernels from 0.9.1 on."""
    from jax.experimental import pallas as pl  # noqa: PLC0415 - slow, and of this case alone

    result = jax.jit(lambda x, start: x[pl.ds(start, 2)])(f32(1, 2, 3, 4), 1)
    return Observed(result, reference=f32(2, 3))


SLICE_OF_NOTHING = deviation(
    "jax<0.8.1",
    error="TypeError",
    match="Slice size at index 0 in gather op is out of range",
    reason="the size of a slice was checked even if none is read",
    issue="jax-ml/jax@cab8c2293e2d",
)
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))


@probe(source="jax-ml/jax@cab8c2293e2d", deviations=[SLICE_OF_NOTHING])
def no_rows(env):
    """A read of no rows from an array of no rows."""
    x = np.zeros((0, 3), np.float32)
    read = jax.jit(lambda x: lax.gather(x, np.zeros((0, 1), int), ROWS, (1, 3)))
    return Observed(read(x), reference=x)


DIAGONAL_WRAPPED = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="the offset was clipped to int32, and its sum with the row wrapped",
    issue="jax-ml/jax@075494cd61b1",
)
DIAGONAL_DOES_NOT_FIT = deviation(
    "jax>=0.8.1",
    error="OverflowError",
    match="too large to convert to int32",
    reason="the offset is converted to int32",
    issue="jax-ml/jax@075494cd61b1",
)


@probe(source="jax-ml/jax@075494cd61b1", deviations=[DIAGONAL_WRAPPED, DIAGONAL_DOES_NOT_FIT])
def diagonal_far_away(env):
    """`jnp.tril` with an offset beyond int32 is an OverflowError from 0.8.1 on.

    Before, all rows except the first were silently zero. NumPy returns the matrix itself.
    """
    x = make_matrix()
    return Observed(jnp.tril(x, 2**33), reference=np.tril(x, 2**33))


LOST_METHOD = deviation(
    "jax>=0.5.1,<0.9.1",
    error="AttributeError",
    match="has no attribute 'argpartition'",
    reason="the method called a function that had moved",
    issue="jax-ml/jax@7519619d8fac",
)


@probe(source="jax-ml/jax@7519619d8fac", deviations=[LOST_METHOD])
def argpartition_method(env):
    """The method `x.argpartition` fails from 0.5.1 to 0.9.0; `jnp.argpartition` does not."""
    x = f32(3, 1, 2)
    return Observed(jnp.asarray(x).argpartition(1)[:2], reference=np.int32([1, 2]))


STEPS_ROUNDED = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="multiples of a rounded step were added to the start",
    issue="jax-ml/jax#32542",
)


@probe(source="jax-ml/jax#32542", rtol=0, deviations=[STEPS_ROUNDED])
def range_of_bfloat16(env):
    """`jnp.arange(0.1, 5, dtype=bfloat16)` is the rounded range from 0.8.2 on."""
    result = jnp.arange(0.1, 5, dtype=jnp.bfloat16).astype(np.float32)
    expected = np.arange(0.1, 5).astype(jnp.bfloat16).astype(np.float32)
    return Observed(result, reference=expected)


TRUNCATED_TO_INT32 = deviation(
    "jax>=0.7.2",
    outcome="ok",
    reason="the index is converted to int32 before it is compared with the bounds",
    issue="jax-ml/jax@e7e3818e48cc",
)


@probe(source="jax-ml/jax@e7e3818e48cc", x64=True, deviations=[TRUNCATED_TO_INT32])
def index_beyond_32_bits(env):
    """`jnp.take` at an index of 64 bits that is out of bounds is NaN."""
    result = jnp.take(jnp.arange(4.0), np.int64([2**32 + 1, 2]))
    return Observed(np.isnan(result), reference=np.array([True, False]))
