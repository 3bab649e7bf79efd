"""How elements lie in memory is the compiler's choice: what a bitcast does with it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.ir.graph import Tensor
from conformance.ir.normal.rewriting import type_of

if TYPE_CHECKING:
    from conformance.ir.graph import Instruction, Module, Type

FROM_ORDER: Final = "from_order"
"""Attribute of a reshape that moves elements as well: the order in which it takes dimensions."""


def resolve_bitcasts(module: Module) -> None:
    """Say by reshape and transpose what a bitcast says by the layouts of operand and result.

    Args:
        module: Rewritten in place; its types still have layouts.
    """
    if module.kind != "hlo":
        return
    for instruction in module.walk():
        if instruction.op == "bitcast":
            _resolve(instruction)


def drop_layouts(module: Module) -> None:
    """Take the layouts out of all types; memory spaces stay.

    Args:
        module: Rewritten in place.
    """
    stripped: dict[int, tuple[Type, Type]] = {}
    canonical: dict[Type, Type] = {}
    for instruction in module.walk():
        type_ = instruction.type
        known = stripped.get(id(type_))
        if known is None:
            bare = _bare(type_)
            known = stripped[id(type_)] = (type_, canonical.setdefault(bare, bare))
        instruction.type = known[1]


def _bare(type_: Type) -> Type:
    if isinstance(type_, Tensor):
        return type_._replace(layout="") if type_.layout else type_
    return tuple(_bare(part) for part in type_)


def _resolve(instruction: Instruction) -> None:
    before = type_of((instruction.operands[0], instruction.paths[0]))
    after = instruction.type
    if not isinstance(before, Tensor) or not isinstance(after, Tensor):
        return
    if before.dtype != after.dtype:
        instruction.op = "bitcast-convert"
        return
    old, new = _major_to_minor(before), _major_to_minor(after)
    instruction.op = "reshape"
    if _in_order(before, old) and _in_order(after, new):
        return
    if len(old) == len(new) and _sizes(before, old) == _sizes(after, new):
        order = [0] * len(new)
        for source, target in zip(old, new, strict=True):
            order[target] = source
        instruction.op = "transpose"
        instruction.attributes = {**instruction.attributes, "dimensions": tuple(order)}
        return
    # Both moved and reshaped: the orders themselves are part of what it does.
    orders = {FROM_ORDER: _seen(before, old), "to_order": _seen(after, new)}
    instruction.attributes = {**instruction.attributes, **orders}


def _major_to_minor(tensor: Tensor) -> tuple[int, ...]:
    """Return the dimensions from the slowest to the fastest varying."""
    text = tensor.layout.partition(":")[0].strip()
    rank = len(tensor.shape)
    if not text:
        return tuple(range(rank))
    order = tuple(int(part) for part in text.split(",") if part.strip().isdigit())
    return order[::-1] if sorted(order) == list(range(rank)) else tuple(range(rank))


def _sizes(tensor: Tensor, order: tuple[int, ...]) -> list[int | str]:
    return [tensor.shape[dimension] for dimension in order]


def _in_order(tensor: Tensor, order: tuple[int, ...]) -> bool:
    """Say whether the dimensions lie in order, those of size 1 left aside."""
    seen = _seen(tensor, order)
    return list(seen) == sorted(seen)


def _seen(tensor: Tensor, order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dimension for dimension in order if tensor.shape[dimension] != 1)
