"""Simplification: folds of instructions that change nothing, and dead and repeated work.

Dead-code elimination (DCE) and common-subexpression elimination (CSE) are those of any compiler, as
far as `Purity` allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.fingerprint import Fingerprints
from conformance.ir.graph import Tensor
from conformance.ir.normal.layouts import FROM_ORDER
from conformance.ir.normal.rewriting import get_type, rewrite
from conformance.ir.vocabulary import Purity

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.graph import Instruction, Module, Value

    Fold = Callable[[Instruction], Value | None]

# `a > b` is `b < a`; `EQ` and `NE` are commutative.
_MIRRORED = {"GT": "LT", "GE": "LE"}
_MIRRORED_OPS = {"gt": "lt", "ge": "le"}


def fold_copies(module: Module) -> None:
    """Fold copies that do not move data between memory spaces.

    Args:
        module: Rewritten in place.
    """
    _apply_folds(module, {"copy": _fold_unchanged, "convert": _fold_unchanged})


def fold_reshapes(module: Module) -> None:
    """Merge reshapes in a row, and fold those that change no shape.

    A bitcast of the same element type is a reshape (see `conformance.ir.normal.layouts`), any other
    is a bitcast-convert.

    Args:
        module: Rewritten in place.
    """
    _apply_folds(
        module, {"bitcast": _fold_reshape, "reshape": _fold_reshape, "transpose": _fold_transpose}
    )


def fold_identities(module: Module) -> None:
    """Fold operations that return their operand, such as full slices and powers of 1.

    A jaxpr's `pvary` changes the type of a value for `shard_map`, and computes nothing.

    Args:
        module: Rewritten in place.
    """
    _apply_folds(module, _IDENTITIES)


def order_comparisons(module: Module) -> None:
    """Replace greater by less in comparisons: `a > b` becomes `b < a`.

    Args:
        module: Rewritten in place.
    """
    for instruction in module.walk():
        attributes = instruction.attributes
        if instruction.op == "compare":
            name = "direction" if "direction" in attributes else "comparison_direction"
            mirrored = _MIRRORED.get(str(attributes.get(name)))
            if mirrored is None:
                continue
            instruction.attributes = {**attributes, name: mirrored}
        elif instruction.op in _MIRRORED_OPS:
            # A jaxpr has a primitive for each direction.
            instruction.op = _MIRRORED_OPS[instruction.op]
        else:
            continue
        instruction.inputs = instruction.inputs[::-1]


def eliminate_dead_code(module: Module) -> None:
    """Drop pure instructions whose results are unused.

    Args:
        module: Rewritten in place.
    """
    pure = Purity()
    for computation in module.find_reachable():
        read: set[Instruction] = {producer for producer, _ in computation.results}
        kept = []
        # Backwards, so that the operands of a dropped instruction are unread in the same walk.
        for instruction in reversed(computation.instructions):
            if (
                instruction in read
                or instruction.op == "parameter"
                or not pure.is_pure(instruction)
            ):
                read.update(instruction.operands)
                kept.append(instruction)
        if len(kept) < len(computation.instructions):
            computation.instructions = kept[::-1]
        pure.add(computation)


def eliminate_common_subexpressions(module: Module) -> None:
    """Merge equal pure instructions.

    Collectives, random numbers, custom calls and their callers are never merged.

    Args:
        module: Rewritten in place.
    """
    hashes, pure = Fingerprints(commutative=True), Purity()
    first: dict[bytes, Instruction] = {}

    def merge(instruction: Instruction, _: list[Instruction]) -> Value | None:
        # Hashed even if impure: its readers need the hash.
        same = first.setdefault(hashes.add_instruction(instruction), instruction)
        if same is instruction or instruction.op == "parameter" or not pure.is_pure(instruction):
            return None
        return same, ()

    for computation in module.find_reachable():
        first.clear()  # an instruction reads only those of the same computation
        rewrite(computation, merge)
        # After the merge: callers compare the computation by its remaining instructions.
        hashes.finish_computation(computation)
        pure.add(computation)


def _apply_folds(module: Module, rules: dict[str, Fold]) -> None:
    def fold(instruction: Instruction, _: list[Instruction]) -> Value | None:
        rule = rules.get(instruction.op)
        return rule(instruction) if rule is not None else None

    for computation in module.find_reachable():
        # Most computations have no such operation, and a rewrite visits every operand.
        if any(instruction.op in rules for instruction in computation.instructions):
            rewrite(computation, fold)


def _fold_unchanged(instruction: Instruction) -> Value | None:
    return _fold_whole(instruction) if len(instruction.operands) == 1 else None


def _fold_whole(instruction: Instruction, place: int = 0) -> Value | None:
    """Return an operand if it has the type of the result: a full slice can only begin at 0."""
    source = instruction.operands[place], instruction.paths[place]
    return source if get_type(source) == instruction.type else None


def _fold_broadcast(instruction: Instruction) -> Value | None:
    names = ("dimensions", "broadcast_dimensions")
    dimensions = next((v for n, v in instruction.attributes.items() if n in names), None)
    # A broadcast to the same shape along dimensions 1 and 0 is a transpose.
    return _fold_unchanged(instruction) if _is_in_order(dimensions) else None


def _fold_transpose(instruction: Instruction) -> Value | None:
    dimensions = instruction.attributes.get("dimensions", instruction.attributes.get("permutation"))
    return instruction.inputs[0] if _is_in_order(dimensions) else None


def _is_in_order(dimensions: object) -> bool:
    return isinstance(dimensions, tuple) and dimensions == tuple(range(len(dimensions)))


def _fold_reshape(instruction: Instruction) -> Value | None:
    if FROM_ORDER in instruction.attributes:
        return None  # it also moves elements
    source = instruction.inputs[0]
    before, after = get_type(source), instruction.type
    if before == after:
        return source
    if isinstance(before, Tensor) and isinstance(after, Tensor) and before.dtype != after.dtype:
        instruction.op = "bitcast-convert"
        return None
    instruction.op = "reshape"
    inner = source[0]
    if inner.op == "reshape" and not source[1] and FROM_ORDER not in inner.attributes:
        instruction.inputs = inner.inputs
        return _fold_unchanged(instruction)
    return None


_IDENTITIES: dict[str, Fold] = {
    **dict.fromkeys(("broadcast", "broadcast-in-dim", "broadcast_in_dim"), _fold_broadcast),
    **dict.fromkeys(("concatenate", "slice", "pvary"), _fold_unchanged),
    **dict.fromkeys(("dynamic-slice", "dynamic_slice"), _fold_whole),
    **dict.fromkeys(
        ("dynamic-update-slice", "dynamic_update_slice"), lambda node: _fold_whole(node, place=1)
    ),
    "integer_pow": lambda node: _fold_unchanged(node) if node.attributes.get("y") == 1 else None,
}
