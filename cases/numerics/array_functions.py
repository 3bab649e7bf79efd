"""Reductions, sorts, comparisons and other functions of arrays, against NumPy or mathematics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.stats
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program, raises
from conformance.kit.endings import refusal

from ._helpers import f32, inf, nan

defaults(platforms=("cpu",))

NORM_OF_A_MATRIX = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="two axes were those of a matrix, and the norm was a norm of matrices",
    issue="jax-ml/jax@aaaee63ac588",
)


@probe(source="jax-ml/jax@aaaee63ac588", deviations=[NORM_OF_A_MATRIX])
def vector_norm_of_two_axes(env):
    """`jnp.linalg.vector_norm(x, axis=(0, 1))` is the norm of all elements from 0.4.36 on.

    Before, it was silently a norm of the matrix: its largest singular value or sum of a row.
    """

    @jax.jit
    def norms(x):
        norm = jnp.linalg.vector_norm
        return {"2": norm(x, axis=(0, 1)), "inf": norm(x, axis=(0, 1), ord=jnp.inf)}

    expected = {"2": np.sqrt(np.float64(30)), "inf": np.float64(4)}
    return Observed(norms(f32(1, 2, 3, 4).reshape(2, 2)), reference=expected)


SUMS_IN_FLOAT16 = deviation(
    "jax>=0.5.1",
    outcome="ok",
    reason="with a dtype of 16 bits, sums are computed in it",
    issue="jax-ml/jax@b5e7b60d6a23",
)


@probe(source="jax-ml/jax@b5e7b60d6a23", deviations=[SUMS_IN_FLOAT16])
def sums_with_a_dtype_of_16_bits(env):
    """`jnp.mean(x, dtype=jnp.float16)` overflows if the sum does, from 0.5.1 on.

    Without a dtype, and up to 0.5.0, the sum is computed in float32.
    """

    @jax.jit
    def sums(x, y):
        return {
            "sum": jnp.sum(x, dtype=jnp.float16),
            "mean": jnp.mean(y, dtype=jnp.float16),
            "mean_without_dtype": jnp.mean(y),
        }

    x, y = np.float16([40000, 40000, -40000]), np.full(4096, 300, np.float16)
    expected = {"sum": 40000, "mean": 300, "mean_without_dtype": 300}
    return Observed(sums(x, y), {name: np.float16(v) for name, v in expected.items()})


WEIGHTS_OF_ONE_AXIS = deviation(
    "jax<0.8",
    error="ValueError",
    match="1D weights expected",
    reason="weights had one axis, or the shape of the array",
    issue="jax-ml/jax@9092d6728d38",
)


@probe(source="jax-ml/jax@9092d6728d38", deviations=[WEIGHTS_OF_ONE_AXIS])
def average_along_two_axes(env):
    """`jnp.average` accepts weights for several axes from 0.8.0 on."""
    x, weights = np.arange(12, dtype=np.float32).reshape(2, 3, 2), f32(*range(6)).reshape(2, 3)
    result = jax.jit(lambda x, w: jnp.average(x, axis=(0, 1), weights=w))(x, weights)
    exact = np.einsum("ijk,ij->k", np.float64(x), weights) / weights.sum(dtype=np.float64)
    return Observed(result, reference=exact)


FINITE_TOLERANCE = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="the sum of tolerances decided alone for finite numbers, and never for infinite ones",
    issue="jax-ml/jax@674fb5b57797",
)


@probe(source="jax-ml/jax@674fb5b57797", deviations=[FINITE_TOLERANCE])
def closeness_without_a_limit(env):
    """`jnp.isclose` as NumPy 2 has it, from 0.6.2 on, for tolerances of infinity and NaN."""
    infinite = jnp.isclose(f32(inf, 1, inf), f32(1, inf, inf), atol=inf)
    undefined = jnp.isclose(f32(1, 1), f32(1, 2), atol=nan)
    expected = {"infinite": [True, False, True], "undefined": [True, False]}
    result = {"infinite": infinite.tolist(), "undefined": undefined.tolist()}
    return Observed(result, reference=expected)


NO_INITIAL = deviation(
    "jax<0.6.2",
    params=["logaddexp_with_initial"],
    error="AttributeError",
    match="logaddexp",
    reason="the initial value needed a function that lax does not have",
    issue="jax-ml/jax@5cca31fa2b41",
)
NO_MINUS_ONE = deviation(
    "jax<0.6.2",
    params=["bitwise_and_of_unsigned"],
    error="OverflowError",
    match="out of bounds for uint32",
    reason="the neutral element was made from -1",
    issue="jax-ml/jax@5cca31fa2b41",
)
NO_FIRST_ELEMENT = deviation(
    "jax<0.7",
    params=["reduce_of_nothing"],
    error="IndexError",
    match="out of bounds for axis 0 with size 0",
    reason="the loop over no elements was traced",
    issue="jax-ml/jax@fde8205c52b5",
)
UFUNC_REDUCTIONS = {
    "logaddexp_with_initial": (
        lambda: jnp.logaddexp.reduce(f32(1, 2), initial=np.float32(3)),
        np.log(np.exp([1, 2, 3]).sum()),
    ),
    "bitwise_and_of_unsigned": (
        lambda: jnp.bitwise_and.reduce(np.uint32([3, 6])),
        np.uint32(2),
    ),
    "reduce_of_nothing": (
        lambda: jnp.frompyfunc(jnp.add, 2, 1, identity=0).reduce(np.zeros((0, 2), np.float32)),
        f32(0, 0),
    ),
}


@probe(
    source="jax-ml/jax@5cca31fa2b41",
    params=[*UFUNC_REDUCTIONS],
    releases="jax>=0.4.36",
    deviations=[NO_INITIAL, NO_MINUS_ONE, NO_FIRST_ELEMENT],
)
def reduction_of_a_ufunc(env, name):
    """Reductions by methods of ufuncs."""
    call, expected = UFUNC_REDUCTIONS[name]
    return Observed(call(), reference=expected)


INDICES_WRAPPED = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="indices are int32, which large arrays exceed",
    issue="jax-ml/jax@a5ce3adc87a9",
)


@probe(source="jax-ml/jax@a5ce3adc87a9", deviations=[INDICES_WRAPPED])
def top_of_two_billion(env):
    """`lax.top_k` along more than 2**31 elements is a ValueError from 0.6.2 on."""
    x = jax.ShapeDtypeStruct((2**31 + 1,), np.int8)
    outcome = refusal(lambda: jax.eval_shape(lambda x: lax.top_k(x, 1), x), "overflow")
    return Observed(outcome, reference="ValueError: overflow")


BEYOND_MEMORY = {
    "bytes": lambda: jnp.arange(2**45),
    "elements": lambda: jnp.zeros((2**32, 2**32)),
}
DIVISION_BY_ZERO = deviation(
    "jax>=0.9.1,!=0.10.0,!=0.10.1,!=0.10.2,!=0.11.0",
    params=["bytes"],
    outcome="crashed",
    reason="the process ends with a division by zero (SIGFPE)",
)
CHECK_FAILS = deviation(
    "jax>=0.9.1,<0.11",
    params=["elements"],
    outcome="crashed",
    reason="a check of the number of elements ends the process (SIGABRT)",
)


@probe(
    source="jax-ml/jax#38826",
    platforms=("cpu",),
    params=[*BEYOND_MEMORY],
    deviations=[DIVISION_BY_ZERO, CHECK_FAILS],
)
def array_beyond_memory(env, name):
    """An array that no memory can hold is a RuntimeError, which a program can catch.

    The number of bytes of one array is beyond memory, the number of elements of the other is
    beyond 64 bits. From 0.9.1 on some releases end the process.
    """
    try:
        BEYOND_MEMORY[name]().block_until_ready()
    except RuntimeError:
        return Observed("RuntimeError", reference="RuntimeError")
    return Observed("made", reference="RuntimeError")


UNSIGNED_NEGATED = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="the order was reversed by negation, and 0 is its own negative",
    issue="jax-ml/jax@2780b61bfd0d",
)


@probe(source="jax-ml/jax@2780b61bfd0d", deviations=[UNSIGNED_NEGATED])
def partition_of_unsigned(env):
    """`jnp.partition` of unsigned integers with a 0 is right from 0.4.31 on.

    Before, [3, 0, 2] silently became [2, 3, 3].
    """
    result = jax.jit(lambda x: jnp.partition(x, 1))(np.uint8([3, 0, 2]))
    return Observed(result, reference=np.uint8([0, 2, 3]))


SORTED_ALONG_THE_FIRST_AXIS = deviation(
    "jax<0.4.34",
    outcome="ok",
    reason="the first axis was sorted",
    issue="jax-ml/jax@2834c135a346",
)


@probe(source="jax-ml/jax@2834c135a346", deviations=[SORTED_ALONG_THE_FIRST_AXIS])
def complex_sort_of_rows(env):
    """`jnp.sort_complex` sorts a matrix along its last axis from 0.4.34 on, as NumPy does."""
    x = f32(5, 3, 4, 6, 9, 2).reshape(2, 3)
    return Observed(jax.jit(jnp.sort_complex)(x), reference=np.sort(x).astype(np.complex64))


KEPT_NO_AXIS = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="keepdims was ignored",
    issue="jax-ml/jax@edde7d976216",
)


@probe(source="jax-ml/jax@edde7d976216", deviations=[KEPT_NO_AXIS])
def axis_kept_by_sem(env):
    """`jax.scipy.stats.sem(x, axis=1, keepdims=True)` keeps the axis from 0.4.31 on."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = jax.jit(lambda x: jax.scipy.stats.sem(x, axis=1, keepdims=True))(x)
    return Observed(result, reference=np.full((2, 1), 1 / np.sqrt(3)))


MODE_RESHAPED = deviation(
    "jax<0.9.1",
    error="TypeError",
    match="cannot reshape array",
    reason="a negative axis was used as an index of the shape",
    issue="jax-ml/jax@28843f7e66f2",
)


@probe(source="jax-ml/jax@28843f7e66f2", deviations=[MODE_RESHAPED])
def mode_along_the_last_axis(env):
    """`jax.scipy.stats.mode(x, axis=-1)` works from 0.9.1 on."""
    x = np.int32([[1, 2, 2], [3, 3, 1]])
    result = jax.jit(lambda x: jax.scipy.stats.mode(x, axis=-1))(x)
    return Observed(tuple(result), reference=(np.int32([2, 3]), np.int32([2, 2])))


SCALARS_ONLY = deviation(
    "jax<0.6.1",
    error="ValueError",
    match="does not match core dimensions",
    reason="without a signature, a function had to return scalars",
    issue="jax-ml/jax@0debc206d703",
)


@probe(source="jax-ml/jax@0debc206d703", deviations=[SCALARS_ONLY])
def vectorised_function_with_vectors(env):
    """`jnp.vectorize` without a signature accepts a function that returns a vector, from 0.6.1."""
    powers = jnp.vectorize(lambda x: x ** np.arange(3))
    return Observed(powers(f32(2, 3)), reference=f32(1, 2, 4, 1, 3, 9).reshape(2, 3))


FRACTIONS_TRUNCATED = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the dtype `bool` was not recognised, and numbers were converted to integers",
    issue="jax-ml/jax@e4bf3191cd7f",
)


@probe(source="jax-ml/jax@e4bf3191cd7f", deviations=[FRACTIONS_TRUNCATED])
def cumulative_sum_of_truth(env):
    """`jnp.cumulative_sum(x, dtype=bool)` treats 0.1 as true from 0.7.2 on."""
    result = jax.jit(lambda x: jnp.cumulative_sum(x, axis=-1, dtype=bool))(f32(0, 0.1))
    return Observed(result, reference=np.array([False, True]))


LAST_TWO_AXES = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="the last two axes were used",
    issue="jax-ml/jax@4ff69d3853e2",
)


@program(source="jax-ml/jax@4ff69d3853e2", deviations=[LAST_TWO_AXES])
def triangle_of_three_axes(env):
    """`jnp.triu_indices_from` of an array of three axes is refused, as in NumPy."""
    x = np.zeros((2, 2, 2), np.float32)
    return Program(jnp.triu_indices_from, (x,), reference=raises("ValueError", match="Only 2-D"))


EVEN_SPACING = deviation(
    "jax<0.4.31",
    error="NotImplementedError",
    match="Non-constant spacing",
    reason="only constant spacing was implemented",
    issue="jax-ml/jax@b2a3edb9d528",
)


@probe(source="jax-ml/jax@b2a3edb9d528", deviations=[EVEN_SPACING])
def gradient_of_uneven_spacing(env):
    """`jnp.gradient` accepts coordinates with uneven spacing from 0.4.31 on."""
    y, x = f32(1, 2, 4, 7), f32(0, 1, 3, 4)
    return Observed(jax.jit(jnp.gradient)(y, x), reference=np.gradient(np.float64(y), x))


LARGE_INTEGER_TRUNCATED = deviation(
    "jax<0.11",
    params=["integer"],
    outcome="ok",
    reason="an integer of 64 bits lost its upper half on the way",
    issue="jax-ml/jax@f7337b26486d",
)
NEUTRAL_ELEMENT_TRUNCATED = deviation(
    "jax<0.11",
    params=["maximum"],
    error="TypeError",
    match="initial value dtypes",
    reason="the neutral element of the reduction was int32",
    issue="jax-ml/jax@2ed31913ce07",
)
WIDE = {
    "integer": lambda: jnp.int64(2**40),
    "maximum": lambda: jnp.max(jnp.asarray(np.array([2**40, 1]), dtype=np.int64)),
}


@probe(
    source="jax-ml/jax@f7337b26486d",
    params=[*WIDE],
    releases="jax>=0.8",
    config={"jax_explicit_x64_dtypes": "allow"},
    deviations=[LARGE_INTEGER_TRUNCATED, NEUTRAL_ELEMENT_TRUNCATED],
)
def explicit_int64(env, name):
    """An int64 beyond 32 bits without x64, under `jax_explicit_x64_dtypes=allow`."""
    return Observed(np.asarray(WIDE[name]()), reference=np.array(2**40))


FREQUENCIES_NOT_COMPLEX = deviation(
    "jax>=0.6.1,<0.7",
    error="TypeError",
    match="rem does not accept dtype complex64",
    reason="the remainder of complex numbers was taken",
    issue="jax-ml/jax@f26c2caba639",
)


@probe(source="jax-ml/jax@f26c2caba639", deviations=[FREQUENCIES_NOT_COMPLEX])
def complex_frequencies(env):
    """`jnp.fft.fftfreq` with a complex dtype fails from 0.6.1 to 0.6.2."""
    result = jnp.fft.fftfreq(4, dtype=np.complex64)
    return Observed(result, reference=np.fft.fftfreq(4).astype(np.complex64))


DTYPE_IGNORED = deviation(
    "jax>=0.4.33,<0.12",
    outcome="ok",
    reason="`dtype` was accepted and ignored, so the sums were those of eight bits",
    issue="jax-ml/jax#23304",
)


@probe(source="jax-ml/jax#23304", releases="jax>=0.4.33", deviations=[DTYPE_IGNORED])
def sums_of_parts_in_a_wider_dtype(env):
    """`jnp.add.reduceat(x, indices, dtype=...)` sums in that dtype from 0.12.0 on.

    Before, it silently ignored `dtype`: 100 + 100 in eight bits is -56.
    """
    x, starts = np.int8([100, 100, 100, 1]), np.array([0, 2])
    result = jnp.add.reduceat(jnp.asarray(x), jnp.asarray(starts), dtype=np.int32)
    return Observed(result, reference=np.add.reduceat(x, starts, dtype=np.int32))


LEAST_WAS_ITS_NEGATIVE = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the least integer was negated, which is itself",
    issue="jax-ml/jax#40338",
)


@probe(source="jax-ml/jax#40338", releases="jax>=0.11.1", deviations=[LEAST_WAS_ITS_NEGATIVE])
def least_of_signed_integers(env):
    """`jnp.top_k(x, 2, mode="smallest")` finds the least integer of a dtype from 0.12.0 on.

    In 0.11.1 and 0.11.2, its first releases, -128 was the largest number of eight bits.
    """
    x = np.int8([-128, 5, 3])
    result = jax.jit(lambda x: jnp.top_k(x, 2, mode="smallest"))(x)
    return Observed(tuple(result), reference=(np.int8([-128, 3]), np.int32([0, 2])))


ROUNDED_INDICES = deviation(
    "jax>=0.6.1",
    outcome="ok",
    reason="a remainder is computed of indices up to 300, rounded to bfloat16",
    issue="jax-ml/jax@8d2e9a853a2b",
)


@probe(source="jax-ml/jax@8d2e9a853a2b", deviations=[ROUNDED_INDICES])
def frequencies_in_bfloat16(env):
    """`jnp.fft.fftfreq` of 300 points in bfloat16 is as exact as the dtype."""
    result = np.asarray(jnp.fft.fftfreq(300, dtype=jnp.bfloat16)).astype(np.float64)
    error = np.abs(result - np.fft.fftfreq(300)).max()
    return Observed(bool(error < 0.01), reference=True)


INTEGER_DTYPE_IGNORED = deviation(
    "jax<0.7", outcome="ok", reason="the result was float32", issue="jax-ml/jax@f26c2caba639"
)


@probe(source="jax-ml/jax@f26c2caba639", deviations=[INTEGER_DTYPE_IGNORED])
def frequencies_of_an_integer_dtype(env):
    """`jnp.fft.fftfreq` with an integer dtype gives zeros."""
    return Observed(jnp.fft.fftfreq(4, dtype=np.int32), reference=np.zeros(4, np.int32))
