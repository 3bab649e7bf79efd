"""Values of the inputs of programs, as Python expressions that a script can hold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from conformance.fuzz.array_type import PARTS, get_kind

if TYPE_CHECKING:
    from conformance.fuzz.array_type import ArrayType
    from conformance.fuzz.scope import Scope

NUMPY: Final = frozenset(
    {"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
     "uint32", "uint64", "complex64", "complex128", "bool"}
)  # fmt: skip
"""Dtypes that NumPy has itself; the others come with jax."""
LARGEST: Final = {
    "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float16": 65504.0, "bfloat16": 3.0e38,
    "float32": 3.0e38, "float64": 1.0e308,
}  # fmt: skip
"""About the largest finite value of a dtype."""
TINY: Final = {
    "float8_e4m3fn": 0.002, "float8_e5m2": 1.6e-05, "float16": 6.0e-08, "bfloat16": 1.0e-40,
    "float32": 1.0e-40, "float64": 5.0e-310,
}  # fmt: skip
"""A denormal value of a dtype."""
EXPONENTS: Final = {
    "float8_e4m3fn": 2, "float8_e5m2": 4, "float16": 4, "bfloat16": 36, "float32": 36,
    "float64": 300,
}  # fmt: skip
"""The largest power of ten to draw: overflow, and loss of what is added, begin at its root."""
LONGEST: Final = 6
"""Different values of an input that is not random."""


def draw_input(scope: Scope, type_: ArrayType) -> str:
    """Draw the values of an input, and return them as an expression of its array.

    A few drawn values are repeated over the array, or all are random numbers with a fixed seed.

    Args:
        scope: Draws them.
        type_: Type of the input.
    """
    shape = type_.shape
    if type_.kind == "float" and scope.flip():
        seed = scope.integer(0, 99)
        code = f"np.random.RandomState({seed}).standard_normal({shape})"
        return _convert(code, type_.dtype)
    count = max(1, min(type_.size, LONGEST))
    values = [_draw_value(scope, type_.dtype) for _ in range(scope.integer(1, count))]
    elements = ", ".join(values)
    if not shape:
        return make_array(values[0], type_.dtype)
    if shape == (len(values),):
        return make_array(f"[{elements}]", type_.dtype)
    return make_array(f"np.resize([{elements}], {shape})", type_.dtype)


def make_array(code: str, dtype: str) -> str:
    """Return the expression of an array of a dtype.

    Args:
        code: Its values.
        dtype: Its dtype.
    """
    if dtype in NUMPY:
        return f'np.array({code}, "{dtype}")'
    return _convert(f"np.array({code})", dtype)


def _convert(code: str, dtype: str) -> str:
    # By NumPy: the conversion of a jax release must not take part.
    if dtype in NUMPY:
        return f'np.asarray({code}, "{dtype}")'
    return f'np.asarray({code}).astype(jnp.dtype("{dtype}"))'


def _draw_value(scope: Scope, dtype: str) -> str:
    kind = get_kind(dtype)
    if kind == "bool":
        return scope.choose(["True", "False"])
    if kind == "complex":
        part = PARTS[dtype]
        return f"complex({_draw_float(scope, part)}, {_draw_float(scope, part)})"
    if kind == "float":
        return _draw_float(scope, dtype)
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    largest = 2**bits - 1 if kind == "uint" else 2 ** (bits - 1) - 1
    smallest = 0 if kind == "uint" else -largest - 1
    if scope.rarely(5):
        return str(scope.choose([largest, smallest, largest - 1, smallest + 1]))
    return str(scope.integer(max(smallest, -9), min(largest, 9)))


def _draw_float(scope: Scope, dtype: str) -> str:
    form = scope.choose(["whole", "fraction", "special", "power", "near"])
    if form == "whole":
        return f"{scope.integer(-9, 9)}.0"
    if form == "power":
        power = f"1e{scope.integer(-EXPONENTS[dtype], EXPONENTS[dtype])}"
        return repr(float(power) * scope.choose([1, -1, 2, 50]))
    if form == "near":
        return repr(scope.integer(-2, 3) + scope.choose([1e-5, -1e-5, 1e-3, -1e-3, 1e-8]))
    if form == "fraction":
        return repr(scope.integer(-400, 400) / 64)
    special = [
        math.inf, -math.inf, math.nan, -0.0, LARGEST[dtype], -LARGEST[dtype], TINY[dtype],
        -TINY[dtype], 1e-3, 1e3,
    ]  # fmt: skip
    return spell_number(scope.choose(special))


def spell_number(number: complex) -> str:
    """Return a number as a Python expression."""
    if isinstance(number, complex):
        return f"complex({spell_number(number.real)}, {spell_number(number.imag)})"
    return repr(number).replace("inf", "np.inf").replace("nan", "np.nan")
