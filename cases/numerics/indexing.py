"""Indices out of bounds, duplicates, sets and searches: results where NumPy would raise.

A device cannot raise an error, so an index out of bounds reads NaN or the last element and writes
nothing, according to the mode. A change of a default here silently changes results.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit import strategies as st
from conformance.kit.endings import refusal
from conformance.kit.laws import check_same

from ._helpers import f32, nan, replace_nan

defaults(platforms=("cpu",))

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def make_vector():
    """Return 0, 1, 2, 3, 4 as float32."""
    return np.arange(5, dtype=np.float32)


@probe(source="jax-ml/jax@0b470361dac5")
def reading_out_of_bounds(env):
    """Indexing clips; `take` and `.get(mode="fill")` give NaN; -1 counts from the end."""
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

    expected = {
        "x[...]": f32(4, 0, 4),
        "take": f32(nan, nan, 4),
        "get": f32(4, 0, 4),
        "clip": f32(4, 0, 4),
        "fill": f32(nan, nan, 4),
        "filled": f32(-9, -9, 4),
        "wrap": f32(2, 3, 4),
        "along": f32(nan, nan, 4),
    }
    return Observed(replace_nan(read(make_vector())), reference=replace_nan(expected))


@probe(source="jax-ml/jax@0b470361dac5")
def filled_by_type(env):
    """`mode="fill"` reads NaN, the least signed or largest unsigned integer, or True."""
    types = ("float32", "bfloat16", "int32", "uint8", "bool")

    @jax.jit
    def read(xs):
        return {name: x.at[9].get(mode="fill").astype(jnp.float32) for name, x in xs.items()}

    result = read({name: np.zeros(3, jnp.dtype(name)) for name in types})
    expected = dict(zip(types, f32(nan, nan, -(2**31), 255, 1), strict=True))
    return Observed(replace_nan(result), reference=replace_nan(expected))


@probe(source="jax-ml/jax@0b470361dac5")
def writing_out_of_bounds(env):
    """Updates out of bounds are dropped, or clipped on request; duplicates accumulate."""

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

    expected = {
        "set": f32(0, 1, 2, 3, 9),
        "clip": f32(0, 1, 2, 3, 9),
        "add": f32(0, 3, 2, 3, 4),
        "multiply": f32(0, 9, 2, 3, 4),
        "max": f32(2, 1, 2, 3, 4),
        "power": f32(0, 1, 2, 9, 4),
    }
    return Observed(write(make_vector()), reference=expected)


@probe(source="jax-ml/jax@1e5d9a915889")
def slices_that_do_not_fit(env):
    """`dynamic_slice` moves its start so that the slice fits; negative starts are from the end."""

    @jax.jit
    def sliced(x):
        return {
            "late": lax.dynamic_slice(x, (4,), (3,)),
            "negative": lax.dynamic_slice(x, (-4,), (3,)),
            "far": lax.dynamic_slice(x, (-9,), (3,)),
            "index": lax.dynamic_index_in_dim(x, -1),
            "update": lax.dynamic_update_slice(x, f32(8, 9), (4,)),
        }

    expected = {
        "late": f32(2, 3, 4),
        "negative": f32(1, 2, 3),
        "far": f32(0, 1, 2),
        "index": f32(4),
        "update": f32(0, 1, 2, 8, 9),
    }
    return Observed(sliced(make_vector()), reference=expected)


NO_WRAP_ARGUMENT = deviation(
    "jax<0.7",
    error="TypeError",
    match="wrap_negative_indices",
    reason="the argument was added in 0.7.0",
    issue="jax-ml/jax#29434",
)


@probe(source="jax-ml/jax#29434", deviations=[NO_WRAP_ARGUMENT])
def negative_indices_unwrapped(env):
    """With `wrap_negative_indices=False`, from 0.7.0, a negative index is out of bounds."""

    @jax.jit
    def read(x):
        return x.at[np.array([-1])].get(mode="fill", wrap_negative_indices=False)

    return Observed(replace_nan(read(make_vector())), reference=replace_nan(f32(nan)))


UNSIGNED_OUT_OF_BOUNDS = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the bounds check treated every unsigned index as out of bounds",
    issue="jax-ml/jax@a192b7251553",
)


@probe(source="jax-ml/jax@a192b7251553", deviations=[UNSIGNED_OUT_OF_BOUNDS])
def unravelled_unsigned(env):
    """`unravel_index` of an unsigned 5 in a 2x3 array is (1, 2) from 0.7.2; (0, 0) before."""
    result = jax.jit(lambda i: jnp.unravel_index(i, (2, 3)))(np.uint32([5]))
    return Observed(result, reference=(np.uint32([1]), np.uint32([2])))


INTEGERS_BECAME_FLOAT32 = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="integers became float32",
    issue="jax-ml/jax@bcb4d2bae4fc",
)


@probe(source="jax-ml/jax@bcb4d2bae4fc", deviations=[INTEGERS_BECAME_FLOAT32])
def unwrapped_integers(env):
    """`unwrap` of integers returns integers from 0.7.2 on."""
    result = jax.jit(lambda x: jnp.unwrap(x, period=6))(np.int32([0, 5, 10]))
    return Observed(result, reference=np.int32([0, -1, -2]))


NEGATIVE_PACKED_AS_ZERO = deviation(
    "jax<0.6.1",
    error="LawError",
    reason="a negative number was packed as a bit that is not set",
    issue="jax-ml/jax@261141615dd3",
)


@probe(
    source="jax-ml/jax@261141615dd3",
    given={"x": st.arrays("int32", 11, elements=st.integers(-2, 2))},
    deviations=[NEGATIVE_PACKED_AS_ZERO],
)
def packed_negative_numbers(env, x):
    """`packbits` packs -1 as a bit that is set from 0.6.1 on, as in NumPy."""
    check_same(jnp.packbits(x), np.packbits(x != 0))


MASK_WAS_FLAT = deviation(
    "jax<0.8",
    error="IndexError",
    match="boolean index did not match shape",
    reason="the mask was flat, but the array was not",
    issue="jax-ml/jax@7ff86dcbe90d",
)


@probe(source="jax-ml/jax@7ff86dcbe90d", deviations=[MASK_WAS_FLAT])
def difference_of_matrices(env):
    """`setdiff1d(assume_unique=True)` of a matrix is flat from 0.8.0 on, an IndexError before."""
    matrix = np.array([[1, 2], [3, 4]])
    result = jnp.setdiff1d(matrix, np.array([2]), assume_unique=True)
    return Observed(result, reference=np.int32([1, 3, 4]))


COLUMN_STAYED_A_MATRIX = deviation(
    "jax<0.8",
    outcome="ok",
    reason="the mask, which was flat, selected rows of the column",
    issue="jax-ml/jax#32402",
)


@probe(source="jax-ml/jax#32402", deviations=[COLUMN_STAYED_A_MATRIX])
def difference_of_columns(env):
    """`setdiff1d(assume_unique=True)` of a column is flat from 0.8.0 on; before, a column."""
    result = jnp.setdiff1d(np.int32([[1], [2]]), np.int32([1]), assume_unique=True)
    return Observed(result, reference=np.int32([2]))


DIVIDED_BY_CLAMPED_COUNT = deviation(
    "jax<0.8",
    outcome="ok",
    reason="the result was -0.0, from a division by the maximum of a count and zero",
    issue="jax-ml/jax#32305",
)


@probe(source="jax-ml/jax#32305", deviations=[DIVIDED_BY_CLAMPED_COUNT])
def covariance_of_nothing(env):
    """`cov` of no observations is NaN from 0.8.0 on, and -0.0 before."""
    return Observed(replace_nan(jnp.cov(f32())), reference=replace_nan(np.float64(nan)))


ROW_TRANSPOSED_BACK = deviation(
    "jax<0.8",
    outcome="ok",
    reason="a single row was transposed back, as in NumPy before 2.2",
    issue="jax-ml/jax#32308",
)


@probe(source="jax-ml/jax#32308", deviations=[ROW_TRANSPOSED_BACK])
def covariance_of_one_row(env):
    """`cov(rowvar=False)` of a row of three is a 3x3 matrix from 0.8.0 on, a number before."""
    result = jnp.cov(f32(1, 2, 4)[None], rowvar=False)
    return Observed({"dimensions": result.ndim}, reference={"dimensions": 2})


TWO_NUMBERS_PER_ROW = deviation(
    "jax<0.8.0",
    outcome="ok",
    reason="a row was taken for a variable: the result was a 2x2 matrix",
    issue="jax-ml/jax@f36c44f66959",
)
ROWS_NOT_JOINED = deviation(
    "jax>=0.8.0",
    error="TypeError",
    match="concatenate",
    reason="one of the rows is transposed before they are joined, the other is not",
    issue="jax-ml/jax@f36c44f66959",
)


@probe(source="jax-ml/jax@f36c44f66959", deviations=[TWO_NUMBERS_PER_ROW, ROWS_NOT_JOINED])
def covariance_of_two_rows(env):
    """`cov(x, y, rowvar=False)` of rows of three is a TypeError from 0.8.0 on.

    In NumPy 2.2 or later it is a 6x6 matrix; in JAX it was silently 2x2 before.
    """
    result = jnp.cov(f32(1, 2, 4)[None], f32(5, 7, 1)[None], rowvar=False)
    return Observed(np.asarray(result).shape, reference=(6, 6))


INVERSE_KEPT_OTHER_AXES = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="along an axis, the inverse kept the other axes, as in NumPy 2.0",
    issue="jax-ml/jax@7857bd3319f0",
)


@probe(source="jax-ml/jax@7857bd3319f0", deviations=[INVERSE_KEPT_OTHER_AXES])
def shape_of_the_inverse(env):
    """`unique(axis=0, return_inverse=True)` returns an inverse of one axis from 0.4.31 on."""

    def inverses(x):
        return [jnp.unique(x, size=2, return_inverse=True, axis=axis)[1] for axis in (None, 0)]

    result = [x.shape for x in jax.eval_shape(inverses, np.array([[3, 1], [3, 1]]))]
    return Observed(result, reference=[(2, 2), (2,)])


@probe(source="jax-ml/jax@6c5ef1a40486")
def unique_values(env):
    """`unique` merges NaNs (unless `equal_nan=False`) and zeros; `size` truncates or pads."""

    @jax.jit
    def unique(x, nans):
        options = {"return_index": True, "return_counts": True}
        return {
            "nans": jnp.unique(nans, size=5),
            "nans apart": jnp.unique(nans, size=5, fill_value=-1, equal_nan=False),
            "sized": jnp.unique(x, size=4, fill_value=-1, **options),
            "cut": jnp.unique(x, size=1),
        }

    expected = {
        "nans": f32(-0.0, 1, nan, -0.0, -0.0),
        "nans apart": f32(-0.0, 1, nan, nan, -1),
        "sized": (np.int32([1, 3, -1, -1]), np.int32([1, 0, 1, 1]), np.int32([1, 2, 0, 0])),
        "cut": np.int32([1]),
    }
    result = unique(np.int32([3, 1, 3]), f32(nan, 1, nan, -0.0, 0))
    return Observed(replace_nan(result), reference=replace_nan(expected))


@probe(
    source="jax-ml/jax@2185cb1caf0c",
    given={"x": st.arrays("float32", 4), "at": st.arrays("float32", 3)},
)
def searches(env, x, at):
    """`searchsorted` is right by four methods and on both sides.

    `digitize` is right for bins in descending order.
    """
    x = np.sort(x)
    # An element of x itself is a boundary.
    at = np.append(at, x[1])
    for side in ("left", "right"):
        exact = np.searchsorted(x, at, side)
        for method in ("scan", "scan_unrolled", "sort", "compare_all"):
            check_same(jnp.searchsorted(x, at, side, method=method), exact.astype(np.int32))
    check_same(jnp.digitize(at, x[::-1]), np.digitize(at, x[::-1]).astype(np.int32))


@probe(
    source="jax-ml/jax@77af61c3120a",
    given={
        "x": st.arrays("float32", 5),
        "q": st.arrays("float32", 2, elements=st.integers(0, 12)),
        "method": st.sampled_from(METHODS),
    },
)
def quantiles(env, x, q, method):
    """`quantile` is right by each method, and NaN for NaN in the input, which `nanmedian` skips."""
    # Of five elements, at one of them or a third of the way between two. Half of the way, `nearest`
    # takes the lower element on all releases; NumPy takes the element whose index is even.
    q = q / 12
    exact = np.quantile(np.float64(x), q, method=method)
    check_same(jnp.quantile(x, q.astype(np.float32), method=method), exact, rtol=1e-5, atol=1e-5)
    with_nan = np.append(x, np.float32(nan))
    check_same(jnp.quantile(with_nan, 0.5, method=method), np.float32(nan))
    check_same(jnp.nanmedian(with_nan), np.median(np.float64(x)))


AXIS_HAD_NO_DEFAULT = deviation(
    "jax<0.7.1",
    outcome="ok",
    match="required positional argument|TypeError",
    reason="the axis had no default",
    issue="jax-ml/jax@fd38966d7793",
)


@probe(source="jax-ml/jax@fd38966d7793", deviations=[AXIS_HAD_NO_DEFAULT])
def axis_of_take_along(env):
    """`take_along_axis(x, i)` without an axis uses the last axis from 0.7.1 on."""
    x, at = np.arange(6).reshape(2, 3), np.array([[0], [1]])
    outcome = refusal(lambda: jnp.take_along_axis(x, at), "required positional argument")
    return Observed(outcome, reference="ran")


GRADIENT_LOST_IN_BITS = deviation(
    "jax<0.4.34",
    outcome="ok",
    match="gradient",
    reason="the gradient passed through the bits of the float, where it is lost",
    issue="jax-ml/jax#23923",
)
POWER_OF_TWO_OVERFLOWED = deviation(
    "jax>=0.4.34,<0.6.1",
    outcome="ok",
    match="inf against 1.26",
    reason="the power of two was a float32, which is infinite from an exponent of 128 on",
    issue="jax-ml/jax#28158",
)


@probe(source="jax-ml/jax#28158", deviations=[GRADIENT_LOST_IN_BITS, POWER_OF_TWO_OVERFLOWED])
def scaled_by_powers_of_two(env):
    """`ldexp` is right even if the power of two is no float32; `frexp` is right for zero.

    The gradient of `ldexp` is the power of two.
    """

    @jax.jit
    def scaled(x, exponent, y):
        return {
            "ldexp": jnp.ldexp(x, exponent),
            "frexp": jnp.frexp(y),
            "gradient": jax.grad(lambda z: jnp.ldexp(z, 2))(y[1]),
        }

    expected = {
        "ldexp": f32(2.0**100, 2.0**127, 0.75 * 2.0**-100),
        "frexp": (f32(0, -0.5, 0.75), np.int32([0, 4, 0])),
        "gradient": np.float64(4),
    }
    result = scaled(f32(2.0**-100, 1, 0.75), np.int32([200, 127, -100]), f32(0, -8, 0.75))
    return Observed(result, reference=expected)


AXES_PADDED_AT_ONCE = deviation(
    "jax>=0.4.36,<0.5.3",
    error="LawError",
    match="elements differ",
    reason="pad filled before and after all axes at once, not axis by axis",
    issue="jax-ml/jax#26888",
)


@probe(
    source="jax-ml/jax#26888",
    given={
        "x": st.arrays("float32", (3, 3)),
        "before": st.integers(-9, 9),
        "after": st.integers(-9, 9),
    },
    deviations=[AXES_PADDED_AT_ONCE],
)
def corners_of_a_pad(env, x, before, after):
    """`pad` with one constant before and another after: the last axis decides in a corner.

    From 0.4.36 to 0.5.2, the corner before the last axis and after the first had the other
    constant.
    """
    constants = {"constant_values": (before, after)}
    check_same(jnp.pad(x, 1, **constants), np.pad(x, 1, **constants), rtol=0)


LEAST_INTEGER_NEGATED = deviation(
    "jax<0.12",
    params=["int32", "int8"],
    outcome="ok",
    reason="the order was reversed by negation, and the least integer is its own negative",
    issue="jax-ml/jax#40338",
)
NO_NEGATION_OF_BOOL = deviation(
    "jax<0.12",
    params=["bool"],
    error="TypeError",
    match="neg does not accept dtype bool",
    reason="the order was reversed by negation, which bool has not",
    issue="jax-ml/jax#40338",
)
PARTITIONED = {
    "int32": {"numbers": (3, -2147483648, 1), "dtype": "int32"},
    "int8": {"numbers": (3, -128, 1), "dtype": "int8"},
    "bool": {"numbers": (1, 0, 1), "dtype": "bool"},
}


@probe(
    source="jax-ml/jax#40338",
    params=PARTITIONED,
    deviations=[LEAST_INTEGER_NEGATED, NO_NEGATION_OF_BOOL],
)
def partitioned_with_the_least_integer(env, numbers, dtype):
    """`partition` moves the least integer to the front from 0.12.0 on.

    Before, it was lost: [3, -128, 1] became [1, 3, 1]. For bool there was a TypeError.
    """
    x = np.array(numbers, dtype)
    result = jax.jit(lambda x: jnp.partition(x, 0))(x)
    return Observed(np.sort(result), reference=np.sort(x))


INITIAL_NOT_PASSED_ON = deviation(
    "jax>=0.4.33,<0.12",
    outcome="ok",
    match="method",
    reason="the method did not pass its initial value on",
)


@probe(source="jax-ml/jax#4975", deviations=[INITIAL_NOT_PASSED_ON])
def sum_with_an_initial_value(env):
    """`x.sum(initial=10)` adds 10; from 0.4.33 to 0.11.2, the method ignored it silently."""
    x = jnp.asarray(f32(2, 3))
    result = {
        "method": x.sum(initial=10),
        "function": jnp.sum(x, initial=10),
        "product": x.prod(initial=10),
        "maximum": x.max(initial=10),
    }
    expected = {"method": 15, "function": 15, "product": 60, "maximum": 10}
    return Observed(result, reference={name: np.float32(v) for name, v in expected.items()})


ELEMENT_OF_AN_EMPTY_ARRAY = deviation(
    "jax<0.11.2",
    error="IndexError",
    reason="the first element of the empty result was read",
)


@probe(source="jax-ml/jax@2185cb1caf0c", deviations=[ELEMENT_OF_AN_EMPTY_ARRAY])
def sets_of_no_size(env):
    """`union1d` and `setdiff1d` with `size=0` are empty from 0.11.2 on, an IndexError before."""
    x, y = f32(1, 2), f32(2)
    result = [jnp.union1d(x, y, size=0), jnp.setdiff1d(x, y, size=0)]
    return Observed(result, reference=[f32(), f32()])


MAXIMUM_OF_AN_EMPTY_ARRAY = deviation(
    "jax<0.11.2",
    error="ValueError",
    match="zero-size array",
    reason="the padding was the maximum of the empty result",
    issue="jax-ml/jax#40231",
)


@probe(
    source="jax-ml/jax#40231",
    params=["intersect1d", "setxor1d"],
    releases="jax>=0.4.33",
    deviations=[MAXIMUM_OF_AN_EMPTY_ARRAY],
)
def common_elements_of_no_size(env, name):
    """`intersect1d` and `setxor1d` with `size=0` are empty from 0.11.2 on, a ValueError before."""
    return Observed(getattr(jnp, name)(f32(1, 2), f32(2), size=0), reference=f32())


NO_RANGE_OF_NOTHING = deviation(
    "jax<0.11.2",
    error="ValueError",
    match="zero-size array",
    reason="the range was the minimum and maximum of no numbers",
)


@probe(source="jax-ml/jax@77af61c3120a", deviations=[NO_RANGE_OF_NOTHING])
def histogram_of_nothing(env):
    """`histogram` of an empty array counts zeros on [0, 1] from 0.11.2 on, as in NumPy."""
    counts, edges = jnp.histogram(f32(), bins=2)
    return Observed([counts, edges], reference=[f32(0, 0), f32(0, 0.5, 1)])


BOUND_IN_THE_INDEX_DTYPE = deviation(
    "jax<0.12",
    params=["fill", "promise_in_bounds"],
    outcome="ok",
    reason="the largest valid index was converted to the dtype of the index",
    issue="openxla/xla#48718",
)
BOUND_IN_THE_INDEX_DTYPE_IF_CLIPPED = deviation(
    "jax>=0.7.2,<0.12",
    params=["clip"],
    outcome="ok",
    reason="the largest valid index was converted to the dtype of the index",
    issue="openxla/xla#48718",
)
TWO_BOUNDS_IN_THE_INDEX_DTYPE = deviation(
    "jax<0.6",
    params=["two"],
    outcome="ok",
    reason="the largest valid index was converted to the dtype of the index",
    issue="openxla/xla#48718",
)
STARTS_IN_THE_INDEX_DTYPE = deviation(
    "jax<0.11.1",
    params=["dynamic_update_slice"],
    outcome="ok",
    reason="the largest valid start was converted to the dtype of the start",
    issue="openxla/xla#48718",
)
ROWS = lax.ScatterDimensionNumbers((), (0,), (0,))


def _add(x, mode, *indices):
    at = np.array(indices, np.uint8)[:, None]
    updates = np.full(len(indices), 1000, np.int32)
    added = jax.jit(lambda x, at, updates: lax.scatter_add(x, at, updates, ROWS, mode=mode))
    return added(x, at, updates)[200]


def _put(x):
    put = jax.jit(lambda x, start: lax.dynamic_update_slice(x, np.int32([1200]), (start,)))
    return put(x, np.uint8(200))[200]


WRITES = {
    "fill": lambda x: _add(x, "fill", 200),
    "clip": lambda x: _add(x, "clip", 200),
    "promise_in_bounds": lambda x: _add(x, "promise_in_bounds", 200),
    "two": lambda x: _add(x, "fill", 200, 201),
    "dynamic_update_slice": _put,
}


@probe(
    source="openxla/xla#48718",
    params=[*WRITES],
    deviations=[
        BOUND_IN_THE_INDEX_DTYPE,
        BOUND_IN_THE_INDEX_DTYPE_IF_CLIPPED,
        TWO_BOUNDS_IN_THE_INDEX_DTYPE,
        STARTS_IN_THE_INDEX_DTYPE,
    ],
)
def write_at_a_uint8_index(env, name):
    """A write to element 200 of 300, by a uint8 index, is silently lost in older releases.

    `lax.scatter_add` of one element is right from 0.12.0 on, of several from 0.6.0 on;
    `lax.dynamic_update_slice` from 0.11.1 on.
    """
    return Observed(WRITES[name](np.arange(300, dtype=np.int32)), reference=np.int32(1200))


ZERO_OF_THE_EARLIER_CALL = deviation(
    outcome="ok",
    reason="the fill value is static, and -0.0 equals 0.0, whose compiled function is called again",
    issue="jax-ml/jax#9273",
)


@probe(source="jax-ml/jax#9273", deviations=[ZERO_OF_THE_EARLIER_CALL])
def fill_of_negative_zero(env):
    """`jnp.take(x, i, fill_value=-0.0)` after one with 0.0 fills with 0.0, on all releases."""
    x, at = f32(1, 2), np.array([5])
    fills = (0.0, -0.0)
    results = [jnp.take(x, at, mode="fill", fill_value=fill)[0] for fill in fills]
    return Observed(np.signbit(results), reference=np.signbit(fills))


NEGATIVE_READS_THE_FIRST = deviation(
    "jax>=0.5.1,<0.11.1",
    outcome="ok",
    reason="a negative index was passed to the gather as it was",
    issue="jax-ml/jax@124e123946d0",
)


@probe(source="jax-ml/jax@124e123946d0", deviations=[NEGATIVE_READS_THE_FIRST])
def negative_index_that_is_promised(env):
    """`take_along_axis` at -1 in the mode "promise_in_bounds" reads the last element of a row."""
    x, at = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[-1], [1]])

    def take(x):
        return jnp.take_along_axis(x, at, 1, mode="promise_in_bounds")

    observed = {
        "value": jax.jit(take)(x),
        "gradient": jax.jit(jax.grad(lambda x: take(x).sum()))(x),
    }
    expected = {"value": f32(2, 4)[:, None], "gradient": np.float32([[0, 0, 1], [0, 1, 0]])}
    return Observed(observed, expected)


FILL_OF_THE_FIRST_READ = deviation(
    "jax>=0.7",
    outcome="ok",
    reason="equal parameters share a lowering, and -0.0 equals 0.0",
    issue="jax-ml/jax@618460e820ee",
)


@probe(source="jax-ml/jax@618460e820ee", deviations=[FILL_OF_THE_FIRST_READ])
def reads_with_fills_of_both_signs(env):
    """Two reads out of bounds in one program fill with 0.0 and -0.0, whose inverses differ."""
    at = np.array([5])

    def inverses(x):
        return [1 / x.at[at].get(mode="fill", fill_value=fill) for fill in (0.0, -0.0)]

    return Observed(jax.jit(inverses)(f32(1, 2)), reference=[f32(np.inf), f32(-np.inf)])
