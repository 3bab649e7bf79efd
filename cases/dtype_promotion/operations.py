"""Dtypes of results of operations: tables with a row for each dtype, traced and never compiled.

The references are rules for a class of functions, on top of the documented lattice. A star marks a
weak type.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import (
    ALL,
    ERROR,
    NARROW,
    SCALARS,
    WEAK,
    find_join,
    find_kind,
    get_default,
    render_table,
    trace_types,
)

defaults(platforms=("cpu",), source="jax-ml/jax#1709")

OPERANDS = ("bool", "int8", "uint8", "bfloat16", "float16", "complex64")
BINARY = {
    "add": {"name": "add", "rule": "any"},
    "bitwise_and": {"name": "bitwise_and", "rule": "integer"},
    "divide": {"name": "divide", "rule": "inexact"},
    "equal": {"name": "equal", "rule": "comparison"},
    "floor_divide": {"name": "floor_divide", "rule": "real number"},
    "hypot": {"name": "hypot", "rule": "inexact real"},
    "left_shift": {"name": "left_shift", "rule": "integer number"},
    "matmul": {"name": "matmul", "rule": "any noscalar"},
    "maximum": {"name": "maximum", "rule": "any"},
    "remainder": {"name": "remainder", "rule": "real number"},
    "subtract": {"name": "subtract", "rule": "any nobool"},
    "where": {"name": "where", "rule": "any"},
}
"""Functions, with words for the types that they accept and return.

`integer` and `real` accept no higher kind, `nobool` and `noscalar` no pair of booleans and no
scalar. `number` turns booleans into integers, `inexact` integers into floats, `comparison` all into
booleans. `strong` results are never weak.
"""


def select_first(x, y):
    """Return the first of two operands where it is not zero."""
    return jnp.where(jnp.asarray(x) != 0, x, y)


def expect_binary(rule, first, second):
    """Return the result type of a function of an array, and an array or Python scalar.

    Args:
        rule: Words of `BINARY`.
        first: Dtype of the array.
        second: Dtype of the other array, or text of the scalar.
    """
    joined = find_join(first, WEAK.get(second, second), x64=False)
    kind = find_kind(joined)
    refused = ("nobool" in rule and joined == "bool") or ("noscalar" in rule and second in SCALARS)
    if refused or kind > (1 if "integer" in rule else 2 if "real" in rule else 3):
        return ERROR
    result = get_default(joined, x64=False)
    if "comparison" in rule:
        result = "bool"
    elif "inexact" in rule and kind < 2:
        result = "float32"
    elif "number" in rule and kind == 0:
        result = "int32"
    return result + "*" * ("*" in joined and "strong" not in rule)


FLOOR_DIVIDE_NOT_WEAK = deviation(
    "jax<0.10.2",
    params=["floor_divide"],
    outcome="ok",
    reason="the result of an integer and a Python float was not weak",
    issue="jax-ml/jax@e90fa10f79ba",
)
HYPOT_NOT_WEAK = deviation(
    "jax<0.12",
    params=["hypot"],
    outcome="ok",
    reason="the result of an integer and a Python float was not weak, and up to 0.4.31 complex "
    "numbers were accepted",
    issue="jax-ml/jax@8bcd28862122",
)


@probe(params=BINARY, deviations=[FLOOR_DIVIDE_NOT_WEAK, HYPOT_NOT_WEAK])
def binary_operation(env, name, rule):
    """Result types of two arrays, and of an array and a Python scalar, follow a rule."""
    call = select_first if name == "where" else getattr(jnp, name)
    values = {**{name: np.ones(1, jnp.dtype(name)) for name in OPERANDS}, **SCALARS}
    columns = [*values]
    pairs = [(a, b) for a in OPERANDS for b in columns[columns.index(a) :]]
    calls = {pair: lambda x, a=pair[0], b=pair[1]: call(x[a], x[b]) for pair in pairs}
    types = trace_types(calls, values)
    table = render_table(OPERANDS, columns, lambda *pair: types.get(pair, ""))
    expected = render_table(
        OPERANDS, columns, lambda *pair: expect_binary(rule, *pair) if pair in calls else ""
    )
    return Observed(table, reference=expected)


UNARY = {
    "arithmetic": {"names": ["abs", "conj", "negative", "positive", "sign", "square"]},
    "bits": {"names": ["invert", "bitwise_count"]},
    "parts": {"names": ["real", "imag", "angle", "nan_to_num"]},
    "predicates": {"names": ["isfinite", "isnan", "signbit", "logical_not", "iscomplex"]},
    "rounding": {"names": ["ceil", "floor", "rint", "round", "trunc"]},
    "transcendental": {"names": ["exp", "cbrt", "log1p", "reciprocal", "sin", "sinc", "sqrt"]},
}


@probe(params=UNARY, records="each function has a rule of its own")
def unary_operations(env, names):
    """Result types of functions of one array, or of a Python scalar."""
    values = {**{name: np.ones(1, jnp.dtype(name)) for name in OPERANDS}, **SCALARS}
    calls = {
        (row, name): lambda x, row=row, name=name: getattr(jnp, name)(x[row])
        for row in values
        for name in names
    }
    types = trace_types(calls, values)
    return render_table(values, names, lambda *cell: types[cell])


REDUCTIONS = {
    "argmax": ("index", jnp.argmax),
    "bincount": ("index integers", lambda x: jnp.bincount(x, length=3)),
    "cumsum": ("number", jnp.cumsum),
    "cumulative_sum": ("accumulate", jnp.cumulative_sum),
    "mean": ("inexact", jnp.mean),
    "sum": ("accumulate", jnp.sum),
    "var": ("inexact abs", jnp.var),
}
"""Functions of an array by name, each with words for its result type.

`accumulate` turns integers into the default integer of their sign, `number` booleans into the
default integer, `inexact` integers into floats. `index` is the default integer. `abs` of a complex
number is real. `nobool`, `reals` and `integers` refuse booleans, complex numbers and inexact ones.
"""


def expect_reduction(rule, name, x64):
    """Return the result type of a function of an array.

    Args:
        rule: Words of `REDUCTIONS`.
        name: Dtype of the array.
        x64: Whether 64-bit types are enabled.
    """
    kind, default = find_kind(name), "int64" if x64 else "int32"
    refused = ("nobool" in rule and kind == 0) or ("reals" in rule and kind == 3)
    if refused or ("integers" in rule and kind > 1):
        return ERROR
    wide = name in ("int64", "uint64", "float64", "complex128")
    real = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    inexact = ("float64" if wide else "float32") if kind < 2 else real if "abs" in rule else name
    return {
        "bool": "bool",
        "index": default,
        "number": default if kind == 0 else name,
        "accumulate": ("u" * name.startswith("u") + default) if kind < 2 else name,
        "complex": "complex128" if wide else "complex64",
        "inexact": inexact,
        "same": name,
    }[rule.split()[0]]


NO_BOOLEANS = deviation(
    "jax<0.4.36",
    params=["bincount"],
    outcome="ok",
    reason="bincount refused booleans",
    issue="jax-ml/jax#24814",
)


@probe(params=[*REDUCTIONS], deviations=[NO_BOOLEANS])
def reduction(env, name):
    """Result types of a reduction, or another function of an array, without and with x64."""
    rule, call = REDUCTIONS[name]
    table, expected = [], []
    for x64 in (False, True):
        with env.compat.enable_x64(x64):
            rows = ALL if x64 else NARROW
            arrays = {row: np.ones(1, jnp.dtype(row)) for row in rows}
            types = trace_types({row: lambda x, row=row: call(x[row]) for row in rows}, arrays)
        column = ["x64" if x64 else "x32"]
        table += render_table(rows, column, lambda row, _: types[row])
        expected += render_table(rows, column, lambda row, _: expect_reduction(rule, row, x64))
    return Observed(table, reference=expected)


DECOMPOSITIONS = {
    "cholesky": jnp.linalg.cholesky,
    "det": jnp.linalg.det,
    "eigh": lambda a: jnp.linalg.eigh(a)[0],
    "inv": jnp.linalg.inv,
    "lstsq": lambda a: jnp.linalg.lstsq(a, a)[0],
    "lu": lambda a: jax.scipy.linalg.lu(a)[1],
    "norm": jnp.linalg.norm,
    "pinv": jnp.linalg.pinv,
    "qr": lambda a: jnp.linalg.qr(a)[1],
    "slogdet": lambda a: jnp.linalg.slogdet(a)[1],
    "solve": lambda a: jnp.linalg.solve(a, a),
    "solve_triangular": lambda a: jax.scipy.linalg.solve_triangular(a, a),
    "svd": lambda a: jnp.linalg.svd(a)[1],
}


@probe(
    source="jax-ml/jax@be2f36d07e25",
    records="LAPACK has no half precision, and jax decides where it says so",
)
def decompositions(env):
    """Functions of `jnp.linalg` refuse float16 when traced, from 0.11.1 on.

    Before, tracing gave a result type, and LAPACK refused the dtype later. A dash is an error.
    """
    return trace_types(DECOMPOSITIONS, np.eye(2, dtype=np.float16))


COMPLEX = {
    "complex": lambda x: jax.lax.complex(x, x),
    "eigvals": lambda x: jnp.linalg.eigvals(x.reshape(2, 2)),
    "exp": lambda x: jnp.exp(1j * x),
    "fft": jnp.fft.fft,
    "ifft": lambda x: jnp.fft.ifft(x, n=8),
    "rfft": jnp.fft.rfft,
    "roots": lambda x: jnp.roots(x, strip_zeros=False),
    "sort_complex": jnp.sort_complex,
}
"""Functions of real arrays with complex results."""


@probe(x64=True, source="jax-ml/jax#1709")
def complex_of_real(env):
    """Complex results of real arrays have the precision of the arrays."""
    rows = ("float32", "float64")
    x = {name: np.arange(1, 5, dtype=name) for name in rows}
    calls = {
        (row, name): lambda x, row=row, call=call: call(x[row])
        for row in rows
        for name, call in COMPLEX.items()
    }
    types = trace_types(calls, x)
    wide = {"float32": "complex64", "float64": "complex128"}
    expected = render_table(rows, COMPLEX, lambda row, _: wide[row])
    return Observed(render_table(rows, COMPLEX, lambda *cell: types[cell]), reference=expected)
