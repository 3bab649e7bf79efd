"""Casts between dtypes: numbers out of range, NaN, rounding, and floats of 8 bits or fewer.

NaN appears as -777 in values, because no case is about its sign or payload. A NumPy array is
converted by XLA or by NumPy, which differ out of range.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._formats import decode, list_probes, round_to
from ._helpers import get_dtype

defaults(platforms=("cpu",))


def widen(x):
    """Return numbers as float32, with -777 for NaN."""
    x = np.asarray(x).astype(np.float32)
    return np.where(np.isnan(x), np.float32(-777), x)


INTEGERS = {
    "int2": {"names": ["int2", "uint2"]},
    "int4": {"names": ["int4", "uint4"]},
    "standard": {"names": ["int8", "int16", "int32", "uint8", "uint16", "uint32"]},
}


def get_limits(name):
    """Return the least and the largest number of an integer dtype."""
    bits = int(name.lstrip("uint"))
    return (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def get_wide(name):
    """Return the integer dtype of 32 bits with the sign of a narrower one."""
    return np.uint32 if name[0] == "u" else np.int32


def load_group(env, names):
    """Return the dtypes of names."""
    return {name: get_dtype(env, name) for name in names}


def cast_each(dtypes, numbers):
    """Return arrays cast to dtypes, as integers of 32 bits, by the name of the dtype.

    Args:
        dtypes: Dtypes by name.
        numbers: Arrays by the same names.
    """
    return jax.jit(
        lambda tree: {
            name: x.astype(dtypes[name]).astype(get_wide(name)) for name, x in tree.items()
        }
    )(numbers)


@probe(source="jax-ml/jax#13101", params=INTEGERS)
def float_to_integer(env, names):
    """A float beyond an integer dtype becomes its nearest limit, NaN becomes 0."""
    dtypes, numbers, expected = load_group(env, names), {}, {}
    for name in names:
        low, high = get_limits(name)
        x = [-np.inf, -1e10, low - 1, -1.5, -0.5, 0.5, 1.75, high + 1, 1e10, np.inf, np.nan]
        numbers[name] = np.array(x, np.float32)
        exact = np.trunc(np.nan_to_num(numbers[name].astype(np.float64), nan=0))
        expected[name] = np.clip(exact, low, high).astype(get_wide(name))
    return Observed(cast_each(dtypes, numbers), reference=expected)


@probe(source="jax-ml/jax#13101", params=INTEGERS)
def integer_to_integer(env, names):
    """An integer beyond the target keeps its low bits: -1 becomes the largest unsigned number."""
    dtypes, numbers, expected = load_group(env, names), {}, {}
    for name in names:
        low, high = get_limits(name)
        x = np.array([-1, -2, low - 1, high, high + 1, 2**31 - 1, -(2**31), 300])
        numbers[name] = np.clip(x, -(2**31), 2**31 - 1).astype(np.int32)
        wrapped = (numbers[name].astype(np.int64) - low) % (high - low + 1) + low
        expected[name] = wrapped.astype(get_wide(name))
    return Observed(cast_each(dtypes, numbers), reference=expected)


@probe(source="jax-ml/jax#13101")
def to_bool(env):
    """Any number but zero is True, NaN and a fraction too."""
    numbers = {
        "float32": np.float32([0, -0.0, 0.1, -1, np.nan, np.inf]),
        "float16": np.float16([0, -0.0, 6e-8, -1, np.nan, np.inf]),
        "int8": np.int8([0, 1, -128]),
        "complex64": np.complex64([0, 1j, 1, complex(0, np.nan)]),
        "float8_e4m3fn": np.array([0, 0.5, -1], jnp.float8_e4m3fn),
        "int4": np.array([0, 1, -8], jnp.int4),
    }
    expected = {key: x.astype(np.complex64) != 0 for key, x in numbers.items()}
    result = jax.jit(lambda tree: jax.tree_util.tree_map(lambda x: x.astype(bool), tree))(numbers)
    return Observed(result, reference=expected)


@probe(source="jax-ml/jax#13101")
def complex_to_real(env):
    """A cast of complex numbers to a real dtype drops the imaginary part."""
    x = np.complex64([1.5 + 2j, -2.75 - 1j, 300])
    names = ("float32", "float16", "bfloat16", "int32")
    result = jax.jit(lambda x: [x.astype(name) for name in names])(x)
    expected = [x.real.astype(jnp.dtype(name)) for name in names]
    return Observed(result, reference=expected)


def round_bits(x, mantissa_bits):
    """Return numbers rounded to a mantissa of so many bits after the first, ties to even."""
    fraction, exponent = np.frexp(x)
    scaled = np.ldexp(fraction, mantissa_bits + 1)
    return np.ldexp(np.rint(scaled), exponent - mantissa_bits - 1)


MANTISSAS = {
    "bfloat16": {"name": "bfloat16", "bits": 7},
    "float16": {"name": "float16", "bits": 10},
}
INTEGER_BY_FLOAT32 = deviation(
    params=["bfloat16"],
    outcome="ok",
    reason="int32 is rounded to float32 first, then to bfloat16",
)
DOUBLE_BY_FLOAT32 = deviation(
    outcome="ok",
    reason="float64 is rounded to float32 first, as in ml_dtypes",
    issue="jax-ml/ml_dtypes#401",
)


@probe(source="jax-ml/ml_dtypes#401", params=MANTISSAS, rtol=0, deviations=[INTEGER_BY_FLOAT32])
def integer_to_half(env, name, bits):
    """A cast of int32 to a float of 16 bits rounds once; to bfloat16 it rounds twice."""
    top = 2**30 if name == "bfloat16" else 2**15
    tie = top >> (bits + 1)
    x = np.int32([top + tie - 1, top + tie, top + tie + 1, top + 3 * tie, 2049, -2051, 257])
    expected = round_bits(x.astype(np.float64), bits)
    return Observed(jax.jit(lambda x: x.astype(name))(x), reference=expected)


@probe(
    source="jax-ml/ml_dtypes#401",
    params=MANTISSAS,
    x64=True,
    rtol=0,
    deviations=[DOUBLE_BY_FLOAT32],
)
def double_to_half(env, name, bits):
    """A cast of float64 to a float of 16 bits rounds twice, to float32 before."""
    tie = 2.0 ** -(bits + 1)
    x = np.array([1 + tie - 2**-40, 1 + tie, 1 + tie + 2**-40, 1 + 3 * tie, 0.1, -1 / 3])
    return Observed(jax.jit(lambda x: x.astype(name))(x), reference=round_bits(x, bits))


GROUPS = {
    "float4": {"names": ["float4_e2m1fn"]},
    "float8": {
        "names": [
            "float8_e4m3b11fnuz",
            "float8_e4m3fn",
            "float8_e4m3fnuz",
            "float8_e5m2",
            "float8_e5m2fnuz",
        ]
    },
    "float8_ieee": {"names": ["float8_e3m4", "float8_e4m3"]},
}
SMALL = [
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
]


def count_wrong(x, result, expected):
    """Return how many results are not as expected, and the first of them, as text.

    Args:
        x: Arguments.
        result: Results, of any float dtype.
        expected: Expected numbers, which the dtype of the results represents.
    """
    result, expected = widen(result), widen(expected)
    wrong = np.flatnonzero(result != expected)
    if not wrong.size:
        return f"0 of {x.size} wrong"
    first = wrong[0]
    text = f"{float(x[first])!r} gives {result[first]}, not {expected[first]}"
    return f"{wrong.size} of {x.size} wrong: {text}"


@probe(source="jax-ml/jax#16965", params=GROUPS)
def decoded_patterns(env, names):
    """Every pattern of a float of 8 bits or fewer is the number that its bits state."""
    dtypes = load_group(env, names)
    expected = {name: widen(decode(name)) for name in names}
    patterns = {
        name: np.arange(expected[name].size, dtype=np.uint8).view(dtypes[name]) for name in names
    }
    cast = jax.jit(lambda tree: {name: x.astype(np.float32) for name, x in tree.items()})
    result = {name: widen(x) for name, x in cast(patterns).items()}
    return Observed(result, reference=expected)


@probe(source="openxla/xla#19096")
def decoded_scales(env):
    """A pattern of float8_e8m0fnu is a power of two, the last one NaN; powers are cast exactly."""
    dtype, numbers = get_dtype(env, "float8_e8m0fnu"), decode("float8_e8m0fnu")[1:]
    x = np.arange(1, 256, dtype=np.uint8).view(dtype)
    result = jax.jit(lambda x, y: (x.astype(np.float32), y.astype(dtype)))(x, widen(numbers[:-1]))
    return Observed([widen(part) for part in result], [widen(numbers), widen(numbers[:-1])])


ROUNDED_TWICE = deviation(
    "jax<0.8",
    params=["float4_e2m1fn", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e5m2"],
    outcome="ok",
    match="float32",
    reason="XLA converted float32 by way of float16, so it rounded twice",
    issue="openxla/xla#17324",
)
ROUNDED_TWICE_AT_FIRST = deviation(
    "jax<0.5",
    params=["float8_e3m4", "float8_e4m3"],
    outcome="ok",
    match="float32",
    reason="XLA converted float32 by way of float16, so it rounded twice",
    issue="openxla/xla#17324",
)
NOT_KNOWN_TO_XLA = deviation(
    "jax==0.10.2",
    params=["float6_e2m3fn", "float6_e3m2fn"],
    error="JaxRuntimeError",
    match="Invalid XLA PrimitiveType",
    reason="jax had the dtypes before its XLA could return them",
    issue="jax-ml/jax@b32e191e22ee",
)
OVERFLOW_TO_ZERO = deviation(
    "jax>=0.11",
    params=["float6_e2m3fn", "float6_e3m2fn"],
    outcome="ok",
    match="gives 0.0",
    reason="numbers beyond the largest become 0, where ml_dtypes saturates",
    issue="jax-ml/jax@b32e191e22ee",
)


@probe(
    source="openxla/xla#17324",
    params=SMALL,
    deviations=[ROUNDED_TWICE, ROUNDED_TWICE_AT_FIRST, NOT_KNOWN_TO_XLA, OVERFLOW_TO_ZERO],
)
def rounding_to_small_float(env, name):
    """A cast to a float of 8 bits or fewer rounds once, to nearest, ties to even.

    The arguments are all numbers of the target, all midpoints, and numbers close to midpoints. Up
    to 0.7.2 a fourth of the latter is wrong from float32.
    """
    dtype = get_dtype(env, name)
    numbers = {
        source: list_probes(name).astype(jnp.dtype(source))
        for source in ("float32", "float16", "bfloat16")
    }
    cast = jax.jit(lambda tree: {source: x.astype(dtype) for source, x in tree.items()})
    outcomes = {
        source: count_wrong(numbers[source], x, round_to(name, numbers[source].astype(np.float64)))
        for source, x in cast(numbers).items()
    }
    return Observed(outcomes, {key: f"0 of {x.size} wrong" for key, x in numbers.items()})


NOT_ROUNDED = deviation(
    "jax<0.4.33",
    params=["float8"],
    outcome="ok",
    reason="XLA dropped a cast to float8 and back",
)
NAN_FOR_ZERO_AND_BACK = deviation(
    "jax==0.4.33",
    params=["float8"],
    outcome="ok",
    match="float8_e4m3b11fnuz",
    reason="a negative number that rounds to zero became NaN, the pattern of -0",
)


@probe(source="jax-ml/jax#6283", params=GROUPS, deviations=[NOT_ROUNDED, NAN_FOR_ZERO_AND_BACK])
def cast_and_back(env, names):
    """A cast of float32 to a small float and back, in one program, rounds, from 0.4.33 on."""
    dtypes = load_group(env, names)
    numbers = {name: list_probes(name).astype(jnp.bfloat16).astype(np.float32) for name in names}
    cast = jax.jit(
        lambda tree: {name: x.astype(dtypes[name]).astype(np.float32) for name, x in tree.items()}
    )
    outcomes = {
        name: count_wrong(numbers[name], x, round_to(name, numbers[name].astype(np.float64)))
        for name, x in cast(numbers).items()
    }
    return Observed(outcomes, {name: f"0 of {x.size} wrong" for name, x in numbers.items()})


NOT_COMPILED = deviation(
    "jax>=0.10.2",
    error="JaxRuntimeError",
    match="Failed to translate module to LLVM|failed to legalize operation",
    reason="XLA's CPU back end cannot compile it for floats of 6 bits",
    issue="jax-ml/jax@b32e191e22ee",
)


@probe(source="jax-ml/jax@b32e191e22ee", releases="jax>=0.10.2", deviations=[NOT_COMPILED])
def decoded_float6(env):
    """A cast of float6_e2m3fn to float32 does not compile for a CPU."""
    expected = decode("float6_e2m3fn")
    x = np.arange(expected.size, dtype=np.uint8).view(get_dtype(env, "float6_e2m3fn"))
    return Observed(jax.jit(lambda x: x.astype(np.float32))(x), expected.astype(np.float32))


NAN_FOR_ZERO = deviation(
    "jax<0.4.34",
    params=["float8"],
    outcome="ok",
    match="float8_e4m3b11fnuz",
    reason="a negative number that rounds to zero became NaN, the pattern of -0",
)


@probe(source="jax-ml/jax#16705", params=GROUPS, deviations=[NAN_FOR_ZERO])
def product_of_small_floats(env, names):
    """A product of two small floats is the exact one, rounded once."""
    dtypes, exact, operands = load_group(env, names), {}, {}
    for name in names:
        x = decode(name)
        x = x[np.isfinite(x)][:: 1 + x.size // 20]
        a, b = (part.ravel() for part in np.meshgrid(x, x))
        operands[name] = (a.astype(dtypes[name]), b.astype(dtypes[name]))
        exact[name] = (a, a * b)
    multiply = jax.jit(lambda tree: {name: a * b for name, (a, b) in tree.items()})
    outcomes = {
        name: count_wrong(exact[name][0], value, round_to(name, exact[name][1]))
        for name, value in multiply(operands).items()
    }
    return Observed(outcomes, {key: f"0 of {a.size} wrong" for key, (a, _) in exact.items()})


WRAPPED_IN_ONE_RELEASE = deviation(
    "jax>=0.7.2,<0.8",
    outcome="ok",
    reason="NumPy converts the array: out of range, it wraps or gives the least integer",
    issue="jax-ml/jax@b43662fe28d1",
)
WRAPPED = deviation(
    "jax>=0.11",
    outcome="ok",
    reason="NumPy converts the array again",
    issue="jax-ml/jax@f7337b26486d",
)
OUT_OF_RANGE = {
    "negative": {"value": -1.0, "dtype": "uint8", "limit": 0},
    "too_large": {"value": 300.0, "dtype": "uint8", "limit": 255},
    "infinite": {"value": 1e39, "dtype": "int32", "limit": 2147483647},
}


@probe(
    source="jax-ml/jax@f7337b26486d",
    params=OUT_OF_RANGE,
    deviations=[WRAPPED_IN_ONE_RELEASE, WRAPPED],
)
def conversion_out_of_range(env, value, dtype, limit):
    """A float of a NumPy array that the integer dtype cannot hold becomes its nearest number."""
    with np.errstate(over="ignore", invalid="ignore"):
        result = lax.convert_element_type(np.float32([value, 7]), np.dtype(dtype))
    return Observed(result, reference=np.array([limit, 7], dtype))


TWICE = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the array was converted to float32 before",
    issue="jax-ml/jax@b43662fe28d1",
)
TWICE_AGAIN = deviation(
    "jax>=0.8,<0.11",
    outcome="ok",
    reason="the array is converted to float32 before",
    issue="jax-ml/jax@6a3f1e3c7b91",
)
OF_64_BITS = {
    "integer": {"value": 16777217.0, "dtype": "int32"},
    "half": {"value": 1.0004882812509095, "dtype": "float16"},
    "boolean": {"value": 1e-50, "dtype": "bool"},
}


@probe(
    source="jax-ml/jax@f7337b26486d",
    params=OF_64_BITS,
    rtol=0,
    deviations=[TWICE, TWICE_AGAIN],
)
def conversion_of_double_precision(env, value, dtype):
    """A float64 of a NumPy array is rounded once, without x64, too."""
    x = np.float64([value, 3])
    result = lax.convert_element_type(x, np.dtype(dtype))
    return Observed(result, reference=x.astype(dtype))
