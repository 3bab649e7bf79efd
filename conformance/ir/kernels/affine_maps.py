"""Affine maps in bytecode, spelled as MLIR spells them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from conformance.ir.kernels.bytecode import BytecodeError

if TYPE_CHECKING:
    from conformance.ir.kernels.bytecode import Cursor

MOST: Final = 1 << 10
"""Limit of the dimensions of a map, and of the parts of an expression."""
# The codes of expressions; 0 to 2 are a dimension, a symbol and a constant.
_OPERATORS: Final = {3: "+", 4: "*", 5: "mod", 6: "floordiv", 7: "ceildiv"}


class _Map(IntEnum):
    IDENTITY = 0
    PERMUTATION = 1
    PROJECTION = 2
    GENERAL = 3


def read_affine_map(cursor: Cursor) -> str:
    """Read `affine_map<(d0, d1) -> (d1, d0)>`.

    Raises:
        BytecodeError: If the bytes are no affine map, or it is too large.
    """
    header = cursor.read_varint()
    count, kind, symbols = header >> 2, _Map(header & 3), 0
    # A few bytes must not become a text of gigabytes.
    if count > MOST:
        raise BytecodeError(f"at most {MOST} dimensions")
    names = [f"d{number}" for number in range(count)]
    if kind is _Map.IDENTITY:
        results = names
    elif kind is _Map.PERMUTATION:
        results = [f"d{cursor.read_varint()}" for _ in names]
    elif kind is _Map.PROJECTION:
        results = [f"d{number}" for number in cursor.read_varints()]
    else:
        symbols = cursor.read_varint()
        if symbols > MOST:
            raise BytecodeError(f"at most {MOST} symbols")
        results = [_read_expression(cursor) for _ in range(cursor.read_varint())]
    listed = f"[{', '.join([f's{number}' for number in range(symbols)])}]" if symbols else ""
    return f"affine_map<({', '.join(names)}){listed} -> ({', '.join(results)})>"


def _read_expression(cursor: Cursor) -> str:
    """Read an expression in prefix order, and return it in infix order."""
    # Not recursive: the depth of an expression is limited only by the number of its parts.
    tokens: list[str] = []
    missing = 1
    while missing:
        kind = cursor.read_varint()
        if len(tokens) > MOST:
            raise BytecodeError(f"at most {MOST} parts")
        # An operator completes one operand and takes two.
        missing += 1 if kind in _OPERATORS else -1
        match kind:
            case 0:
                tokens.append(f"d{cursor.read_varint()}")
            case 1:
                tokens.append(f"s{cursor.read_varint()}")
            case 2:
                tokens.append(str(cursor.read_signed()))
            case _ if kind in _OPERATORS:
                tokens.append(_OPERATORS[kind])
            case _:
                raise BytecodeError("an expression")
    return _to_infix(tokens)


def _to_infix(tokens: list[str]) -> str:
    operands: list[tuple[str, bool]] = []  # each with whether it is a sum
    for token in reversed(tokens):
        if token not in _OPERATORS.values():
            operands.append((token, False))
            continue
        (left, left_is_sum), (right, right_is_sum) = operands.pop(), operands.pop()
        match token:
            # MLIR stores `d0 - 1` as `d0 + -1`, and prints a difference.
            case "+" if right.startswith("-") and not right_is_sum:
                operands.append((f"{left} - {right[1:]}", True))
            case "+":
                operands.append((f"{left} + {right}", True))
            case _:
                left = f"({left})" if left_is_sum else left
                right = f"({right})" if right_is_sum else right
                operands.append((f"{left} {token} {right}", False))
    return operands[0][0]
