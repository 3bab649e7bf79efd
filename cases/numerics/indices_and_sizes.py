"""Small and large indices, negative sizes, and conversions of numbers, in plain calls."""

from __future__ import annotations

import jax
import jax.image
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import f32

defaults(platforms=("cpu",))

READS = {
    "slice": (lambda x, i: x[i, 250:252], np.int8(1), [550, 551]),
    "two_indices": (lambda x, i: x[i, -i], np.int8(1), 599),
}
SIZES_IN_INT8 = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="the positions of the columns were converted to the dtype of the index",
    issue="jax-ml/jax@981929e2e483",
)


@probe(source="jax-ml/jax@981929e2e483", params=[*READS], deviations=[SIZES_IN_INT8])
def columns_of_a_row_in_int8(env, name):
    """Under jit, `x[i, 250:252]` with an int8 `i` reads these columns from 0.8.1 on.

    Before, it silently read others, because 250 is no int8.
    """
    read, row, expected = READS[name]
    x = np.arange(600, dtype=np.int32).reshape(2, 300)
    return Observed(jax.jit(read)(x, row), reference=np.int32(expected))


REAL_PART_ALONE = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="a Python number was converted by its real part",
    issue="jax-ml/jax@b19a213cc422",
)


@probe(source="jax-ml/jax@b19a213cc422", deviations=[REAL_PART_ALONE])
def truth_of_an_imaginary_number(env):
    """`lax.convert_element_type(1j, bool)` is True from 0.10.1 on; before, silently False."""
    return Observed(lax.convert_element_type(1j, bool), reference=np.bool_(True))


NEGATIVE_SIZES = {
    "image": lambda: jax.image.resize(f32(1, 2, 3, 4), (-1,), "linear"),
    "tile": lambda: jax.eval_shape(lambda x: jnp.tile(x, -1), f32(1, 2)),
}
SIZE_ACCEPTED = deviation(
    "jax>=0.8.2",
    params=["image"],
    outcome="ok",
    match="ran",
    reason="the sizes of a range are not checked",
    issue="jax-ml/jax@c71327c925a7",
)
REPETITIONS_ACCEPTED = deviation(
    "jax>=0.9",
    params=["tile"],
    outcome="ok",
    match="ran",
    reason="the repetitions of the operation `tile` are not checked",
)


@probe(
    source="jax-ml/jax@c71327c925a7",
    params=[*NEGATIVE_SIZES],
    deviations=[SIZE_ACCEPTED, REPETITIONS_ACCEPTED],
)
def negative_size(env, name):
    """`jax.image.resize` to a negative size is silently accepted, and empty, from 0.8.2 on.

    Tracing `jnp.tile(x, -1)` is accepted from 0.9.0 on. Before, both were a TypeError.
    """
    return Observed(refusal(NEGATIVE_SIZES[name], "nonnegative"), "TypeError: nonnegative")


INDEX_REFUSED = deviation(
    "jax<0.8.2",
    error="OverflowError",
    match="too large to convert",
    reason="the index was converted to int32 by NumPy",
)
INDEX_WRAPPED = deviation(
    "jax>=0.8.2",
    outcome="ok",
    reason="the index wraps around in int32",
    issue="jax-ml/jax@b841f5b4a716",
)


@probe(source="jax-ml/jax@b841f5b4a716", deviations=[INDEX_REFUSED, INDEX_WRAPPED])
def element_beyond_int32(env):
    """`x.at[2**32 + 1].set(9)` of three elements silently writes the second, from 0.8.2 on.

    An update out of bounds is dropped; before, an index beyond int32 was an OverflowError.
    """
    x = jnp.arange(3.0)
    return Observed(x.at[2**32 + 1].set(9), reference=f32(0, 1, 2))


STEPS_LOST = deviation(
    "jax<0.10",
    outcome="ok",
    reason="the step was added in float32",
)


@probe(source="jax-ml/jax@c71327c925a7", rtol=0, deviations=[STEPS_LOST])
def whole_numbers_beyond_float32(env):
    """`jnp.arange(16777216, 16777220, 1.0)` is the rounded range from 0.10.0 on.

    Before, it was silently four times 16777216. Each second number is no float32.
    """
    reference = f32(16777216, 16777216, 16777218, 16777220)
    return Observed(jnp.arange(16777216, 16777220, 1.0), reference)


NOT_AN_INDEX = deviation(
    "jax<0.5.3",
    error="IndexError",
    match="Indexing mode not yet supported",
    reason="a range was no sequence of numbers",
)
NOT_AN_ARRAY = deviation(
    "jax>=0.8.2",
    error="TypeError",
    match="Error interpreting argument",
    reason="`jnp.asarray` refuses a range",
    issue="jax-ml/jax@b841f5b4a716",
)


@probe(source="jax-ml/jax@b841f5b4a716", deviations=[NOT_AN_INDEX, NOT_AN_ARRAY])
def range_as_an_index(env):
    """`x[0, range(2)]` reads two elements of a row from 0.5.3 to 0.8.1; else it is refused."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    return Observed(jnp.asarray(x)[0, range(2)], reference=x[0, :2])
