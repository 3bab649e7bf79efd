"""Python numbers that do not fit the dtype of an array: constructors, operations, comparisons."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import describe

defaults(platforms=("cpu",))

BOTH = {"x32": {"x64": False}, "x64": {"x64": True}}
LARGE = {
    "2**31 - 1": 2**31 - 1,
    "2**31": 2**31,
    "-(2**31)": -(2**31),
    "-(2**31) - 1": -(2**31) - 1,
    "2**32": 2**32,
    "2**63 - 1": 2**63 - 1,
    "2**63": 2**63,
    "-(2**63)": -(2**63),
    "-(2**63) - 1": -(2**63) - 1,
    "2**64": 2**64,
}


def observe_calls(calls, *args):
    """Return the type and the numbers of the result of each call, or the class of its error.

    The calls are compiled as one program.

    Args:
        calls: Functions of the arguments, by name.
        args: Pytrees of arrays.
    """
    errors = {}

    def run(*args):
        results = {}
        for name, call in calls.items():
            try:
                results[name] = call(*args)
            except Exception as error:  # noqa: BLE001 - any error is an outcome
                errors[name] = type(error).__name__
        return results

    results = jax.jit(run)(*args)
    texts = {
        name: f"{describe(value)} {np.asarray(value).astype(object).ravel().tolist()}"
        for name, value in results.items()
    }
    return texts | errors


@probe(source="jax-ml/jax#6047", params=BOTH)
def array_of_large_integer(env, x64):
    """An integer that does not fit the default dtype is an OverflowError."""
    limit, name = (2**63, "i64*") if x64 else (2**31, "i32*")
    expected = {
        key: f"{name} [{number}]" if -limit <= number < limit else "OverflowError"
        for key, number in LARGE.items()
    }
    with env.compat.enable_x64(x64):
        outcomes = observe_calls({key: functools.partial(jnp.array, n) for key, n in LARGE.items()})
    return Observed(outcomes, reference=expected)


CONSTRUCTORS = {
    "array": {
        "array(300, uint8)": lambda: jnp.array(300, jnp.uint8),
        "array(-1, uint8)": lambda: jnp.array(-1, jnp.uint8),
        "array([300], uint8)": lambda: jnp.array([300], jnp.uint8),
        "array(2**31, uint32)": lambda: jnp.array(2**31, jnp.uint32),
        "array(2**40, float32)": lambda: jnp.array(2**40, jnp.float32),
        "array(1e6, float16)": lambda: jnp.array(1e6, jnp.float16),
        "array(1e10, int32)": lambda: jnp.array(1e10, jnp.int32),
        "array(2.7, int8)": lambda: jnp.array(2.7, jnp.int8),
        "array(8, int4)": lambda: jnp.array(8, jnp.int4),
        "array(True, int8)": lambda: jnp.array(True, jnp.int8),
        "asarray(300, uint8)": lambda: jnp.asarray(300, jnp.uint8),
        "full(300, uint8)": lambda: jnp.full((), 300, jnp.uint8),
        "full_like(300)": lambda: jnp.full_like(np.uint8([1]), 300),
        "arange(258, dtype=uint8)[-1]": lambda: jnp.arange(258, dtype=jnp.uint8)[-1],
        "lax.full(300, uint8)": lambda: lax.full((), 300, jnp.uint8),
    },
    "scalar": {
        "bool_(2)": lambda: jnp.bool_(2),
        "float16(1e6)": lambda: jnp.float16(1e6),
        "float32(2**40)": lambda: jnp.float32(2**40),
        "int8(2.7)": lambda: jnp.int8(2.7),
        "int8(200)": lambda: jnp.int8(200),
        "int32(2**31)": lambda: jnp.int32(2**31),
        "int32('7')": lambda: jnp.int32("7"),
        "uint8(-1)": lambda: jnp.uint8(-1),
        "uint8(np.int32(-1))": lambda: jnp.uint8(np.int32(-1)),
        "uint32(-1)": lambda: jnp.uint32(-1),
        "uint32(2**32)": lambda: jnp.uint32(2**32),
        "complex64(1)": lambda: jnp.complex64(1),
        "float32(1j)": lambda: jnp.float32(1j),
        "float8_e4m3fn(1e6)": lambda: jnp.float8_e4m3fn(1e6),
    },
}
"""Constructors of arrays and scalars, as code and as functions."""
OPERATIONS = {
    "arithmetic": {
        "uint8 + 300": lambda x: x["u8"] + 300,
        "int8 * 200": lambda x: x["i8"] * 200,
        "uint8 + 2**40": lambda x: x["u8"] + 2**40,
        "int32 + 2**31": lambda x: x["i32"] + 2**31,
        "int8 // 200": lambda x: x["i8"] // 200,
        "int8 % 200": lambda x: x["i8"] % 200,
        "int8 ** 200": lambda x: x["i8"] ** 200,
        "int8 << 9": lambda x: x["i8"] << 9,
        "abs(int8(-128))": lambda x: abs(x["i8_min"]),
    },
    "selection": {
        "at.add(300)": lambda x: x["u8"].at[0].add(300),
        "at.set(300)": lambda x: x["u8"].at[0].set(300),
        "clip(int8, 0, 200)": lambda x: jnp.clip(x["i8"], 0, 200),
        "fill": lambda x: jnp.take(x["u8"], 5, mode="fill", fill_value=300),
        "maximum(int8, 200)": lambda x: jnp.maximum(x["i8"], 200),
        "pad(constant=300)": lambda x: jnp.pad(x["u8"], 1, constant_values=300),
        "where(300)": lambda x: jnp.where(x["u8"] > 9, x["u8"], 300),
    },
}


COMPARISONS = {
    "int32_float32": (lambda x: x["i32_odd"] == x["f32_even"], False),
    "int8_below": (lambda x: x["i8"] < 200, True),
    "isin": (lambda x: jnp.isin(x["u8"], 257), False),
    "uint32_int32": (lambda x: x["u32_max"] == x["i32_minus"], False),
    "uint8_above": (lambda x: x["u8"] > -1, True),
    "uint8_equal": (lambda x: x["u8_44"] == 300, False),
}
"""Comparisons of arrays of one element, with the answer of mathematics."""
ARRAYS = {
    "u8": np.uint8([1]),
    "i8": np.int8([3]),
    "i32": np.int32([1]),
    "f16": np.float16([1]),
    "f32": np.float32([1]),
    "u32": np.uint32([1]),
    "u8_44": np.uint8([44]),
    "u32_max": np.uint32([2**32 - 1]),
    "i8_min": np.int8([-128]),
    "i32_minus": np.int32([-1]),
    "i32_odd": np.int32([2**24 + 1]),
    "f32_even": np.float32([2**24]),
}


@probe(
    source="jax-ml/jax#6047",
    params=[*CONSTRUCTORS],
    records="some constructors follow NumPy, others let a number wrap around",
)
def constructor(env, name):
    """A Python number that a dtype cannot represent: an OverflowError, or its low bits."""
    return observe_calls(CONSTRUCTORS[name])


@probe(
    source="jax-ml/jax#15626",
    params=[*OPERATIONS],
    records="NumPy refuses most of it, and jax lets a number wrap around",
)
def operation(env, name):
    """An operand that the dtype of the array cannot represent: an OverflowError, or its low bits.

    The limit 200 of a clip of int8 is -56.
    """
    return observe_calls(OPERATIONS[name], ARRAYS)


COMPARED_AFTER_A_CAST = deviation(
    outcome="ok",
    reason="the Python number takes the dtype of the array first, and wraps around",
    issue="jax-ml/jax#27021",
)


@probe(source="jax-ml/jax#27021", deviations=[COMPARED_AFTER_A_CAST])
def comparisons(env):
    """A comparison with a number that the dtype of the array cannot represent is often wrong.

    uint8(44) equals 300, which is 44 in eight bits.
    """
    calls = {name: call for name, (call, _) in COMPARISONS.items()}
    result = jax.jit(lambda x: {name: call(x) for name, call in calls.items()})(ARRAYS)
    return Observed(
        {name: np.asarray(value).item() for name, value in result.items()},
        reference={name: expected for name, (_, expected) in COMPARISONS.items()},
    )
