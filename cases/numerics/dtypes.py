"""Dtypes of results: promotion, defaults, and values of 64 bits while x64 is off."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import f32, inf, nan, replace_nan

defaults(platforms=("cpu",))

NAMES = ("bool", "int8", "uint8", "int32", "uint32", "bfloat16", "float16", "float32", "complex64")


def find_sum_types(names):
    """Return the dtype of the sum of each pair of dtypes: `{"int8 int32": "int32"}`.

    Args:
        names: Names of the dtypes.
    """
    ones = {name: jax.ShapeDtypeStruct((1,), jnp.dtype(name)) for name in names}
    result = jax.eval_shape(lambda x: {f"{a} {b}": x[a] + x[b] for a in x for b in x}, ones)
    return {pair: value.dtype.name for pair, value in result.items()}


PROMOTED_TO_64_BITS = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="promote_types returned the type that 64 bits would need",
    issue="jax-ml/jax@fbc29f5add4e",
)


@probe(source="jax-ml/jax@fbc29f5add4e", deviations=[PROMOTED_TO_64_BITS])
def promote_types(env):
    """Without x64, `promote_types` of int32 and uint32 is int32 from 0.7.2 on, as in sums."""
    result = {a: [jnp.promote_types(a, b).name for b in NAMES] for a in NAMES}
    types = find_sum_types(NAMES)
    return Observed(result, reference={a: [types[f"{a} {b}"] for b in NAMES] for a in NAMES})


@probe(source="jax-ml/jax@fbc29f5add4e")
def table_of_sums(env):
    """Sums of two dtypes follow jax's type promotion lattice, of which this is a part."""
    expected = {
        "int8 uint8": "int16",
        "int32 uint32": "int32",
        "int32 float16": "float16",
        "uint32 bfloat16": "bfloat16",
        "float16 bfloat16": "float32",
        "bool int8": "int8",
        "float32 complex64": "complex64",
        "int32 bfloat16": "bfloat16",
    }
    result = find_sum_types(NAMES)
    return Observed({pair: result[pair] for pair in expected}, reference=expected)


@probe(source="jax-ml/jax@fbc29f5add4e")
def python_numbers_are_weak(env):
    """A Python number has a weak dtype; a NumPy scalar promotes like an array."""

    @jax.jit
    def sums(half, uint8, int8, int32):
        return {
            "bfloat16 + 2.0": half + 2.0,
            "bfloat16 + np.float32": half + np.float32(2),
            "uint8 + 300": uint8 + 300,
            "uint8 - 4": uint8 - 4,
            "int8 * 1.5": int8 * 1.5,
            "int32 + 1j": int32 + 1j,
        }

    expected = {
        "bfloat16 + 2.0": ("bfloat16", 3.0),
        "bfloat16 + np.float32": ("float32", 3.0),
        "uint8 + 300": ("uint8", 47),
        "uint8 - 4": ("uint8", 255),
        "int8 * 1.5": ("float32", 3.0),
        "int32 + 1j": ("complex64", 2 + 1j),
    }
    result = sums(jnp.bfloat16(1), np.uint8(3), np.int8(2), np.int32(2))
    described = {
        name: (value.dtype.name, np.asarray(value).item()) for name, value in result.items()
    }
    return Observed(described, reference=expected)


INT4_NOT_AN_INTEGER = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="sin did not accept int4 as an integer dtype",
    issue="jax-ml/jax@ae2995991c19",
)


@probe(source="jax-ml/jax@ae2995991c19", deviations=[INT4_NOT_AN_INTEGER])
def floats_of_four_bits(env):
    """`sin` of an int4 is float32 from 0.8.1 on, as for any integer; before, it is a TypeError."""
    outcome = refusal(lambda: jnp.sin(jnp.array([3], jnp.int4)), "does not accept dtype int4")
    return Observed(outcome, reference="ran")


INT4_FOR_STORAGE_ONLY = deviation(
    "jax<0.4.36",
    error="XlaRuntimeError",
    match="s4 is currently only supported in",
    reason="int4 was supported for storage only",
    issue="jax-ml/jax#19682",
)


@probe(source="jax-ml/jax#19682", deviations=[INT4_FOR_STORAGE_ONLY])
def arithmetic_of_four_bits(env):
    """int4 wraps around at 8 in sums and casts; arithmetic on a CPU works from 0.4.36 on."""

    @jax.jit
    def four_bits(cast, seven, two):
        total = seven.astype(jnp.int4) + two.astype(jnp.int4)
        return {"cast": cast.astype(jnp.int4).astype(jnp.int32), "sum": total.astype(jnp.int32)}

    result = four_bits(np.int32([7, 8, -9, 15]), np.int32([7]), np.int32([2]))
    return Observed(result, reference={"cast": np.int32([7, -8, 7, -1]), "sum": np.int32([-7])})


LARGEST_WAS_INFINITE = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="numbers were compared with an infinity of the dtype, which is its largest number",
    issue="jax-ml/jax@c099e8081dd2",
)


@probe(
    source="jax-ml/jax@c099e8081dd2",
    releases="jax>=0.5.3",
    params=["isinf", "isposinf", "isneginf"],
    deviations=[LARGEST_WAS_INFINITE],
)
def infinities_of_four_bits(env, name):
    """`jnp.isinf` of the largest float4_e2m1fn, 6, is False; up to 0.11.0 it is silently True."""
    numbers = jnp.array([-6.0, 1.0, 6.0], jnp.float4_e2m1fn)
    return Observed(getattr(jnp, name)(numbers), reference=np.zeros(3, bool))


TRANSPOSED_FOUR_BITS = """
import jax
import jax.numpy as jnp
import numpy as np

x = np.arange(64).reshape(8, 8) % 16 - 8
call = jax.jit(lambda x, y: (x + 1, y.T))
results = [np.asarray(call(x[0], x.astype(jnp.int4))[1]) for _ in range(50)]
print(all((np.int8(result) == x.T).all() for result in results))
"""
INT4_REFUSED_BY_THE_COMPILER = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="int4 was supported for storage only",
    issue="jax-ml/jax#19682",
)
TRANSPOSED_OUTSIDE_ITS_BUFFER = deviation(
    "jax>=0.4.36,<0.8.1",
    outcome="ok",
    reason="a transposed result of four bits, not the only one, was unpacked outside of its buffer",
)
TRANSPOSED_WITH_WRONG_STRIDES = deviation(
    "jax==0.8.1",
    outcome="ok",
    reason="the same fault, detected: the message has a number from memory that was never set",
)


@probe(
    source="jax-ml/jax#19682",
    deviations=[
        INT4_REFUSED_BY_THE_COMPILER,
        TRANSPOSED_OUTSIDE_ITS_BUFFER,
        TRANSPOSED_WITH_WRONG_STRIDES,
    ],
)
def transposed_four_bits(env):
    """A transposed int4 array, one of several results of `jit`, is right from 0.8.2 on.

    Before, it was written outside of its buffer: the process is ended by one signal or another, or
    the numbers are wrong. So it runs in a process of its own.
    """
    command = [sys.executable, "-c", TRANSPOSED_FOUR_BITS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    refusals = ("s4 is currently only supported in", "must have equal sizes")
    if ended.returncode == 0 and ended.stdout.strip() == "True":
        observed = "right"
    else:
        found = (text for text in refusals if text in ended.stderr and ended.returncode > 0)
        observed = next(found, "memory outside of the buffer")
    return Observed(observed, reference="right")


@probe(source="jax-ml/jax@d203926c16a9")
def eight_bit_floats(env):
    """Casts to the two common float8 dtypes round to even, and overflow to NaN or infinity.

    e4m3fn has no infinity, so it gives NaN; e5m2 has infinities.
    """
    expected = {
        "float8_e4m3fn": f32(0.1015625, 1, 16, 20, 448, 448, nan, nan, nan, nan),
        "float8_e5m2": f32(0.09375, 1, 16, 20, 448, 448, 512, inf, inf, nan),
    }
    x = f32(0.1, 1.0625, 17, 19, 448, 464, 480, 1e9, inf, nan)
    result = jax.jit(lambda x: {name: x.astype(name) for name in expected})(x)
    # Widen outside the program: some compilers drop both casts inside a single program.
    widened = {name: np.asarray(value).astype(np.float32) for name, value in result.items()}
    return Observed(replace_nan(widened), reference=replace_nan(expected))


@probe(source="jax-ml/jax#13101")
def casts_out_of_range(env):
    """Floats beyond an integer type saturate, NaN is 0; wide integers keep their low bits."""

    @jax.jit
    def cast(x, wide):
        result = {name: x.astype(name) for name in ("int32", "uint32", "bool")}
        return {**result, "int8 of int32": wide.astype(jnp.int8)}

    top = 2**31 - 1
    expected = {
        "int32": np.int32([top, -top - 1, top, 0, -1, 255]),
        "uint32": np.uint32([3000000000, 0, 2**32 - 1, 0, 0, 255]),
        "bool": np.ones(6, bool),
        "int8 of int32": np.int8([-128, 127, 44]),
    }
    result = cast(f32(3e9, -3e9, inf, nan, -1.5, 255.9), np.int32([128, -129, 300]))
    return Observed(result, reference=expected)


@probe(source="jax-ml/jax#6269")
def integers_that_do_not_fit(env):
    """A Python integer that does not fit a dtype is an OverflowError, not another number."""
    outcomes = {
        "default": refusal(lambda: jnp.array(2**40), "too large"),
        "uint8": refusal(lambda: jnp.array(256, jnp.uint8), "out of bounds"),
        "negative": refusal(lambda: jnp.array(-1, jnp.uint8), "out of bounds"),
        "operand": refusal(lambda: jnp.int32([3]) + 2**40, "overflow"),
    }
    expected = {
        "default": "OverflowError: too large",
        "uint8": "OverflowError: out of bounds",
        "negative": "OverflowError: out of bounds",
        "operand": "OverflowError: overflow",
    }
    return Observed(outcomes, reference=expected)


INTEGERS_BECAME_FLOAT32 = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="integers and booleans became float32",
    issue="jax-ml/jax#21441",
)


@probe(source="jax-ml/jax#21441", deviations=[INTEGERS_BECAME_FLOAT32])
def rounding_of_integers(env):
    """`ceil`, `floor` and `trunc` of an integer return an integer, not a float, from 0.4.31 on."""
    ops, types = (jnp.ceil, jnp.floor, jnp.trunc), ("int8", "int32", "bool")
    result = [[jax.eval_shape(op, np.ones(1, t)).dtype.name for op in ops] for t in types]
    return Observed(result, reference=[[name] * 3 for name in types])


STEP_ROUNDED_ON_THE_HOST = deviation(
    "jax<0.10",
    outcome="ok",
    reason="arange was computed on the host, with a step already rounded to bfloat16",
    issue="jax-ml/jax@3dd61872d03e",
)


@probe(source="jax-ml/jax@3dd61872d03e", rtol=0, deviations=[STEP_ROUNDED_ON_THE_HOST])
def arange_of_bfloat16(env):
    """`arange` with a step in bfloat16 is rounded only once from 0.10.0 on."""
    result = jnp.arange(0, 2, 0.1, dtype=jnp.bfloat16)
    return Observed(result, reference=np.arange(0, 2, 0.1))


@probe(source="jax-ml/jax#3014", rtol=1e-3)
def spaced_numbers(env):
    """`linspace` contains both ends, and rounds integers down."""

    @jax.jit
    def spaced(zero, tenth, one):
        return {
            "tenth": jnp.linspace(zero, tenth, 7),
            "halves": jnp.linspace(zero, one, 11, dtype=jnp.float16),
            "integers": jnp.linspace(-5 * one, 5 * one, 7, dtype=jnp.int32),
            "one": jnp.linspace(one, 7, 1),
        }

    result = {name: np.asarray(value) for name, value in spaced(0.0, 0.1, 1.0).items()}
    expected = {
        "ends": f32(0, 0.1),
        "halves": np.linspace(0, 1, 11),
        "integers": np.int32([-5, -4, -2, 0, 1, 3, 5]),
        "one": np.float64([1]),
    }
    return Observed({"ends": result.pop("tenth")[[0, -1]], **result}, reference=expected)


LOG10_IS_A_PRODUCT = deviation(
    "jax>=0.7.2,<0.12",
    outcome="ok",
    reason="under jit log10 is a product from 0.7.2 on, an ulp off; exact with jaxlib 0.12",
    issue="jax-ml/jax@af032974ac7b",
)


@probe(source="jax-ml/jax@af032974ac7b", rtol=2e-7, deviations=[LOG10_IS_A_PRODUCT])
def powers_of_ten(env):
    """`geomspace(1, 1000, 4)` is 1, 10, 100, 1000, but inexact from 0.7.2 to 0.11.2."""
    return Observed(jnp.geomspace(1, 1000, 4), reference=np.array([1.0, 10, 100, 1000]))


MEMORY_NOT_INITIALISED = deviation(
    "jax>=0.11",
    outcome="ok",
    reason="empty does not initialise the memory; use zeros",
    issue="jax-ml/jax@11cefe972901",
)


@probe(source="jax-ml/jax@11cefe972901", deviations=[MEMORY_NOT_INITIALISED])
def empty_is_zeros(env):
    """`empty` and `empty_like` fill with zeros up to 0.10.2, and are uninitialised from 0.11.0."""
    # Compare primitives, because uninitialised memory may be zero by chance.
    result = [
        jax.make_jaxpr(lambda: jnp.empty(3)),
        jax.make_jaxpr(lambda: jnp.empty_like(f32(1, 2))),
    ]
    names = [[e.primitive.name for e in jaxpr().eqns] for jaxpr in result]
    return Observed(names, reference=[["broadcast_in_dim"], ["broadcast_in_dim"]])


@probe(source="jax-ml/jax@b8f92cbe9bc7")
def wide_numbers_in_a_narrow_world(env):
    """An array made under `enable_x64` keeps its 64 bits outside; other arrays have 32 bits."""
    with env.compat.enable_x64():
        third, count = jnp.asarray(1 / 3), jnp.arange(3)
    result = {
        "kept": (str(third.dtype), str(count.dtype)),
        "in jit": str(jax.jit(lambda x: x)(np.ones(1)).dtype),
        "asked for": str(jnp.ones(1).astype("float64").dtype),
    }
    expected = {"kept": ("float64", "int64"), "in jit": "float32", "asked for": "float32"}
    return Observed(result, reference=expected)


BITS_READ_AS_FLOAT = deviation(
    "jax<0.7.2",
    params=("int32",),
    outcome="ok",
    reason="None meant float, and the bits were read as float",
    issue="jax-ml/jax@ca7b9db55171",
)
NONE_MEANT_FLOAT = deviation(
    "jax<0.7.2",
    params=("int8",),
    error="ValueError",
    match="When changing to a larger dtype",
    reason="None meant float",
    issue="jax-ml/jax@ca7b9db55171",
)


@probe(
    source="jax-ml/jax@ca7b9db55171",
    params={"int32": {"dtype": "int32"}, "int8": {"dtype": "int8"}},
    deviations=[BITS_READ_AS_FLOAT, NONE_MEANT_FLOAT],
)
def view_of_no_dtype(env, dtype):
    """`x.view()` is the unchanged array from 0.7.2 on.

    Before, int32 was silently read as float32, and int8 was a ValueError.
    """
    x = np.arange(3).astype(dtype)
    return Observed(jnp.asarray(x).view(), reference=x)


RANKS_WERE_INTEGERS = deviation(
    "jax<0.10",
    outcome="ok",
    reason="ranks were integers, as in SciPy up to 1.17, unless ties are averaged",
    issue="jax-ml/jax@e2b1ca3b063c",
)


@probe(source="jax-ml/jax@e2b1ca3b063c", deviations=[RANKS_WERE_INTEGERS])
def ranks_are_floats(env):
    """`rankdata` returns floats by every method from 0.10.0 on, so ranks are not indices."""
    rank = jax.scipy.stats.rankdata
    methods = ("average", "min", "dense", "ordinal")
    result = jax.jit(lambda x: {method: rank(x, method=method) for method in methods})(f32(3, 1, 3))
    expected = {
        "average": f32(2.5, 1, 2.5),
        "min": f32(2, 1, 2),
        "dense": f32(2, 1, 2),
        "ordinal": f32(2, 1, 3),
    }
    return Observed(result, reference=expected)


NO_FINFO_OF_BFLOAT16 = deviation(
    params=["bfloat16"],
    error="ValueError",
    match="not inexact|not compatible with finfo",
    reason="the tolerance for equal table entries is from `np.finfo`, which has no bfloat16",
)


@probe(
    source="jax-ml/jax@dc4591dd6cd1",
    params={
        "bfloat16": {"dtype": "bfloat16"},
        "float16": {"dtype": "float16"},
        "float32": {"dtype": "float32"},
    },
    deviations=[NO_FINFO_OF_BFLOAT16],
)
def interpolation(env, dtype):
    """`jnp.interp` in a table of bfloat16 is a ValueError; other floats work."""
    x, table, values = (
        jnp.array(numbers, dtype) for numbers in ([0.5, 1.25], [0, 1, 2], [0, 10, 40])
    )
    return Observed(jnp.interp(x, table, values).astype(np.float32), np.array([5, 17.5]))


TRIANGLE_ALWAYS_SINGLE = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="its default was float32, not the default dtype of floats",
)


@probe(source="jax-ml/jax#39098", x64=True, deviations=[TRIANGLE_ALWAYS_SINGLE])
def triangle_of_no_dtype(env):
    """`tri` without a dtype is float64 from 0.11.2 on if 64-bit types are enabled, as `eye` is."""
    result = {"tri": jnp.tri(2).dtype.name, "eye": jnp.eye(2).dtype.name}
    return Observed(result, reference={"tri": "float64", "eye": "float64"})
