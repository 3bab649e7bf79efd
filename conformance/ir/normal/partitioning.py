"""Shardy and GSPMD say the same in StableHLO: where data is cut, and where code sees its part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.ir.graph import Instruction, Sharding, Tensor
from conformance.ir.normal.devices import canonical_sharding
from conformance.ir.normal.rewriting import (
    is_tuple,
    operands_of,
    redirect,
    redirect_results,
    resolve,
    set_operands,
)

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Computation, Module, Type
    from conformance.ir.normal.rewriting import Value

CONSTRAINT: Final = "sharding-constraint"
TO_SHARD: Final = "full-to-shard"
TO_FULL: Final = "shard-to-full"

_TARGETS: Final = {
    "Sharding": CONSTRAINT,
    "SPMDFullToShardShape": TO_SHARD,
    "SPMDShardToFullShape": TO_FULL,
}
_SHARDY: Final = {"sdy.sharding_constraint": CONSTRAINT, "sdy.reshard": CONSTRAINT}
_MANUAL = Sharding("manual")


def unify_partitioning(module: Module) -> None:
    """Say with three operations what Shardy says with regions and GSPMD with custom calls.

    `sharding-constraint` says how a value is cut, `full-to-shard` and `shard-to-full` where code
    begins and ends to see one device's part of it; each has the attribute `sharding`.

    Args:
        module: Rewritten in place.
    """
    if module.kind != "stablehlo":
        return
    for computation in module.reachable():
        replaced: dict[Instruction, Value] = {}
        kept: list[Instruction] = []
        for instruction in computation.instructions:
            redirect(instruction, replaced)
            _rename(instruction)
            if instruction.op == "sdy.manual_computation" and _is_whole(instruction):
                made, results = _opened(instruction)
                kept += made
                packed = Instruction(name=instruction.name, op="tuple", type=instruction.type)
                set_operands(packed, results)
                if is_tuple(instruction.type):
                    kept.append(packed)
                    replaced[instruction] = (packed, ())
                else:
                    replaced[instruction] = results[0]
            else:
                kept.append(instruction)
                _take_over_constraint(instruction)
        computation.instructions = kept
        redirect_results(computation, replaced)


def _rename(instruction: Instruction) -> None:
    attributes = instruction.attributes
    target = attributes.get("custom_call_target")
    op = _SHARDY.get(instruction.op)
    if instruction.op == "custom-call" and isinstance(target, str):
        op = _TARGETS.get(target)
    if op is not None:
        instruction.op = op
        sharding = attributes.get("sharding")
        if op == CONSTRAINT and isinstance(sharding, Sharding):
            sharding = _free_of_manual(sharding)
        instruction.attributes = {"sharding": sharding} if sharding is not None else {}


def _free_of_manual(sharding: Sharding) -> Sharding:
    """Return a sharding without the axes that are manual where it stands, as Shardy says it."""
    groups = tuple("replicated" if what == "manual" else what for what in sharding.subgroups)
    return canonical_sharding(sharding._replace(subgroups=groups))


def _take_over_constraint(instruction: Instruction) -> None:
    """Let `full-to-shard` say how the data is cut, as the constraint before it does."""
    if instruction.op == TO_SHARD and instruction.operands[0].op == CONSTRAINT:
        before = instruction.operands[0]
        instruction.attributes = before.attributes
        instruction.operands, instruction.paths = before.operands, before.paths
    elif instruction.op == CONSTRAINT and _repeats(instruction):
        before = instruction.operands[0]
        instruction.operands, instruction.paths = before.operands, before.paths
    elif instruction.op == TO_FULL and instruction.operands[0].op == CONSTRAINT:
        before = instruction.operands[0]
        if before.attributes.get("sharding") == _MANUAL:
            instruction.operands, instruction.paths = before.operands, before.paths


def _repeats(instruction: Instruction) -> bool:
    before = instruction.operands[0]
    return before.op == CONSTRAINT and before.attributes == instruction.attributes


def _is_whole(instruction: Instruction) -> bool:
    given = _shardings(instruction.attributes.get("in_shardings"))
    taken = _shardings(instruction.attributes.get("out_shardings"))
    region = instruction.bodies[0][1] if len(instruction.bodies) == 1 else None
    captured = instruction.attributes.get("captured", 0)
    assert isinstance(captured, int)  # noqa: S101 - set by close_regions
    return (
        region is not None
        and len(given) + captured == len(instruction.operands)
        and len(taken) == len(region.results)
    )


def _opened(instruction: Instruction) -> tuple[list[Instruction], list[Value]]:
    region = instruction.bodies[0][1]
    given = _shardings(instruction.attributes["in_shardings"])
    made: list[Instruction] = []
    arguments: list[Value] = []
    parameters = region.parameters
    for number, value in enumerate(operands_of(instruction)):
        if number >= len(given):
            arguments.append(value)
            continue
        cut = _boundary(TO_SHARD, value, parameters[number].type, given[number], instruction)
        made.append(cut)
        arguments.append((cut, ()))
    replaced = dict(zip(parameters, arguments, strict=True))
    for inner in region.instructions:
        if inner.op != "parameter":
            redirect(inner, replaced)
            made.append(inner)
    taken = _shardings(instruction.attributes["out_shardings"])
    wholes = (instruction.type,) if isinstance(instruction.type, Tensor) else instruction.type
    results: list[Value] = []
    for result, sharding, whole in zip(_results(region, replaced), taken, wholes, strict=True):
        joined = _boundary(TO_FULL, result, whole, sharding, instruction)
        made.append(joined)
        results.append((joined, ()))
    return made, results


def _results(region: Computation, replaced: dict[Instruction, Value]) -> list[Value]:
    return [resolve(value, replaced) for value in region.results]


def _boundary(
    op: str, value: Value, type_: Type, sharding: Attribute, of: Instruction
) -> Instruction:
    made = Instruction(name=of.name, op=op, type=type_, attributes={"sharding": sharding})
    made.origin, made.line = of.origin, of.line
    set_operands(made, [value])
    return made


def _shardings(attribute: Attribute) -> tuple[Attribute, ...]:
    if isinstance(attribute, Sharding):
        return attribute.parts if attribute.kind == "tuple" else (attribute,)
    return attribute if isinstance(attribute, tuple) else ()
