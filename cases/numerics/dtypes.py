"""Which dtype comes out: promotion, defaults, and what is kept where 64 bits are off."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import f32, inf, nan, numbered

NAMES = ("bool", "int8", "uint8", "int32", "uint32", "bfloat16", "float16", "float32", "complex64")


def sums(names):
    """Return the type of the sum of every two types: `{"int8 int32": "int32"}`.

    Args:
        names: Types, by name.
    """
    ones = {name: jax.ShapeDtypeStruct((1,), jnp.dtype(name)) for name in names}
    made = jax.eval_shape(lambda x: {f"{a} {b}": x[a] + x[b] for a in x for b in x}, ones)
    return {pair: value.dtype.name for pair, value in made.items()}


@probe(
    source="jax-ml/jax@fbc29f5add4e",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="the answer was the type that 64 bits would need",
            issue="jax-ml/jax@fbc29f5add4e",
        )
    ],
)
def promote_types(env):
    """`promote_types` without x64: int32 and uint32 make int32 since 0.7.2, as sums do."""
    made = {a: [jnp.promote_types(a, b).name for b in NAMES] for a in NAMES}
    types = sums(NAMES)
    return Observed(made, reference={a: [types[f"{a} {b}"] for b in NAMES] for a in NAMES})


@probe(source="jax-ml/jax@fbc29f5add4e", platforms=("cpu",))
def table_of_sums(env):
    """What the sum of two types is: the lattice of jax, in part."""
    wanted = {
        "int8 uint8": "int16",
        "int32 uint32": "int32",
        "int32 float16": "float16",
        "uint32 bfloat16": "bfloat16",
        "float16 bfloat16": "float32",
        "bool int8": "int8",
        "float32 complex64": "complex64",
        "int32 bfloat16": "bfloat16",
    }
    made = sums(NAMES)
    return Observed({pair: made[pair] for pair in wanted}, reference=wanted)


@probe(source="jax-ml/jax@fbc29f5add4e", platforms=("cpu",))
def python_numbers_are_weak(env):
    """A Python number takes the type of the array; a NumPy scalar has one of its own."""

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

    wanted = {
        "bfloat16 + 2.0": ("bfloat16", 3.0),
        "bfloat16 + np.float32": ("float32", 3.0),
        "uint8 + 300": ("uint8", 47),
        "uint8 - 4": ("uint8", 255),
        "int8 * 1.5": ("float32", 3.0),
        "int32 + 1j": ("complex64", 2 + 1j),
    }
    made = sums(jnp.bfloat16(1), np.uint8(3), np.int8(2), np.int32(2))
    seen = {name: (value.dtype.name, np.asarray(value).item()) for name, value in made.items()}
    return Observed(seen, reference=wanted)


@probe(
    source="jax-ml/jax@ae2995991c19",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8.1",
            outcome="ok",
            reason="four bits were not taken for integers there",
            issue="jax-ml/jax@ae2995991c19",
        )
    ],
)
def floats_of_four_bits(env):
    """`sin` of an int4 is a float32, as for any integer: since 0.8.1, a TypeError before."""
    seen = refusal(lambda: jnp.sin(jnp.array([3], jnp.int4)), "does not accept dtype int4")
    return Observed(seen, reference="ran")


@probe(
    source="jax-ml/jax#19682",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.36",
            error="XlaRuntimeError",
            match="s4 is currently only supported in",
            reason="four bits were storage alone",
            issue="jax-ml/jax#19682",
        )
    ],
)
def arithmetic_of_four_bits(env):
    """int4 wraps around at 8, in sums and in casts; arithmetic on CPU came with 0.4.36."""

    @jax.jit
    def four_bits(cast, seven, two):
        total = seven.astype(jnp.int4) + two.astype(jnp.int4)
        return {"cast": cast.astype(jnp.int4).astype(jnp.int32), "sum": total.astype(jnp.int32)}

    made = four_bits(np.int32([7, 8, -9, 15]), np.int32([7]), np.int32([2]))
    return Observed(made, reference={"cast": np.int32([7, -8, 7, -1]), "sum": np.int32([-7])})


@probe(source="jax-ml/jax@d203926c16a9", platforms=("cpu",))
def eight_bit_floats(env):
    """Casts to the two common float8: rounding to even, and what is beyond them.

    e4m3fn has no infinity, so it gives NaN; e5m2 has one.
    """
    wanted = {
        "float8_e4m3fn": f32(0.1015625, 1, 16, 20, 448, 448, nan, nan, nan, nan),
        "float8_e5m2": f32(0.09375, 1, 16, 20, 448, 448, 512, inf, inf, nan),
    }
    x = f32(0.1, 1.0625, 17, 19, 448, 464, 480, 1e9, inf, nan)
    made = jax.jit(lambda x: {name: x.astype(name) for name in wanted})(x)
    # Widened outside: within one program some compilers drop both casts.
    seen = {name: np.asarray(value).astype(np.float32) for name, value in made.items()}
    return Observed(numbered(seen), reference=numbered(wanted))


@probe(source="jax-ml/jax#13101", platforms=("cpu",))
def casts_out_of_range(env):
    """Floats beyond an integer type saturate, NaN is 0; wide integers keep their low bits."""

    @jax.jit
    def cast(x, wide):
        made = {name: x.astype(name) for name in ("int32", "uint32", "bool")}
        return {**made, "int8 of int32": wide.astype(jnp.int8)}

    top = 2**31 - 1
    wanted = {
        "int32": np.int32([top, -top - 1, top, 0, -1, 255]),
        "uint32": np.uint32([3000000000, 0, 2**32 - 1, 0, 0, 255]),
        "bool": np.ones(6, bool),
        "int8 of int32": np.int8([-128, 127, 44]),
    }
    made = cast(f32(3e9, -3e9, inf, nan, -1.5, 255.9), np.int32([128, -129, 300]))
    return Observed(made, reference=wanted)


@probe(source="jax-ml/jax#6269", platforms=("cpu",))
def integers_that_do_not_fit(env):
    """A Python integer beyond its dtype is an OverflowError, not another number."""
    seen = {
        "default": refusal(lambda: jnp.array(2**40), "too large"),
        "uint8": refusal(lambda: jnp.array(256, jnp.uint8), "out of bounds"),
        "negative": refusal(lambda: jnp.array(-1, jnp.uint8), "out of bounds"),
        "operand": refusal(lambda: jnp.int32([3]) + 2**40, "overflow"),
    }
    wanted = {
        "default": "OverflowError: too large",
        "uint8": "OverflowError: out of bounds",
        "negative": "OverflowError: out of bounds",
        "operand": "OverflowError: overflow",
    }
    return Observed(seen, reference=wanted)


@probe(
    source="jax-ml/jax#21441",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.31",
            outcome="ok",
            reason="integers and truths became float32",
            issue="jax-ml/jax#21441",
        )
    ],
)
def rounding_of_integers(env):
    """`ceil`, `floor` and `trunc` of an integer are that integer, since 0.4.31: no float."""
    ops, types = (jnp.ceil, jnp.floor, jnp.trunc), ("int8", "int32", "bool")
    made = [[jax.eval_shape(op, np.ones(1, t)).dtype.name for op in ops] for t in types]
    return Observed(made, reference=[[name] * 3 for name in types])


@probe(
    source="jax-ml/jax@3dd61872d03e",
    platforms=("cpu",),
    rtol=0,
    deviations=[
        deviation(
            "jax<0.10",
            outcome="ok",
            reason="computed on the host, with a step that is rounded to bfloat16 already",
            issue="jax-ml/jax@3dd61872d03e",
        )
    ],
)
def arange_of_bfloat16(env):
    """`arange` with a step in bfloat16: rounded once since 0.10.0."""
    made = jnp.arange(0, 2, 0.1, dtype=jnp.bfloat16)
    return Observed(made, reference=np.arange(0, 2, 0.1))


@probe(source="jax-ml/jax#3014", platforms=("cpu",), rtol=1e-3)
def spaced_numbers(env):
    """`linspace` hits both ends; integers are rounded down."""

    @jax.jit
    def spaced(zero, tenth, one):
        return {
            "tenth": jnp.linspace(zero, tenth, 7),
            "halves": jnp.linspace(zero, one, 11, dtype=jnp.float16),
            "integers": jnp.linspace(-5 * one, 5 * one, 7, dtype=jnp.int32),
            "one": jnp.linspace(one, 7, 1),
        }

    made = {name: np.asarray(value) for name, value in spaced(0.0, 0.1, 1.0).items()}
    wanted = {
        "ends": f32(0, 0.1),
        "halves": np.linspace(0, 1, 11),
        "integers": np.int32([-5, -4, -2, 0, 1, 3, 5]),
        "one": np.float64([1]),
    }
    return Observed({"ends": made.pop("tenth")[[0, -1]], **made}, reference=wanted)


@probe(
    source="jax-ml/jax@af032974ac7b",
    platforms=("cpu",),
    rtol=2e-7,
    deviations=[
        deviation(
            "jax>=0.7.2,<0.12",
            outcome="ok",
            reason="an ulp off under jit: log10 is a product since 0.7.2, exact with jaxlib 0.12",
            issue="jax-ml/jax@af032974ac7b",
        )
    ],
)
def powers_of_ten(env):
    """`geomspace(1, 1000, 4)`: 1, 10, 100, 1000, and for a while something near them."""
    return Observed(jnp.geomspace(1, 1000, 4), reference=np.array([1.0, 10, 100, 1000]))


@probe(
    source="jax-ml/jax@11cefe972901",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.11",
            outcome="ok",
            reason="the memory is left as it is; ask for zeros",
            issue="jax-ml/jax@11cefe972901",
        )
    ],
)
def empty_is_zeros(env):
    """`empty` and `empty_like` fill with zeros up to 0.10.2; from 0.11.0 with whatever is there."""
    made = [jax.make_jaxpr(lambda: jnp.empty(3)), jax.make_jaxpr(lambda: jnp.empty_like(f32(1, 2)))]
    names = [[e.primitive.name for e in jaxpr().eqns] for jaxpr in made]
    return Observed(names, reference=[["broadcast_in_dim"], ["broadcast_in_dim"]])


@probe(source="jax-ml/jax@b8f92cbe9bc7", platforms=("cpu",))
def wide_numbers_in_a_narrow_world(env):
    """Under `enable_x64` an array has 64 bits and keeps them outside, until it meets others."""
    with env.compat.enable_x64():
        third, count = jnp.asarray(1 / 3), jnp.arange(3)
    made = {
        "kept": (str(third.dtype), str(count.dtype)),
        "in jit": str(jax.jit(lambda x: x)(np.ones(1)).dtype),
        "asked for": str(jnp.ones(1).astype("float64").dtype),
    }
    wanted = {"kept": ("float64", "int64"), "in jit": "float32", "asked for": "float32"}
    return Observed(made, reference=wanted)


@probe(
    source="jax-ml/jax@ca7b9db55171",
    platforms=("cpu",),
    params={"int32": {"dtype": "int32"}, "int8": {"dtype": "int8"}},
    deviations=[
        deviation(
            "jax<0.7.2",
            params=("int32",),
            outcome="ok",
            reason="None was taken for float, and the bits were read as such",
            issue="jax-ml/jax@ca7b9db55171",
        ),
        deviation(
            "jax<0.7.2",
            params=("int8",),
            error="ValueError",
            match="When changing to a larger dtype",
            reason="None was taken for float",
            issue="jax-ml/jax@ca7b9db55171",
        ),
    ],
)
def view_of_no_dtype(env, dtype):
    """`x.view()` is the array as it is since 0.7.2; integers silently became floats before."""
    x = np.arange(3).astype(dtype)
    return Observed(jnp.asarray(x).view(), reference=x)


@probe(
    source="jax-ml/jax@e2b1ca3b063c",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10",
            outcome="ok",
            reason="integers, as in SciPy up to 1.17, unless ties are averaged",
            issue="jax-ml/jax@e2b1ca3b063c",
        )
    ],
)
def ranks_are_floats(env):
    """`rankdata` gives floats whatever becomes of ties, since 0.10.0: no index any more."""
    rank = jax.scipy.stats.rankdata
    ways = ("average", "min", "dense", "ordinal")
    made = jax.jit(lambda x: {way: rank(x, method=way) for way in ways})(f32(3, 1, 3))
    wanted = {
        "average": f32(2.5, 1, 2.5),
        "min": f32(2, 1, 2),
        "dense": f32(2, 1, 2),
        "ordinal": f32(2, 1, 3),
    }
    return Observed(made, reference=wanted)
