"""Denormal numbers, which XLA takes for 0 in most operations, and infinities on a CPU."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import f32, replace_nan

defaults(source="jax-ml/jax#19689", platforms=("cpu",))

RETURNED_UNCHANGED = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="it was returned unchanged, with the exponent 0",
    issue="jax-ml/jax#19689",
)
TAKEN_FOR_THE_LEAST = deviation(
    "jax>=0.4.33,<0.12",
    outcome="ok",
    reason="the mantissa was 0.5 and the exponent that of the least denormal number",
    issue="jax-ml/jax#19689",
)
TAKEN_FOR_ZERO = deviation(
    "jax>=0.12", outcome="ok", reason="it is taken for zero", issue="jax-ml/jax#19689"
)


@probe(rtol=1e-6, deviations=[RETURNED_UNCHANGED, TAKEN_FOR_THE_LEAST, TAKEN_FOR_ZERO])
def mantissa_of_denormal_numbers(env):
    """`frexp` of a denormal number is wrong on all releases, in three ways.

    The mantissa is the number itself up to 0.4.31, 0.5 from 0.4.33, and 0 from 0.12.0 on.
    """
    x = f32(1e-40, 1e-39)
    mantissa, exponent = jax.jit(jnp.frexp)(x)
    return Observed(
        {"mantissa": mantissa, "exponent": exponent},
        reference=dict(zip(("mantissa", "exponent"), np.frexp(x), strict=True)),
    )


FLUSHED_TO_ZERO = deviation(
    "jax<0.12", outcome="ok", reason="it was flushed to zero", issue="jax-ml/jax#19689"
)


@probe(rtol=1e-6, deviations=[FLUSHED_TO_ZERO])
def arcsine_of_denormal_numbers(env):
    """`arcsin` of a denormal number is the number itself from 0.12.0 on; before, 0."""
    x = f32(1e-40, -1e-39)
    return Observed(jax.jit(jnp.arcsin)(x), reference=x)


EXPONENTIAL_IS_FINITE = deviation(
    "jax<0.12",
    params=["one"],
    outcome="ok",
    reason="within a fused computation, the exponential of infinity is the largest finite number",
    issue="jax-ml/jax#469",
)
EXPONENTIALS_ARE_FINITE = deviation(
    params=["many"],
    outcome="ok",
    reason="within a fused computation, the exponential of infinity is the largest finite number",
    issue="jax-ml/jax#469",
)


@probe(
    source="jax-ml/jax#469",
    params={"one": {"count": 1}, "many": {"count": 16}},
    deviations=[EXPONENTIAL_IS_FINITE, EXPONENTIALS_ARE_FINITE],
)
def exponential_less_infinity(env, count):
    """Under jit, `exp(x) - x` at infinity is -inf; it is NaN, as without jit, from 0.12.0 on.

    But only for a single element: for an array of 4, 16 or 900 it still is -inf.
    """
    x = np.full(count, np.inf, np.float32)
    return Observed(replace_nan(jax.jit(lambda x: jnp.exp(x) - x)(x)), np.full(count, -777.0))


QUOTIENT_OF_ZEROS = deviation(
    outcome="ok",
    reason="both are taken for zero, and their quotient is NaN",
    issue="jax-ml/jax#37762",
)


@probe(source="jax-ml/jax#37762", rtol=1e-6, deviations=[QUOTIENT_OF_ZEROS])
def angle_of_denormal_numbers(env):
    """`arctan2` of two denormal numbers is NaN on all releases."""
    x = f32(1e-40, 1e-39)
    return Observed(replace_nan(jax.jit(jnp.arctan2)(x, x)), reference=np.arctan2(x, x))


NAN_IGNORED = deviation(
    "jax>=0.9.1",
    outcome="ok",
    reason="the reductions of YNNPACK, which take large arrays, drop NaN",
    issue="jax-ml/jax#39887",
)


@probe(source="jax-ml/jax#39887", deviations=[NAN_IGNORED])
def largest_of_many_with_nan(env):
    """`jnp.max` of an array with NaN is NaN; for large arrays it is the largest number."""

    def largest(*shape):
        x = np.ones(shape, np.float32)
        x[..., 3] = np.nan
        return bool(np.isnan(jnp.max(x, axis=-1)).all())

    value = {
        "1000": largest(1000),
        "4096": largest(4096),
        "65536": largest(65536),
        "8x1024": largest(8, 1024),
        "64x1024": largest(64, 1024),
    }
    return Observed(value, reference=dict.fromkeys(value, True))


NAN_IGNORED_FROM_0_9_1 = deviation(
    "jax>=0.9.1",
    params=["all_nan"],
    outcome="ok",
    reason="the reductions of YNNPACK, which take large arrays, drop NaN",
    issue="jax-ml/jax#39887",
)
NAN_IGNORED_FROM_0_10 = deviation(
    "jax>=0.10",
    params=["bfloat16"],
    outcome="ok",
    reason="the reductions of YNNPACK, which take large arrays, drop NaN",
    issue="jax-ml/jax#39887",
)
NAN_IGNORED_FROM_0_10_2 = deviation(
    "jax>=0.10.2",
    params=["float16"],
    outcome="ok",
    reason="the reductions of YNNPACK, which take large arrays, drop NaN",
    issue="jax-ml/jax#39887",
)


@probe(
    source="jax-ml/jax#39887",
    params={
        "all_nan": {"dtype": "float32", "count": 65536},
        "bfloat16": {"dtype": "bfloat16", "count": 1},
        "float16": {"dtype": "float16", "count": 1},
    },
    deviations=[NAN_IGNORED_FROM_0_9_1, NAN_IGNORED_FROM_0_10, NAN_IGNORED_FROM_0_10_2],
)
def least_of_many_with_nan(env, dtype, count):
    """`jnp.min` of a large array is infinite if all numbers are NaN.

    In bfloat16 and float16, it ignores NaN, too; `jnp.max` does not.
    """
    x = np.ones(65536, np.float32)
    x[:count] = np.nan
    x = jnp.asarray(x, dtype)
    value = {"min": replace_nan(jnp.min(x).astype(np.float32))}
    if count == 1:
        value["max"] = replace_nan(jnp.max(x).astype(np.float32))
    return Observed(value, reference=dict.fromkeys(value, np.float32(-777)))


SUM_OVERFLOWED = deviation(
    outcome="ok",
    reason="the sum of the exponentials, 70000, overflows in float16",
    issue="jax-ml/jax#40409",
)


@probe(source="jax-ml/jax#40409", rtol=1e-2, deviations=[SUM_OVERFLOWED])
def softmax_of_many_in_float16(env):
    """`softmax` of 70,000 float16 zeros is 0 on all releases, not 1.4e-5.

    `logsumexp` is infinite, and the gradient of `log_softmax` NaN.
    """

    @jax.jit
    def functions(x):
        return {
            "softmax": jax.nn.softmax(x)[0],
            "logsumexp": jax.nn.logsumexp(x),
            "gradient": jax.grad(lambda x: jax.nn.log_softmax(x).sum())(x)[0],
        }

    value = functions(np.zeros(70_000, np.float16))
    reference = {"softmax": 1 / 70_000, "logsumexp": np.log(70_000), "gradient": 0}
    return Observed(
        replace_nan(value), reference={name: np.float64(v) for name, v in reference.items()}
    )


BOUND_PARSED_AS_INT64 = deviation(
    error="OverflowError",
    match="An overflow was encountered while parsing an argument",
    reason="an integer of Python becomes int64, whatever the dtype of the array",
    issue="jax-ml/jax#34455",
)


@probe(source="jax-ml/jax#34455", x64=True, deviations=[BOUND_PARSED_AS_INT64])
def clipped_at_a_large_bound(env):
    """`jnp.clip` of uint64 refuses a bound of 2**63, which only uint64 can hold."""
    x = np.uint64([5, 2**64 - 1])
    return Observed(jnp.clip(x, 7, 2**63), reference=np.clip(x, np.uint64(7), np.uint64(2**63)))


LOST_AS_A_RESULT = deviation(
    "jax>=0.12", outcome="ok", reason="it is replaced by zero", issue="jax-ml/jax#19689"
)


@probe(deviations=[LOST_AS_A_RESULT])
def scaled_to_denormal_numbers(env):
    """`ldexp` in float16 gives denormal numbers; from 0.12.0 on they are silently 0.

    Those of float16 begin at 6e-5, and an operation on float16 keeps them.
    """
    x, exponent = np.float16([1, 0.75, 3]), np.int32([-20, -22, -16])
    return Observed(jax.jit(jnp.ldexp)(x, exponent), reference=np.ldexp(x, exponent))


LARGE_SQUARE = deviation(
    "jax<0.4.31", outcome="ok", reason="the square overflowed", issue="openxla/stablehlo#2357"
)


@probe(source="openxla/stablehlo#2357", deviations=[LARGE_SQUARE])
def arccos_of_a_large_complex_number(env):
    """`jnp.arccos` of complex numbers whose square overflows is right; before, it was NaN."""
    z = np.complex64([1e20 + 1e20j, 1e30j])
    y = jnp.arccos(z)
    parts = {"real": np.float64(y.real), "imaginary": np.float64(y.imag)}
    result = {name: replace_nan(part.round(2)) for name, part in parts.items()}
    expected = {"real": np.array([0.79, 1.57]), "imaginary": np.array([-47.09, -69.77])}
    return Observed(result, reference=expected)
