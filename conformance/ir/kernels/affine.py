"""Affine maps in bytecode, spelled as MLIR spells them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from conformance.ir.kernels.cursor import NotReadError

if TYPE_CHECKING:
    from conformance.ir.kernels.cursor import Cursor

MOST: Final = 1 << 10
"""How many dimensions a map may have, and how many parts an expression."""
_SIGNS: Final = {3: "+", 4: "*", 5: "mod", 6: "floordiv", 7: "ceildiv"}


class _Map(IntEnum):
    IDENTITY = 0
    PERMUTATION = 1
    PROJECTION = 2
    GENERAL = 3


class _Leaf(IntEnum):
    DIMENSION = 0
    SYMBOL = 1
    CONSTANT = 2


def affine_map(cursor: Cursor) -> str:
    """Read `affine_map<(d0, d1) -> (d1, d0)>`.

    Raises:
        NotReadError: If it is not as documented, or too large.
    """
    header = cursor.varint()
    count, kind, symbols = header >> 2, _Map(header & 3), 0
    if count > MOST:
        raise NotReadError(f"at most {MOST} dimensions")
    names = [f"d{number}" for number in range(count)]
    if kind is _Map.IDENTITY:
        results = names
    elif kind is _Map.PERMUTATION:
        results = [f"d{cursor.varint()}" for _ in names]
    elif kind is _Map.PROJECTION:
        results = [f"d{cursor.varint()}" for _ in range(cursor.varint())]
    else:
        symbols = cursor.varint()
        if symbols > MOST:
            raise NotReadError(f"at most {MOST} symbols")
        results = [_expression(cursor) for _ in range(cursor.varint())]
    said = f"[{', '.join([f's{number}' for number in range(symbols)])}]" if symbols else ""
    return f"affine_map<({', '.join(names)}){said} -> ({', '.join(results)})>"


def _expression(cursor: Cursor) -> str:
    """Read an expression, operators before what they take."""
    tokens: list[str] = []
    missing = 1
    while missing:
        kind = cursor.varint()
        if len(tokens) > MOST:
            raise NotReadError(f"at most {MOST} parts")
        if kind in _SIGNS:
            tokens.append(_SIGNS[kind])
            missing += 1
            continue
        missing -= 1
        if kind == _Leaf.DIMENSION:
            tokens.append(f"d{cursor.varint()}")
        elif kind == _Leaf.SYMBOL:
            tokens.append(f"s{cursor.varint()}")
        elif kind == _Leaf.CONSTANT:
            tokens.append(str(cursor.signed()))
        else:
            raise NotReadError("an expression")
    return _infix(tokens)


def _infix(tokens: list[str]) -> str:
    """Return an expression with its operators between what they take."""
    operands: list[tuple[str, bool]] = []
    for token in reversed(tokens):
        if token not in _SIGNS.values():
            operands.append((token, False))
            continue
        (left, left_sum), (right, right_sum) = operands.pop(), operands.pop()
        if token == "+":  # noqa: S105 - a sign
            negative = right.startswith("-") and not right_sum
            text = f"{left} - {right[1:]}" if negative else f"{left} + {right}"
            operands.append((text, True))
            continue
        left = f"({left})" if left_sum else left
        right = f"({right})" if right_sum else right
        operands.append((f"{left} {token} {right}", False))
    return operands[0][0]
