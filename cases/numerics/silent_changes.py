"""Values that changed without an error or a warning, and refusals that came with the change."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import f32

defaults(platforms=("cpu",))

ROWS_SPLIT = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="the axis of the first call was kept for later calls",
    issue="jax-ml/jax@0320a792ba23",
)


@probe(source="jax-ml/jax@0320a792ba23", deviations=[ROWS_SPLIT])
def pieces_of_a_matrix_after_a_vector(env):
    """`jnp.hsplit` of a matrix splits its columns, also after a vector has been split."""
    jnp.hsplit(f32(1, 2), 2)
    pieces = jnp.hsplit(f32(0, 1, 2, 3, 4, 5, 6, 7).reshape(2, 4), 2)
    return Observed(pieces[0], reference=f32(0, 1, 4, 5).reshape(2, 2))


INTEGERS_NOT_PROMOTED = deviation(
    "jax>=0.4.36",
    outcome="ok",
    reason="the powers and their sum are integers of the dtype of the vector",
    issue="jax-ml/jax@aaaee63ac588",
)


@probe(source="jax-ml/jax@aaaee63ac588", deviations=[INTEGERS_NOT_PROMOTED])
def norm_of_integers(env):
    """`jnp.linalg.vector_norm` of integers is computed in floats, so that no power overflows."""
    norms = {
        "int8": jnp.linalg.vector_norm(np.int8([100, 100])),
        "uint8": jnp.linalg.vector_norm(np.uint8([200, 200])),
        "int32": jnp.linalg.vector_norm(np.int32([50000, 50000])),
        "cubes": jnp.linalg.vector_norm(np.int32([1, 2, 3]), ord=3),
        "bool": jnp.linalg.vector_norm(np.array([True, True]), ord=3),
    }
    expected = {"int8": 141.4, "uint8": 282.8, "int32": 70710.7, "cubes": 3.3, "bool": 1.3}
    return Observed({k: np.round(float(x), 1) for k, x in norms.items()}, reference=expected)


NO_POWERS_OF_INTEGERS = deviation(
    "jax>=0.4.36",
    outcome="ok",
    match="Error",
    reason="the vector is no longer promoted to floats",
    issue="jax-ml/jax@aaaee63ac588",
)
ORDERS = {"zero": 0, "half": 0.5}


@probe(source="jax-ml/jax@aaaee63ac588", params=[*ORDERS], deviations=[NO_POWERS_OF_INTEGERS])
def refused_norm_of_integers(env, name):
    """`jnp.linalg.vector_norm` of integers has the orders 0 and 0.5."""
    x = np.int32([1, 2, 3])
    words = "data type", "negative powers"
    return Observed(refusal(lambda: jnp.linalg.vector_norm(x, ord=ORDERS[name]), *words), "ran")


ROUNDED_BEFORE_THE_TEST = deviation(
    "jax>=0.4.31",
    outcome="ok",
    reason="a number is cast to the dtype of the array before its truth is tested",
    issue="jax-ml/jax@0522276d620f",
)


@probe(source="jax-ml/jax@0522276d620f", deviations=[ROUNDED_BEFORE_THE_TEST])
def truth_of_a_tiny_number(env):
    """In `jnp.logical_and` and `jnp.logical_or`, every number except 0 counts as true."""
    result = {
        "and": jnp.logical_and(np.float16([1]), 1e-9),
        "or": jnp.logical_or(np.float16([0]), 1e-9),
        "int8": jnp.logical_and(jnp.int8(1), 256),
    }
    yes = np.array([True])
    return Observed(result, reference={"and": yes, "or": yes, "int8": yes[0]})


DTYPES_NOT_COMPARED = deviation(
    "jax<0.4.31",
    outcome="ok",
    match="ran",
    reason="both arrays were converted to booleans first",
    issue="jax-ml/jax@0522276d620f",
)


@probe(source="jax-ml/jax@0522276d620f", deviations=[DTYPES_NOT_COMPARED])
def conjunction_with_float8(env):
    """`jnp.logical_and` of float8 and float32 arrays is a TypePromotionError from 0.4.31 on."""
    x = jnp.ones(1, jnp.float8_e4m3fn)
    outcome = refusal(lambda: jnp.logical_and(x, f32(1)), "no available implicit")
    return Observed(outcome, "TypePromotionError: no available implicit")


def add(x, y):
    """Return a sum."""
    return x + y


def absolute(x):
    """Return an absolute value by a branch of Python."""
    return x if x > 0 else -x


def shifted_sum(x, y, z=1):
    """Return a sum of three numbers, the last of them optional."""
    return x + y + z


UFUNC_CALLS = {
    "branch": (
        lambda: jnp.frompyfunc(absolute, 1, 1)(-2.0),
        ("TracerBoolConversionError", "boolean conversion"),
    ),
    "lists": (
        lambda: jnp.frompyfunc(add, 2, 1)([1, 2], [3, 4]),
        ("TypeError", "ndarray or scalar"),
    ),
    "two_axes": (
        lambda: jnp.frompyfunc(add, 2, 1, identity=0).reduce(f32(1, 2).reshape(1, 2), axis=(0, 1)),
        ("NotImplementedError", "tuple of axes"),
    ),
    "keyword": (
        lambda: jnp.frompyfunc(shifted_sum, 2, 1)(1.0, 2.0, z=3.0),
        ("TypeError", "keyword argument"),
    ),
}
PYTHON_RAN = deviation(
    "jax<0.4.33",
    outcome="ok",
    match="ran",
    reason="the function was called with the numbers themselves",
    issue="jax-ml/jax@a3d6cf007e99",
)


@probe(source="jax-ml/jax@a3d6cf007e99", params=[*UFUNC_CALLS], deviations=[PYTHON_RAN])
def python_function_as_a_ufunc(env, name):
    """From 0.4.33 on, a function given to `jnp.frompyfunc` is traced, with arrays alone."""
    call, (error, words) = UFUNC_CALLS[name]
    return Observed(refusal(call, words), reference=f"{error}: {words}")


DTYPE_WIDENED = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="a function of one addition was reduced by `jnp.sum`",
    issue="jax-ml/jax@a3d6cf007e99",
)


@probe(source="jax-ml/jax@a3d6cf007e99", deviations=[DTYPE_WIDENED])
def sum_by_a_python_function(env):
    """`reduce` of a ufunc from `jnp.frompyfunc` keeps the dtype, so that sums overflow."""
    ufunc = jnp.frompyfunc(lambda x, y: x + y, 2, 1)
    sums = {
        "int8": ufunc.reduce(np.int8([100, 100])),
        "float16": ufunc.reduce(np.ones(3000, np.float16)),
    }
    return Observed(sums, reference={"int8": np.int8(-56), "float16": np.float16(2048)})


ARRAY_PROMOTED = deviation(
    "jax<0.4.34",
    outcome="ok",
    reason="the array was promoted to the dtype of the number",
    issue="jax-ml/jax@3134ece9b7e3",
)


@probe(source="jax-ml/jax@3134ece9b7e3", releases="jax>=0.4.33", deviations=[ARRAY_PROMOTED])
def number_of_a_wider_dtype_at_an_index(env):
    """From 0.4.34 on, `jnp.add.at` and `jnp.multiply.at` silently keep the dtype of the array."""
    i = np.array([0, 0])
    result = {
        "float": jnp.multiply.at(jnp.ones(2, np.int32), i, 1.5, inplace=False),
        "complex": jnp.add.at(jnp.ones(2, np.float32), i, 1.5j, inplace=False),
        "int8": jnp.add.at(jnp.ones(2, np.int8), i, np.int32([300, 1]), inplace=False),
    }
    expected = {"float": np.int32([2, 1]), "complex": f32(1, 1), "int8": np.int8([46, 1])}
    return Observed(result, reference=expected)


NO_NUMBERS = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="the length was one more than the largest number",
    issue="jax-ml/jax@935991632129",
)


@probe(source="jax-ml/jax@935991632129", deviations=[NO_NUMBERS])
def count_of_negative_numbers(env):
    """`jnp.bincount` counts a negative number as 0, also if there is no other number."""
    return Observed(jnp.bincount(np.array([-3, -2])), reference=np.int32([2]))


PRODUCT_OF_ITSELF = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="it was the product of the number with itself, whose real part overflowed",
    issue="jax-ml/jax@4d0a007d5730",
)


@probe(source="jax-ml/jax@4d0a007d5730", deviations=[PRODUCT_OF_ITSELF])
def square_of_a_large_complex_number(env):
    """`jnp.square` of a complex number with equal parts has a real part of 0."""
    y = jnp.square(np.complex64([1e30 + 1e30j, 3e19 + 2e19j]))
    expected = {"real": f32(0, np.inf), "imaginary": f32(np.inf, np.inf)}
    return Observed({"real": y.real, "imaginary": y.imag}, reference=expected)
