"""The promotion tables of JAX: pairs of dtypes, Python scalars, small dtypes, strict promotion.

The reference is the documented lattice, which `_helpers` has without JAX.
"""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import (
    ALL,
    ERROR,
    INTEGERS,
    NARROW,
    SCALARS,
    WEAK,
    find_join,
    find_kind,
    get_default,
    get_dtype,
    render_table,
    try_call,
)

defaults(platforms=("cpu",))

SMALL = {
    "float4": {"names": ["float4_e2m1fn"]},
    "float6": {"names": ["float6_e2m3fn", "float6_e3m2fn"]},
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
    "float8_scale": {"names": ["float8_e8m0fnu"]},
    "int1": {"names": ["int1", "uint1"]},
    "int2": {"names": ["int2", "uint2"]},
    "int4": {"names": ["int4", "uint4"]},
}
NARROWED = {
    "int64": "int32",
    "uint64": "uint32",
    "float64": "float32",
    "complex128": "complex64",
}
"""Dtypes that take the place of those of 64 bits without x64."""
BOTH = {"x32": {"x64": False}, "x64": {"x64": True}}


def find_common(*types):
    """Return the name of the common dtype of dtypes and Python scalars, `-` if there is none."""
    result = try_call(jnp.result_type, *types)
    return result if isinstance(result, str) else np.dtype(result).name


def promote(first, second):
    """Return the name of the common dtype of two dtypes, `-` if there is none."""
    result = try_call(jnp.promote_types, first, second)
    return result if isinstance(result, str) else np.dtype(result).name


PROMOTED_TO_64_BITS = deviation(
    "jax<0.7.2",
    params=["x32"],
    outcome="ok",
    reason="promote_types returned the type that 64 bits would need",
    issue="jax-ml/jax@fbc29f5add4e",
)


@probe(source="jax-ml/jax@fbc29f5add4e", params=BOTH, deviations=[PROMOTED_TO_64_BITS])
def promote_types(env, x64):
    """`promote_types` of each pair of dtypes follows the documented lattice."""
    names = ALL if x64 else NARROW

    def expect(first, second):
        return get_default(find_join(first, second, x64), x64)

    with env.compat.enable_x64(x64):
        table = render_table(names, names, promote)
    return Observed(table, reference=render_table(names, names, expect))


@probe(source="jax-ml/jax@fbc29f5add4e")
def result_type_of_arrays(env):
    """Without x64, `result_type` of a pair of arrays is the dtype that the lattice gives."""
    arrays = {name: np.ones(1, jnp.dtype(name)) for name in NARROW}

    def expect(first, second):
        return get_default(find_join(first, second, x64=False), x64=False)

    table = render_table(NARROW, NARROW, lambda a, b: find_common(arrays[a], arrays[b]))
    return Observed(table, reference=render_table(NARROW, NARROW, expect))


@probe(source="jax-ml/jax#4806", params=["integers", "floats"])
def promote_types_as_numpy(env, kind):
    """With x64, dtypes of one kind promote as in NumPy, int64 and uint64 to float64 too."""
    floats = ("bool", "float16", "float32", "float64", "complex64", "complex128")
    names = floats if kind == "floats" else ("bool", *INTEGERS)
    with env.compat.enable_x64():
        table = render_table(names, names, promote)
    expected = render_table(names, names, lambda a, b: np.promote_types(a, b).name)
    return Observed(table, reference=expected)


KINDS = {
    "bool": {"scalar": "True"},
    "int": {"scalar": "1"},
    "float": {"scalar": "1.0"},
    "complex": {"scalar": "1j"},
}
"""Python scalars by type."""


@probe(source="jax-ml/jax#4744", params=KINDS)
def result_type_with_scalar(env, scalar):
    """A Python scalar takes the dtype of an array, unless it is of a higher kind."""

    def find(name, mode):
        with env.compat.enable_x64(mode == "x64"):
            return find_common(np.ones(1, jnp.dtype(name)), SCALARS[scalar])

    def expect(name, mode):
        x64 = mode == "x64"
        own = name if x64 else NARROWED.get(name, name)
        return get_default(find_join(own, WEAK[scalar], x64), x64)

    table = render_table(ALL, ("x32", "x64"), find)
    return Observed(table, reference=render_table(ALL, ("x32", "x64"), expect))


@probe(source="jax-ml/jax#4744", params=BOTH)
def result_type_of_scalars(env, x64):
    """Two Python scalars have the default dtype of the higher kind."""
    with env.compat.enable_x64(x64):
        table = render_table(SCALARS, SCALARS, lambda a, b: find_common(SCALARS[a], SCALARS[b]))
    expected = render_table(
        SCALARS, SCALARS, lambda a, b: get_default(find_join(WEAK[a], WEAK[b], x64), x64)
    )
    return Observed(table, reference=expected)


@probe(source="jax-ml/jax#16705", params=SMALL)
def promote_small_dtypes(env, names):
    """Floats of 8 bits or fewer, and integers of fewer than 8, have no common dtype with others.

    Only Python scalars and dtypes of lower kinds promote to them.
    """
    dtypes = {name: get_dtype(env, name) for name in names}
    others = [*dict.fromkeys((*ALL, "float8_e4m3fn", "float8_e5m2", "int4", "uint4", *names))]

    def find(row, name):
        return find_common(SCALARS.get(row, row), dtypes[name])

    def expect(row, name):
        return get_default(find_join(WEAK.get(row, row), name), x64=True)

    rows = [*others, *SCALARS]
    with env.compat.enable_x64():
        table = render_table(rows, names, find)
    return Observed(table, reference=render_table(rows, names, expect))


@probe(source="jax-ml/jax#10824", params=["dtypes", "scalars"])
def strict_promotion(env, operands):
    """Strict promotion refuses two dtypes, and accepts a Python scalar of a kind not higher."""

    def expect(name, other):
        if operands == "dtypes":
            return name if name == other else ERROR
        if other == "True":
            return name if name == "bool" else ERROR
        return name if [*SCALARS].index(other) <= find_kind(name) else ERROR

    def find(name, other):
        return find_common(jnp.dtype(name), SCALARS.get(other, other))

    columns = SCALARS if operands == "scalars" else NARROW
    with jax.numpy_dtype_promotion("strict"):
        table = render_table(NARROW, columns, find)
    return Observed(table, reference=render_table(NARROW, columns, expect))


STRICT_CALLS = {
    "add": lambda v: v.x + v.n,
    "true_divide": lambda v: v.n / v.n,
    "power_by_integers": lambda v: v.x**v.n,
    "power_by_scalar": lambda v: v.x**2,
    "where": lambda v: jnp.where(v.x > 0, v.x, v.n),
    "where_scalar": lambda v: jnp.where(v.x > 0, v.x, 0),
    "concatenate": lambda v: jnp.concatenate([v.x, v.n]),
    "dot": lambda v: v.x @ v.n,
    "set": lambda v: v.x.at[0].set(v.n[0]),
    "set_scalar": lambda v: v.x.at[0].set(1),
    "take": lambda v: jnp.take(v.x, v.n),
    "clip": lambda v: jnp.clip(v.x, v.n, v.n),
    "comparison": lambda v: v.x < v.n,
    "mean_of_integers": lambda v: v.n.mean(),
    "mask": lambda v: v.x * (v.x > 0),
    "linspace": lambda v: jnp.linspace(0, v.x[0], 3),
    "ldexp": lambda v: jnp.ldexp(v.x, v.n),
    "average": lambda v: jnp.average(v.x, weights=v.n),
}


CASTS_ON_ITS_OWN = (
    "mean_of_integers",
    "take",
    "linspace",
    "ldexp",
    "power_by_scalar",
    "set_scalar",
    "true_divide",
    "where_scalar",
)


@probe(source="jax-ml/jax#10824")
def strict_calls(env):
    """Strict promotion refuses functions of float32 and int32, unless they cast on their own."""
    x, n = np.ones(3, np.float32), np.ones(3, np.int32)
    with jax.numpy_dtype_promotion("strict"):
        outcomes = {
            name: refusal(
                lambda: jax.eval_shape(lambda x, n: call(SimpleNamespace(x=x, n=n)), x, n), "strict"
            )
            for name, call in STRICT_CALLS.items()
        }
    expected = dict.fromkeys(STRICT_CALLS, "TypePromotionError: strict")
    expected |= dict.fromkeys(CASTS_ON_ITS_OWN, "ran")
    return Observed(outcomes, reference=expected)


@probe(source="jax-ml/jax#10824")
def strict_context_retraces(env):
    """A jitted function that was traced under standard promotion is refused under strict."""
    add = jax.jit(lambda x, n: x + n)
    x, n = np.ones(3, np.float32), np.ones(3, np.int32)
    before = refusal(lambda: add(x, n))
    with jax.numpy_dtype_promotion("strict"):
        inside = refusal(lambda: add(x, n), "strict")
    outcomes = [before, inside, refusal(lambda: add(x, n))]
    return Observed(outcomes, reference=["ran", "TypePromotionError: strict", "ran"])
