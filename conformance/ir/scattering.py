"""How libtpu writes a reduce-scatter: an all-reduce of which each device keeps its part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.ir.graph import Instruction, Tensor

if TYPE_CHECKING:
    from conformance.ir.graph import Computation, Module

_MOVES: Final = frozenset({"bitcast", "reshape", "transpose", "copy", "convert"})


def reduce_scatters(module: Module) -> dict[Instruction, Instruction]:
    """Return the reduce-scatter that an all-reduce is, for those that are.

    A TPU has one operation for both: a custom fusion that reduces and then slices. The text shows
    an all-reduce in it, yet no device receives more than its part.

    Args:
        module: In the form `structure`.
    """
    found = {}
    for instruction in module.walk():
        if instruction.op == "fusion" and instruction.attributes.get("kind") == "kCustom":
            inner = dict(instruction.bodies).get("calls")
            reduced = None if inner is None else _sliced(inner)
            if reduced is not None:
                found[reduced] = _scattered(reduced, instruction)
    return found


def _sliced(computation: Computation) -> Instruction | None:
    """Return the all-reduce whose slice a computation returns."""
    instruction, sliced = computation.results[0][0], False
    while instruction.op == "dynamic-slice" or instruction.op in _MOVES:
        sliced = sliced or instruction.op == "dynamic-slice"
        instruction = instruction.operands[0]
    return instruction if sliced and instruction.op == "all-reduce" else None


def _scattered(reduced: Instruction, fusion: Instruction) -> Instruction:
    attributes = dict(reduced.attributes)
    whole, own = _shape(reduced), _shape(fusion)
    if len(whole) == len(own):
        attributes["dimensions"] = tuple(n for n, size in enumerate(own) if size != whole[n])
    return Instruction(
        name=reduced.name,
        op="reduce-scatter",
        type=fusion.type,
        operands=reduced.operands,
        paths=reduced.paths,
        attributes=attributes,
        bodies=reduced.bodies,
        origin=reduced.origin,
        line=reduced.line,
    )


def _shape(instruction: Instruction) -> tuple[int | str, ...]:
    return instruction.type.shape if isinstance(instruction.type, Tensor) else ()
