"""Inputs of many values: those at which operations have special cases, or evenly spaced ones."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import TYPE_CHECKING, Final

from conformance.fuzz.array_type import PARTS, get_kind
from conformance.fuzz.input_values import LARGEST, TINY, make_array, spell_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.fuzz.array_type import ArrayType
    from conformance.fuzz.scope import Scope

CYCLE: Final = 30
"""Each value of a second input is repeated so often: about as many values has a table."""
LENGTH: Final = CYCLE * CYCLE
"""Length of the vectors: they hold each pair of the values of two tables."""
FLOATS: Final = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 0.1, -2.5, 1.5, 7.0, 10.0, -10.0, 1e-3, -1e-3,
    0.999, 1.001, 31.7, 99.9, -100.0, math.inf, -math.inf, math.nan,
)  # fmt: skip
"""Floating-point numbers, besides the largest and smallest ones; squares of some are rounded."""
COMPLEX_PARTS: Final = (0.0, -0.0, 1.0, -1.0, 0.5, -3.0, 100.0, math.inf, -math.inf, math.nan)
"""Parts of complex numbers, in addition to the largest and smallest ones."""
INTEGERS: Final = (
    0, 1, -1, 2, -2, 3, -3, 4, 5, 6, 7, 8, -8, 9, 10, 15, 16, 31, 32, 33, 63, 64, 100, -100,
)  # fmt: skip
"""Integers, in addition to the largest and smallest ones."""
BOUNDS: Final = (4, 1, 20, 100)
"""Bounds of evenly spaced values."""
SPACED_RATE: Final = 4
"""One input of so many has evenly spaced values."""
LISTED: Final = 40
"""So many values are spelled one by one."""


def draw_table_input(scope: Scope, type_: ArrayType, number: int) -> str:
    """Draw an input of many values, and return it as an expression of its array.

    Args:
        scope: Draws its table, and from which range of it the values are.
        type_: Type of the input.
        number: Number of the input. The first one repeats the values as a whole, the others one by
            one: two inputs hold all pairs.
    """
    table = list_special_values(type_.dtype)
    if type_.kind == "float" and scope.rarely(SPACED_RATE):
        bound = scope.choose(BOUNDS)
        count = CYCLE if number else LENGTH
        table = tuple(bound * (2 * at / (count - 1) - 1) for at in range(count))
    values = table[scope.choose_range(len(table), CYCLE if number else 1)]
    if not type_.shape:
        return make_array(spell_number(values[0]), type_.dtype)
    if type_.shape == (1,):
        return make_array(f"[{spell_number(values[0])}]", type_.dtype)
    code = _spell(values)
    if number and len(values) > 1:
        code = f"np.repeat({code}, {CYCLE})"
    return make_array(f"np.resize({code}, {type_.shape})", type_.dtype)


def _spell(values: Sequence[complex]) -> str:
    if len(values) > LISTED and not isinstance(values[0], complex):
        return f"np.linspace({values[0]}, {values[-1]}, {len(values)})"
    return f"[{', '.join(map(spell_number, values))}]"


def draw_constant_input(scope: Scope, type_: ArrayType) -> str:
    """Draw an input of equal elements, in half of the cases zeros, and return it as an expression.

    Args:
        scope: Draws the value.
        type_: Type of the input.
    """
    table = list_special_values(type_.dtype)
    value = spell_number(scope.choose(table) if scope.flip() else table[0])
    if not type_.shape:
        return make_array(value, type_.dtype)
    return make_array(f"np.resize([{value}], {type_.shape})", type_.dtype)


@cache
def list_special_values(dtype: str) -> tuple[complex, ...]:
    """Return the values of a dtype at which operations have special cases, the simplest first."""
    kind = get_kind(dtype)
    if kind == "bool":
        return (False, True)
    if kind == "float":
        return (*FLOATS, LARGEST[dtype], -LARGEST[dtype], TINY[dtype], -TINY[dtype])
    if kind == "complex":
        part = PARTS[dtype]
        parts = (*COMPLEX_PARTS, LARGEST[part], TINY[part])
        return tuple(complex(*pair) for pair in itertools.product(parts, parts))
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    smallest = 0 if kind == "uint" else -(2 ** (bits - 1))
    largest = smallest + 2**bits - 1
    inner = [number for number in INTEGERS if smallest <= number <= largest]
    return tuple(dict.fromkeys((*inner, largest, smallest, largest - 1, smallest + 1)))
