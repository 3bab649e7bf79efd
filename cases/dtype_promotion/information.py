"""Dtypes themselves: limits, kinds, casts, the dtypes that a call may ask for, and refusals."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._formats import FORMATS, decode
from ._helpers import ALL, describe, find_kind, get_dtype, render_table

defaults(platforms=("cpu",))

FLOAT8 = [
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
]
SMALL = {
    "float4": {"names": ["float4_e2m1fn"]},
    "float6": {"names": ["float6_e2m3fn", "float6_e3m2fn"]},
    "float8": {"names": FLOAT8},
    "float8_ieee": {"names": ["float8_e3m4", "float8_e4m3"]},
    "float8_scale": {"names": ["float8_e8m0fnu"]},
}


@probe(source="jax-ml/jax#16705", params=SMALL)
def finfo(env, names):
    """The limits of a float of 8 bits or fewer are those of its format."""
    result, expected = {}, {}
    for name in names:
        info = jnp.finfo(get_dtype(env, name))
        numbers = decode(name)
        finite = np.sort(numbers[np.isfinite(numbers)])
        exponent, mantissa, bias, kind = FORMATS[name]
        fields = {
            "bits": np.log2(numbers.size),
            "max": finite[-1],
            "min": finite[0],
            "eps": finite[finite > 1][0] - 1,
            "smallest_subnormal": finite[finite > 0][0],
            "smallest_normal": 2.0 ** (0 - bias if kind == "scale" else 1 - bias),
            "nmant": mantissa,
            "nexp": exponent,
        }
        result[name] = {field: float(getattr(info, field)) for field in fields}
        expected[name] = {field: float(value) for field, value in fields.items()}
    return Observed(result, reference=expected)


INTEGERS = {
    "int1": {"names": ["int1", "uint1"]},
    "int2": {"names": ["int2", "uint2"]},
    "int4": {"names": ["int4", "uint4"]},
    "standard": {"names": ["int8", "uint8", "int32", "uint32", "int64", "uint64"]},
}


@probe(source="jax-ml/jax#16705", params=INTEGERS)
def iinfo(env, names):
    """The limits of an integer dtype are those of its number of bits."""
    result, expected = {}, {}
    for name in names:
        info, bits = jnp.iinfo(get_dtype(env, name)), int(name.lstrip("uint"))
        low, high = (
            (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        result[name] = f"{info.bits} bits, {info.min} to {info.max}"
        expected[name] = f"{bits} bits, {low} to {high}"
    return Observed(result, reference=expected)


CLASSES = (
    "integer",
    "signedinteger",
    "unsignedinteger",
    "floating",
    "complexfloating",
    "inexact",
    "number",
    "generic",
)
LATER = ["float4_e2m1fn", "float8_e8m0fnu", "int1", "int2"]


def find_classes(name):
    """Return the abstract classes of a dtype."""
    sign = "unsignedinteger" if name[0] == "u" else "signedinteger"
    kinds = {0: (), 1: ("integer", sign), 2: ("floating", "inexact")}
    own = kinds.get(find_kind(name), ("complexfloating", "inexact"))
    return {"generic", *own, *(["number"] if own else [])}


def observe_classes(names):
    """Return the table of `issubdtype` for dtypes, and what is expected."""
    rows = [
        render_table(names, CLASSES, cell)
        for cell in (
            lambda a, b: "yes" if jnp.issubdtype(jnp.dtype(a), getattr(jnp, b)) else "no",
            lambda a, b: "yes" if b in find_classes(a) else "no",
        )
    ]
    return Observed(rows[0], reference=rows[1])


@probe(source="jax-ml/jax#16705")
def issubdtype(env):
    """Small floats and integers are of the abstract classes of their kind."""
    return observe_classes([*ALL, *FLOAT8, "int4", "uint4"])


@probe(source="jax-ml/jax#16705", params=LATER)
def issubdtype_of_later(env, name):
    """The same for dtypes that jax did not have in 0.4.30."""
    return observe_classes([get_dtype(env, name).name])


@probe(source="jax-ml/jax#16705")
def can_cast(env):
    """`can_cast` of each pair of dtypes is that of NumPy."""
    names = [name for name in ALL if name != "bfloat16"]
    rules = ("safe", "same_kind", "unsafe")

    def find(source, target, can_cast):
        return "".join("ny"[can_cast(source, target, rule)] for rule in rules)

    tables = [
        render_table(names, names, lambda a, b: find(a, b, module.can_cast)) for module in (jnp, np)
    ]
    return Observed(tables[0], reference=tables[1])


REQUESTS = {
    "None": None,
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "'bfloat16'": "bfloat16",
    "'complex128'": "complex128",
    "'f8'": "f8",
    "'float64'": "float64",
    "'float8_e4m3fn'": "float8_e4m3fn",
    "'int4'": "int4",
    "'int64'": "int64",
    "'long'": "long",
    "jnp.float64": jnp.float64,
    "jnp.float_": jnp.float_,
    "jnp.int_": jnp.int_,
    "np.dtype(float)": np.dtype(float),
    "np.intp": np.intp,
    "np.uint64": np.uint64,
    "1.0": 1.0,
    "[1.0]": [1.0],
    "'V4'": "V4",
    "'datetime64[s]'": "datetime64[s]",
    "'i4,f4'": "i4,f4",
    "'unknown'": "unknown",
    "np.array": np.float32([1]),
    "np.float32(1)": np.float32(1),
    "np.longdouble": np.longdouble,
    "object": object,
    "str": str,
}
"""Values that a caller may pass as a dtype."""


def observe_dtype(call):
    """Return the dtype of a result and the first warning, or the class of the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = describe(call())
        except Exception as error:  # noqa: BLE001 - any error is an outcome
            return type(error).__name__
    return f"{text}, {caught[0].category.__name__}" if caught else text


@probe(
    source="jax-ml/jax@9d5932a19083",
    params={"x32": {"x64": False}, "x64": {"x64": True}},
    records="the documentation does not list what a dtype may be",
)
def requested_dtypes(env, x64):
    """The dtype of `jnp.zeros` for each spelling of a dtype, its warning, or its error."""
    with env.compat.enable_x64(x64):
        calls = {
            name: lambda v=value: jax.eval_shape(lambda: jnp.zeros((), v))
            for name, value in REQUESTS.items()
        }
        return {name: observe_dtype(call) for name, call in calls.items()}


DEPRECATED = deviation(
    "jax<0.8",
    outcome="ok",
    reason="an array in place of a dtype was deprecated, but accepted",
    issue="jax-ml/jax@3e98d52851df",
)


@probe(source="jax-ml/jax@3e98d52851df", deviations=[DEPRECATED])
def array_as_a_dtype(env):
    """A JAX array in place of a dtype is a ValueError from 0.8.0 on."""
    x = jnp.float32([1])
    calls = {
        "array": lambda: jnp.array([1], x),
        "astype": lambda: jnp.asarray([1]).astype(x),
        "zeros": lambda: jnp.zeros(1, x),
    }
    outcomes = {name: observe_dtype(lambda: jax.eval_shape(call)) for name, call in calls.items()}
    return Observed(outcomes, reference=dict.fromkeys(calls, "ValueError"))


@probe(
    source="jax-ml/jax#8834",
    params=["32", "64"],
    releases="jax<0.9",
    records="the option was experimental, and has no effect from 0.9.0 on",
)
def default_dtype_bits(env, bits):
    """The dtypes of results under the option `jax_default_dtype_bits`, with x64."""
    calls = {
        "arange": lambda: jnp.arange(3),
        "asarray of float": lambda: jnp.asarray(1.0),
        "ones of float": lambda: jnp.ones(1, float),
        "ones of int": lambda: jnp.ones(1, int),
        "sin of int8": lambda: jnp.sin(np.int8([1])),
        "zeros": lambda: jnp.zeros(1),
    }
    with env.compat.enable_x64():
        jax.config.update("jax_default_dtype_bits", bits)
        result = {name: describe(jax.eval_shape(call)) for name, call in calls.items()}
        jax.config.update("jax_default_dtype_bits", "64")
    return result


EXPLICIT = {
    "arange(3, dtype='int64')": lambda: jnp.arange(3, dtype="int64"),
    "array([1], int64)": lambda: jnp.array([1], np.int64),
    "asarray(1.0)": lambda: jnp.asarray(1.0),
    "asarray(float64)": lambda: jnp.asarray(np.ones(1)),
    "astype('int64')": lambda: jnp.ones(1).astype("int64"),
    "float64 + float32": lambda: jnp.zeros(1, "float64") + jnp.float32(1),
    "float64(1)": lambda: jnp.float64(1),
    "zeros(float)": lambda: jnp.zeros(1, float),
    "zeros('float64')": lambda: jnp.zeros(1, "float64"),
}


@probe(
    source="jax-ml/jax@9b6df1dce451",
    params=["warn", "error", "allow"],
    releases="jax>=0.8",
    records="the option decides what a request for 64 bits gives without x64",
)
def explicit_x64_dtypes(env, mode):
    """Results of requests for 64 bits under the option `jax_explicit_x64_dtypes`."""
    jax.config.update("jax_explicit_x64_dtypes", mode)
    outcomes = {
        name: observe_dtype(lambda: jax.eval_shape(call)) for name, call in EXPLICIT.items()
    }
    jax.config.update("jax_explicit_x64_dtypes", "warn")
    return outcomes


VECTORS = {
    "b": np.array([True, False]),
    "f": np.float32([1, 2]),
    "i": np.int32([0, 1]),
}


def trace(call):
    """Trace a function of the vectors `b`, `f` and `i`, of bool, float32 and int32."""
    jax.eval_shape(lambda vectors: call(SimpleNamespace(**vectors)), VECTORS)


MIXED = {
    "add": lambda v: lax.add(v.i, v.f),
    "add_scalar": lambda v: lax.add(v.i, 1.5),
    "eq": lambda v: lax.eq(v.f, v.i),
    "mul": lambda v: lax.mul(v.f, v.f.astype("float16")),
    "shift_left": lambda v: lax.shift_left(v.i, v.i.astype("uint32")),
}


OPERANDS_NOT_CHECKED = deviation(
    "jax<0.4.38",
    outcome="ok",
    reason="traced without an error; the program failed when it was compiled",
    issue="jax-ml/jax@65d2ca632cbe",
)


@probe(source="jax-ml/jax@65d2ca632cbe", deviations=[OPERANDS_NOT_CHECKED])
def lax_of_two_dtypes(env):
    """`jax.lax` does not promote: an operation of two dtypes is a TypeError when it is traced."""
    outcomes = {name: refusal(lambda: trace(call), "same dtypes") for name, call in MIXED.items()}
    return Observed(outcomes, reference=dict.fromkeys(MIXED, "TypeError: same dtypes"))


REFUSED = {
    "and_of_float": lambda v: lax.bitwise_and(v.f, v.f),
    "argmax_to_float": lambda v: lax.argmax(v.f, 0, "float32"),
    "bitcast_of_bool": lambda v: lax.bitcast_convert_type(v.b, "int8"),
    "clamp": lambda v: lax.clamp(v.i, v.f, v.i),
    "complex_of_float16": lambda v: lax.complex(v.f.astype("float16"), v.f.astype("float16")),
    "concatenate": lambda v: lax.concatenate([v.f, v.i], 0),
    "cond": lambda v: lax.cond(v.b[0], lambda: v.f, lambda: v.i),
    "cumsum_of_bool": lambda v: lax.cumsum(v.b),
    "dynamic_update_slice": lambda v: lax.dynamic_update_slice(v.f, v.i, (0,)),
    "fori_loop": lambda v: lax.fori_loop(0, 2, lambda _, c: c * 1.5, v.i),
    "grad_of_integers": lambda v: jax.grad(lambda x: (x * 2.0).sum())(v.i),
    "grad_to_integers": lambda v: jax.grad(lambda x: x.astype(int).sum())(v.f),
    "imag_of_float": lambda v: lax.imag(v.f),
    "index_of_float": lambda v: v.f[v.f],
    "less_of_complex": lambda v: lax.lt(v.f + 1j, v.f + 1j),
    "neg_of_bool": lambda v: lax.neg(v.b),
    "nextafter": lambda v: lax.nextafter(v.f, v.i),
    "not_of_float": lambda v: lax.bitwise_not(v.f),
    "pad": lambda v: lax.pad(v.f, v.i[0], [(1, 1, 0)]),
    "population_count_of_float": lambda v: lax.population_count(v.f),
    "pow_of_integers": lambda v: lax.pow(v.i, v.i),
    "rem_of_bool": lambda v: lax.rem(v.b, v.b),
    "round_of_integers": lambda v: lax.round(v.i),
    "scan": lambda v: lax.scan(lambda c, _: (c + v.f, None), v.i, None, 2),
    "select": lambda v: lax.select(v.b, v.f, v.i),
    "sin_of_integers": lambda v: lax.sin(v.i),
    "while_loop": lambda v: lax.while_loop(lambda _: True, lambda c: c + v.f, v.i),
}


@probe(source="jax-ml/jax@65d2ca632cbe")
def lax_refusals(env):
    """`jax.lax` refuses dtypes that an operation does not support, and dtypes that do not match."""
    outcomes = {name: refusal(lambda: trace(call)) for name, call in REFUSED.items()}
    return Observed(outcomes, reference=dict.fromkeys(REFUSED, "TypeError: "))


FORMATTED_AS_TEXT = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="a scalar of ml_dtypes, which came before 0.6, was formatted as a text",
    issue="jax-ml/ml_dtypes#387",
)
FORMATS_OF_NUMBERS = {"bfloat16": ".1f", "float8_e4m3fn": ".2e", "int4": "03d"}


@probe(
    source="jax-ml/ml_dtypes#387",
    params=[*FORMATS_OF_NUMBERS],
    deviations=[FORMATTED_AS_TEXT],
)
def formatted_number(env, name):
    """A number in an f-string with a format is formatted as the number of Python is."""
    x, code, found = jnp.array(3, getattr(jnp, name)), FORMATS_OF_NUMBERS[name], []
    outcome = refusal(lambda: found.append(f"{x:{code}}"))
    number = 3 if name == "int4" else 3.0
    return Observed(found[0] if found else outcome, f"{number:{code}}")
