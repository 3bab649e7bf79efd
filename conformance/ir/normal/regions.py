"""Regions that use values from around them get these as operands and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.normal.rewriting import copy_instruction, get_type, make_parameter, redirect_all
from conformance.ir.vocabulary import CONSTANTS

if TYPE_CHECKING:
    from conformance.ir.graph import Computation, Instruction, Module, Value


def close_regions(module: Module) -> None:
    """Pass what a region uses from around it as an operand; constants are made again inside.

    An MLIR region may read any value that is visible where it stands. Here every computation is
    a function of its parameters: what is read from around becomes a further operand, the same
    for all regions of an instruction, and `captured` says how many there are.

    Args:
        module: Rewritten in place.
    """
    for computation in module.reachable():
        for instruction in computation.instructions:
            if instruction.bodies:
                _close(instruction)


def _close(instruction: Instruction) -> None:
    """Close the regions of one instruction; those within them are closed already."""
    regions = [inner for role, inner in instruction.bodies if role != "callee"]
    insides = [set(region.instructions) for region in regions]
    for region, inside in zip(regions, insides, strict=True):
        _make_constants_again(region, inside)
    captured: dict[Value, int] = {}
    for region, inside in zip(regions, insides, strict=True):
        for value in _list_read(region):
            if value[0] not in inside:
                captured.setdefault(value, len(captured))
    if not captured:
        return
    for region, inside in zip(regions, insides, strict=True):
        _add_parameters(region, inside, captured)
    instruction.inputs = [*instruction.inputs, *captured]
    instruction.attributes = {**instruction.attributes, "captured": len(captured)}


def _list_read(region: Computation) -> list[Value]:
    values = [value for instruction in region.instructions for value in instruction.inputs]
    return [*values, *region.results]


def _make_constants_again(region: Computation, inside: set[Instruction]) -> None:
    made: dict[Instruction, Instruction] = {}
    for producer, _ in _list_read(region):
        if producer.op in CONSTANTS and producer not in inside and producer not in made:
            made[producer] = copy_instruction(producer)
    if not made:
        return
    redirect_all(region, {old: (new, ()) for old, new in made.items()})
    region.instructions[:0] = made.values()
    inside.update(made.values())


def _add_parameters(
    region: Computation, inside: set[Instruction], captured: dict[Value, int]
) -> None:
    count = len(region.parameters)
    made = {
        value: make_parameter(count + number, get_type(value)) for value, number in captured.items()
    }
    given: dict[Value, Value] = {value: (one, ()) for value, one in made.items()}
    for instruction in region.instructions:
        if all(operand in inside for operand in instruction.operands):
            continue
        instruction.inputs = [given.get(value, value) for value in instruction.inputs]
    region.results = [given.get(value, value) for value in region.results]
    region.instructions[:0] = made.values()
    inside.update(made.values())
