"""Helpers for this family: JAX's documented promotion lattice, and tables of dtypes as text.

The lattice is that of the page "Type promotion semantics" of JAX's documentation, written here
without JAX. Names of dtypes are short, as in a jaxpr: `u8`, `bf16`, `c64`. A star marks a weak
type, `i*`, `f*` and `c*` are Python scalars.
"""

from __future__ import annotations

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("bfloat16", "float16", "float32", "float64")
ALL = ("bool", *INTEGERS, *FLOATS, "complex64", "complex128")
"""Dtypes of the documented table."""
NARROW = tuple(name for name in ALL if name not in ("int64", "uint64", "float64", "complex128"))
"""Dtypes that exist without x64."""
SMALL_INTEGERS = ("int1", "uint1", "int2", "uint2", "int4", "uint4")
SMALL_FLOATS = (
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
    "float8_e8m0fnu",
)
SCALARS = {"True": True, "1": 1, "1.0": 1.0, "1j": 1j}
"""A Python scalar of each kind, by its text."""

EDGES = {
    "bool": ("i*",),
    "i*": ("uint8", "int8", *SMALL_INTEGERS),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("f*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("f*",),
    "f*": ("bfloat16", "float16", "c*", *SMALL_FLOATS),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "c*": ("complex64",),
    "complex64": ("complex128",),
}
"""Each type and those directly above it."""
WEAK = {"True": "bool", "1": "i*", "1.0": "f*", "1j": "c*"}
"""Type of each scalar in the lattice."""
DEFAULTS = {
    "i*": ("int32", "int64"),
    "f*": ("float32", "float64"),
    "c*": ("complex64", "complex128"),
}
"""Default dtype of each weak type, without and with x64."""
ERROR = "-"
"""Cell of a table for a refused call."""


def _find_upper_bounds(name, x64):
    above = EDGES.get(name, ())
    if name == "uint32" and not x64:
        above = ("int32", "uint64")
    return {name}.union(*(_find_upper_bounds(other, x64) for other in above))


def find_join(first, second, x64=True):
    """Return the least upper bound of two types of the lattice, `-` if there is none.

    Without x64, uint32 is below int32, because no 64-bit type arises from types of 32 bits.

    Args:
        first: Name of a dtype or weak type.
        second: The other name.
        x64: Whether 64-bit types are enabled.
    """
    bounds = _find_upper_bounds(first, x64) & _find_upper_bounds(second, x64)
    least = (name for name in bounds if bounds <= _find_upper_bounds(name, x64))
    return next(least, ERROR)


def get_default(name, x64):
    """Return the dtype of a weak type, and other names unchanged."""
    return DEFAULTS[name][x64] if name in DEFAULTS else name


def shorten(name):
    """Return the short name of a dtype, as in a jaxpr: `u8` for `uint8`."""
    for long, short in (("complex", "c"), ("bfloat", "bf"), ("float", "f"), ("int", "i")):
        name = re.sub(rf"^(u?){long}(?=[0-9])", rf"\1{short}", name)
    return re.sub("^ui", "u", name)


def describe(x):
    """Return the short dtype of an array or abstract value, with a star if it is weak."""
    aval = getattr(x, "aval", x)
    return shorten(np.dtype(x.dtype).name) + "*" * bool(getattr(aval, "weak_type", False))


def render_table(rows, columns, cell):
    """Return a table as a list of lines of text, the header first.

    Args:
        rows: Names of the rows.
        columns: Names of the columns.
        cell: Returns the text of a cell, from the names of its row and column.
    """
    lines = [["", *columns], *([row, *(cell(row, column) for column in columns)] for row in rows)]
    lines = [[shorten(text) for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [" ".join(map(str.ljust, line, widths)).rstrip() or "(empty)" for line in lines]


def try_call(call, *args):
    """Return the result of a call without its warnings, `-` if it is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(*args)
    except (AttributeError, NotImplementedError, OverflowError, TypeError, ValueError):
        return ERROR


def get_dtype(env, name):
    """Return a dtype of `jax.numpy`; the case is unsupported if the release lacks it."""
    if not hasattr(jnp, name):
        env.unsupported(f"no dtype {name}")
    return np.dtype(getattr(jnp, name))


def trace_types(calls, *args):
    """Return the short dtype of the result of each call, `-` for a refused call.

    All calls are traced in one program, and none is compiled.

    Args:
        calls: Functions of the arguments by name.
        args: Arguments of each function: arrays, Python scalars and pytrees of them.
    """
    types = {}

    def run(*args):
        for name, call in calls.items():
            value = try_call(call, *args)
            types[name] = value if isinstance(value, str) else describe(value)

    jax.make_jaxpr(run)(*args)
    return types


def find_kind(name):
    """Return the order of the kind of a type: 0 for bool, 1 for integers, 2 floats, 3 complex."""
    letter = name.removeprefix("b" if name == "bfloat16" else "")[0]
    return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[letter]
