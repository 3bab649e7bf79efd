"""Instructions that change nothing a program could see are read through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.graph import Tensor
from conformance.ir.normal.layouts import FROM_ORDER
from conformance.ir.normal.rewriting import redirect, redirect_results, type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.graph import Computation, Instruction, Module
    from conformance.ir.normal.rewriting import Value

    Fold = Callable[[Instruction], Value | None]

_MIRRORED = {"GT": "LT", "GE": "LE"}
_MIRRORED_OPS = {"gt": "lt", "ge": "le"}


def fold_copies(module: Module) -> None:
    """Read through copies, unless they move data between memory spaces.

    Args:
        module: Rewritten in place.
    """
    _fold_everywhere(module, {"copy": _unchanged, "convert": _unchanged})


def fold_reshapes(module: Module) -> None:
    """Make one reshape of several in a row, and none of one that changes no shape.

    A bitcast of the same element type is a reshape (its layout said how; see
    `conformance.ir.normal.layouts`), one of another is a bitcast-convert.

    Args:
        module: Rewritten in place.
    """
    rules: dict[str, Fold] = {
        "bitcast": _reshape,
        "reshape": _reshape,
        "transpose": _transpose,
    }
    _fold_everywhere(module, rules)


def fold_identities(module: Module) -> None:
    """Read through what takes all of a value and puts it where it was, or to the power of one.

    A jaxpr's `pvary` says how a value may be used, and computes nothing.

    Args:
        module: Rewritten in place.
    """
    rules: dict[str, Fold] = {
        "broadcast": _broadcast,
        "broadcast-in-dim": _broadcast,
        "broadcast_in_dim": _broadcast,
        "concatenate": _unchanged,
        "slice": _unchanged,
        "dynamic-slice": _whole_slice,
        "dynamic_slice": _whole_slice,
        "dynamic-update-slice": _whole_update,
        "dynamic_update_slice": _whole_update,
        "integer_pow": _first_power,
        "pvary": _unchanged,
    }
    _fold_everywhere(module, rules)


def order_comparisons(module: Module) -> None:
    """Spell every comparison with less: `a > b` is `b < a`.

    Args:
        module: Rewritten in place.
    """
    for computation in module.reachable():
        for instruction in computation.instructions:
            if instruction.op == "compare":
                _mirror(instruction)
            elif instruction.op in _MIRRORED_OPS:
                instruction.op = _MIRRORED_OPS[instruction.op]
                _swap(instruction)


def _mirror(comparison: Instruction) -> None:
    attributes = comparison.attributes
    name = "direction" if "direction" in attributes else "comparison_direction"
    mirrored = _MIRRORED.get(str(attributes.get(name)))
    if mirrored is not None:
        comparison.attributes = {**attributes, name: mirrored}
        _swap(comparison)


def _swap(instruction: Instruction) -> None:
    instruction.operands = instruction.operands[::-1]
    instruction.paths = instruction.paths[::-1]


def _fold_everywhere(module: Module, rules: dict[str, Fold]) -> None:
    for computation in module.reachable():
        _fold(computation, rules)


def _fold(computation: Computation, rules: dict[str, Fold]) -> None:
    replaced: dict[Instruction, Value] = {}
    for instruction in computation.instructions:
        if replaced:
            redirect(instruction, replaced)
        rule = rules.get(instruction.op)
        stead = rule(instruction) if rule is not None else None
        if stead is not None:
            replaced[instruction] = stead
    if replaced:
        computation.instructions = [i for i in computation.instructions if i not in replaced]
        redirect_results(computation, replaced)


def _source(instruction: Instruction) -> Value:
    return instruction.operands[0], instruction.paths[0]


def _unchanged(instruction: Instruction) -> Value | None:
    if len(instruction.operands) != 1:
        return None
    source = _source(instruction)
    return source if type_of(source) == instruction.type else None


def _broadcast(instruction: Instruction) -> Value | None:
    names = ("dimensions", "broadcast_dimensions")
    said = next((v for n, v in instruction.attributes.items() if n in names), None)
    # One to the same shape may still turn it: a broadcast along dimensions 1 and 0 transposes.
    in_order = isinstance(said, tuple) and said == tuple(range(len(said)))
    return _unchanged(instruction) if in_order else None


def _whole_slice(instruction: Instruction) -> Value | None:
    # Wherever it begins: a start that leaves no room is moved to 0.
    source = _source(instruction)
    return source if type_of(source) == instruction.type else None


def _whole_update(instruction: Instruction) -> Value | None:
    update = instruction.operands[1], instruction.paths[1]
    return update if type_of(update) == instruction.type else None


def _first_power(instruction: Instruction) -> Value | None:
    return _unchanged(instruction) if instruction.attributes.get("y") == 1 else None


def _reshape(instruction: Instruction) -> Value | None:
    if FROM_ORDER in instruction.attributes:
        return None  # It moves elements as well.
    source = _source(instruction)
    before, after = type_of(source), instruction.type
    if before == after:
        return source
    if isinstance(before, Tensor) and isinstance(after, Tensor) and before.dtype != after.dtype:
        instruction.op = "bitcast-convert"
        return None
    instruction.op = "reshape"
    inner = source[0]
    if inner.op == "reshape" and not source[1] and FROM_ORDER not in inner.attributes:
        instruction.operands, instruction.paths = inner.operands, inner.paths
        return _unchanged(instruction)
    return None


def _transpose(instruction: Instruction) -> Value | None:
    dimensions = instruction.attributes.get("dimensions", instruction.attributes.get("permutation"))
    if isinstance(dimensions, tuple) and dimensions == tuple(range(len(dimensions))):
        return _source(instruction)
    return None
