"""Calls whose result changed silently, or became an error, from 0.9.1 on."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.stats
import numpy as np
from jax import lax
from jax.experimental.jet import jet

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import f32, replace_nan

defaults(platforms=("cpu",))

NARROW_COPY_IS_KEPT = deviation(
    "jax>=0.9.2",
    outcome="ok",
    reason="a narrowed copy of the array is kept as long as something else uses it",
    issue="jax-ml/jax@fae1e236edfd",
)


@probe(source="jax-ml/jax@fae1e236edfd", deviations=[NARROW_COPY_IS_KEPT])
def array_written_between_traces(env):
    """A function that is traced after a write to a float64 array that an older one uses."""
    x = np.zeros(3)
    older = jax.jit(lambda y: y + x)
    older(np.float32(1))
    x[:] = 7
    return Observed(jax.jit(lambda y: y + x)(np.float32(1)), reference=f32(8, 8, 8))


@probe(source="jax-ml/jax@fae1e236edfd", deviations=[NARROW_COPY_IS_KEPT])
def gradient_after_a_write(env):
    """A gradient, outside jit, after a write to a float64 array that a jitted function uses."""
    x = np.zeros(3)
    total = lambda w: (w * x).sum()  # noqa: E731 - short
    older = jax.jit(total)
    older(np.float32(1))
    x[:] = 7
    return Observed(jax.grad(total)(np.float32(1)), reference=np.float32(21))


DIFFERENCE_OF_INFINITIES = deviation(
    "jax>=0.9.1",
    outcome="ok",
    reason="half of the first and the last number is subtracted from the sum",
    issue="jax-ml/jax@74aab53f28d4",
)


@probe(source="jax-ml/jax@74aab53f28d4", deviations=[DIFFERENCE_OF_INFINITIES])
def trapezoid_from_infinity(env):
    """`jnp.trapezoid` of numbers that begin with infinity."""
    return Observed(replace_nan(jnp.trapezoid(f32(np.inf, 1, 1))), reference=np.float32(np.inf))


NO_FIRST_NUMBER = deviation(
    "jax>=0.9.1",
    error="IndexError",
    match="out of bounds for axis 0 with size 0",
    reason="the first and the last number are read",
    issue="jax-ml/jax@74aab53f28d4",
)


@probe(source="jax-ml/jax@74aab53f28d4", deviations=[NO_FIRST_NUMBER])
def trapezoid_of_nothing(env):
    """`jnp.trapezoid` of an empty array."""
    return Observed(jnp.trapezoid(f32()), reference=np.float32(0))


WIDTHS_OF_ROWS = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="the widths were multiplied along the axis of the sum",
    issue="jax-ml/jax@74aab53f28d4",
)


@probe(source="jax-ml/jax@74aab53f28d4", deviations=[WIDTHS_OF_ROWS])
def trapezoid_of_columns(env):
    """`jnp.trapezoid(y, dx=[1, 2], axis=0)`: a width for each column, as in NumPy."""
    y = np.arange(6, dtype=np.float32).reshape(3, 2)
    return Observed(jnp.trapezoid(y, dx=f32(1, 2), axis=0), reference=f32(4, 12))


STEP_BECOMES_AN_INTEGER = deviation(
    "jax>=0.10",
    outcome="ok",
    reason="start and step are converted to the dtype before they are multiplied",
    issue="jax-ml/jax@3dd61872d03e",
)


@probe(source="jax-ml/jax@3dd61872d03e", deviations=[STEP_BECOMES_AN_INTEGER])
def range_of_integers_by_halves(env):
    """`jnp.arange(0.5, 3, 0.5, dtype=int)`, which NumPy counts by whole steps."""
    bounds = (0.5, 3, 0.5)
    return Observed(
        jnp.arange(*bounds, dtype=np.int32), reference=np.arange(*bounds, dtype=np.int32)
    )


NO_COUNTER_OF_TRUTH = deviation(
    "jax>=0.10",
    error="TypeError",
    match="iota does not accept dtype bool",
    reason="the range is counted in its dtype",
    issue="jax-ml/jax@3dd61872d03e",
)


@probe(source="jax-ml/jax@3dd61872d03e", deviations=[NO_COUNTER_OF_TRUTH])
def range_of_truth_by_steps(env):
    """`jnp.arange(0, 2, 1, dtype=bool)`."""
    return Observed(jnp.arange(0, 2, 1, dtype=bool), reference=np.array([False, True]))


ORDER_OF_AXES_CHECKED = deviation(
    "jax<0.10",
    error="TypeError",
    match="must be strictly increasing",
    reason="the dimensions had to be strictly increasing",
    issue="jax-ml/jax@acbcd4f17945",
)
OPERAND_IS_RETURNED = deviation(
    "jax>=0.10",
    outcome="ok",
    reason="an operand that has the shape of the result is returned as it is",
    issue="jax-ml/jax@acbcd4f17945",
)


@probe(source="jax-ml/jax@acbcd4f17945", deviations=[ORDER_OF_AXES_CHECKED, OPERAND_IS_RETURNED])
def broadcast_with_exchanged_axes(env):
    """`lax.broadcast_in_dim(x, (2, 2), (1, 0))` is the transpose of a matrix."""
    x = f32(0, 1, 2, 3).reshape(2, 2)
    return Observed(lax.broadcast_in_dim(x, (2, 2), (1, 0)), reference=x.T)


PRODUCT_UNDERFLOWS = deviation(
    "jax>=0.10",
    outcome="ok",
    reason="the logarithm of the determinant is taken, which underflows",
    issue="jax-ml/jax@812f268014cf",
)


@probe(source="jax-ml/jax@812f268014cf", deviations=[PRODUCT_UNDERFLOWS], rtol=1e-5)
def log_determinant_of_small_numbers(env):
    """`jnp.linalg.slogdet` of a 2 by 2 matrix whose determinant, 1e-60, underflows."""
    sign, logarithm = jnp.linalg.slogdet(1e-30 * np.eye(2, dtype=np.float32))
    return Observed([sign, logarithm], reference=[np.float32(1), np.float32(-60 * np.log(10))])


@probe(source="jax-ml/jax@812f268014cf", deviations=[PRODUCT_UNDERFLOWS], rtol=1e-5)
def slope_of_a_small_log_determinant(env):
    """The gradient of `slogdet` of a 2 by 2 matrix whose determinant, 1e-40, is denormal."""
    gradient = jax.grad(lambda a: jnp.linalg.slogdet(a)[1])(1e-20 * np.eye(2, dtype=np.float32))
    return Observed(replace_nan(gradient), reference=1e20 * np.eye(2, dtype=np.float32))


NUMPY_CONVERTS = deviation(
    "jax>=0.10.1",
    outcome="ok",
    reason="NumPy converts a NumPy scalar, and wraps it",
    issue="jax-ml/jax@b19a213cc422",
)


@probe(source="jax-ml/jax@b19a213cc422", deviations=[NUMPY_CONVERTS])
def conversion_of_a_numpy_scalar(env):
    """A NumPy scalar below the limits of an integer dtype; an array of it becomes the limit."""
    result = lax.convert_element_type(np.float32(-1.5), np.uint8)
    return Observed(result, reference=np.uint8(0))


NO_IMAGINARY_PART = deviation(
    "jax>=0.10.1",
    error="TypeError",
    match="must be a string or a real number",
    reason="NumPy makes the number",
    issue="jax-ml/jax@b19a213cc422",
)


@probe(source="jax-ml/jax@b19a213cc422", deviations=[NO_IMAGINARY_PART])
def real_array_of_a_complex_number(env):
    """`jnp.full(2, 1 + 2j, dtype=float32)` is an array of the real part, with a warning."""
    return Observed(jnp.full(2, 1 + 2j, dtype=np.float32), reference=f32(1, 1))


SHAPE_IS_STATIC = deviation(
    "jax>=0.9.2",
    error="ValueError",
    match="Non-hashable static arguments",
    reason="the method is jitted",
    issue="jax-ml/jax@61e5978fcd39",
)


@probe(source="jax-ml/jax@61e5978fcd39", deviations=[SHAPE_IS_STATIC])
def density_samples_of_a_list(env):
    """`gaussian_kde(...).resample(key, shape=[3])`, with a list as the shape."""
    density = jax.scipy.stats.gaussian_kde(f32(1, 2, 4))
    samples = density.resample(jax.random.key(0), shape=[3])
    return Observed(np.array(samples.shape), reference=np.array([1, 3]))


NAN_IS_THE_LAST = deviation(
    "jax<0.10",
    outcome="ok",
    reason="NaN was ranked as the greatest number",
    issue="jax-ml/jax@11ca696d5cbd",
)


@probe(source="jax-ml/jax@11ca696d5cbd", deviations=[NAN_IS_THE_LAST])
def ranks_of_nan(env):
    """`jax.scipy.stats.rankdata` of numbers with a NaN, which is NaN in SciPy."""
    ranks = jax.scipy.stats.rankdata(f32(1, np.nan, 2))
    return Observed(replace_nan(ranks), reference=f32(-777, -777, -777))


HALF_A_SLOPE = deviation(
    "jax>=0.12",
    outcome="ok",
    reason="the clip has half of the slope at its bounds",
)


@probe(source="jax-ml/jax#38317", deviations=[HALF_A_SLOPE])
def slope_of_a_uniform_distribution(env):
    """The derivative of `jax.scipy.stats.uniform.cdf` at both ends of the interval."""
    slopes = jax.vmap(jax.grad(jax.scipy.stats.uniform.cdf))(f32(0, 0.5, 1))
    return Observed(slopes, reference=f32(1, 1, 1))


MINIMUM_DID_NOT_BROADCAST = deviation(
    "jax<0.12",
    error="TypeError",
    match="select",
    reason="the rule compared the number and the array without a common shape",
)


@probe(source="jax-ml/jax#3468", deviations=[MINIMUM_DID_NOT_BROADCAST])
def series_of_a_minimum(env):
    """The Taylor series of `jnp.minimum(x, 1)` of an array, by `jet`."""
    x = f32(0.5, 2)
    value, (slope,) = jet(lambda x: jnp.minimum(x, 1.0), (x,), ([f32(1, 1)],))
    return Observed([value, slope], reference=[f32(0.5, 1), f32(1, 0)])


NO_FACTORS_OF_16_BITS = deviation(
    "jax<0.10",
    error="NotImplementedError",
    match="Unsupported dtype",
    reason="the determinant came from an LU decomposition, which LAPACK has for 32 and 64 bits",
    issue="jax-ml/jax@812f268014cf",
)


@probe(
    source="jax-ml/jax@812f268014cf",
    params=["float16", "bfloat16"],
    deviations=[NO_FACTORS_OF_16_BITS],
)
def small_determinant_of_16_bits(env, dtype):
    """`jnp.linalg.slogdet` of a 2 by 2 matrix takes 16 bits from 0.10.0 on.

    Before, it was a NotImplementedError, which larger matrices still are, or a TypeError.
    """
    sign, logarithm = jnp.linalg.slogdet(jnp.asarray([[4, 1], [1, 3]], dtype))
    value = {"sign": float(sign), "logarithm": round(float(logarithm), 1)}
    return Observed(value, {"sign": 1.0, "logarithm": round(float(np.log(11)), 1)})
