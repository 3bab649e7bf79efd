"""A pass over StableHLO that gives Shardy and GSPMD the same operations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from conformance.ir.graph import Sharding, Tensor
from conformance.ir.normal.attributes import canonicalise_sharding
from conformance.ir.normal.inlining import splice
from conformance.ir.normal.rewriting import pack, rewrite

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Instruction, Module, Type, Value

CONSTRAINT: Final = "sharding-constraint"
TO_SHARD: Final = "full-to-shard"
TO_FULL: Final = "shard-to-full"

_TARGETS: Final = {
    "Sharding": CONSTRAINT,
    "SPMDFullToShardShape": TO_SHARD,
    "SPMDShardToFullShape": TO_FULL,
}
# A reshard is a constraint of an explicit axis: both set the sharding of a value.
_SHARDY: Final = {"sdy.sharding_constraint": CONSTRAINT, "sdy.reshard": CONSTRAINT}
_PARTITIONING: Final = frozenset({CONSTRAINT, TO_SHARD, TO_FULL})
_MANUAL = Sharding("manual")


def unify_partitioning(module: Module) -> None:
    """Replace the regions of Shardy and the custom calls of GSPMD by three operations.

    `sharding-constraint` sets the sharding of a value, `full-to-shard` and `shard-to-full` begin
    and end the code that sees the shard of a device; each has the attribute `sharding`.

    Args:
        module: Rewritten in place.
    """
    # Optimised HLO is partitioned, and a jaxpr has `shard_map` as a primitive.
    if module.kind == "stablehlo":
        for computation in module.find_reachable():
            rewrite(computation, _unify)


def _unify(instruction: Instruction, output: list[Instruction]) -> Value | None:
    _rename(instruction)
    if instruction.op != "sdy.manual_computation" or not _is_complete(instruction):
        _merge_constraint(instruction)
        return None
    results = _inline_manual_computation(instruction, output)
    if isinstance(instruction.type, Tensor):
        return results[0]
    return pack(output, instruction.name, instruction.type, results)


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
            # GSPMD lists the manual axes around a constraint, Shardy leaves them out.
            groups = ["replicated" if kind == "manual" else kind for kind in sharding.subgroups]
            sharding = canonicalise_sharding(sharding._replace(subgroups=tuple(groups)))
        # The other attributes differ by dialect: targets, notes of propagation, versions of calls.
        instruction.attributes = {"sharding": sharding} if sharding is not None else {}


def _merge_constraint(instruction: Instruction) -> None:
    """Read through a constraint that its reader repeats."""
    if instruction.op not in _PARTITIONING or instruction.operands[0].op != CONSTRAINT:
        return
    before = instruction.operands[0]
    if instruction.op == TO_FULL:
        is_redundant = before.attributes.get("sharding") == _MANUAL
    else:
        is_redundant = instruction.op == TO_SHARD or before.attributes == instruction.attributes
    # The skipped constraint is removed as dead code if nothing else reads it.
    if is_redundant:
        instruction.inputs = before.inputs
    if instruction.op == TO_SHARD:
        # Its own sharding is the manual one; that of the data is in the constraint before it.
        instruction.attributes = before.attributes


def _is_complete(instruction: Instruction) -> bool:
    in_shardings = _split_sharding(instruction.attributes.get("in_shardings"))
    out_shardings = _split_sharding(instruction.attributes.get("out_shardings"))
    region = instruction.bodies[0][1] if len(instruction.bodies) == 1 else None
    captured = instruction.get_number("captured", 0)
    # Shardings that were kept as text cannot be paired with values: the region then stays.
    return (
        region is not None
        and len(in_shardings) + captured == len(instruction.operands)
        and len(out_shardings) == len(region.results)
    )


def _inline_manual_computation(instruction: Instruction, output: list[Instruction]) -> list[Value]:
    """Append the work of a manual computation to other instructions; return its results."""

    def add_crossing(op: str, value: Value, type_: Type, sharding: Attribute) -> Value:
        made = replace(instruction, op=op, type=type_, attributes={"sharding": sharding}, bodies=())
        made.inputs = [value]
        output.append(made)
        return made, ()

    region = instruction.bodies[0][1]
    in_shardings = _split_sharding(instruction.attributes["in_shardings"])
    out_shardings = _split_sharding(instruction.attributes["out_shardings"])
    arguments = instruction.inputs
    # Not strict: captured values follow the arguments, and enter without a crossing.
    for n, (sharding, inner) in enumerate(zip(in_shardings, region.parameters, strict=False)):
        arguments[n] = add_crossing(TO_SHARD, arguments[n], inner.type, sharding)
    # An MLIR region has a single operation around it, so it is moved and not copied.
    results = splice(output, region, arguments, own=True)
    wholes = (instruction.type,) if isinstance(instruction.type, Tensor) else instruction.type
    return [
        add_crossing(TO_FULL, result, whole, sharding)
        for result, sharding, whole in zip(results, out_shardings, wholes, strict=True)
    ]


def _split_sharding(attribute: Attribute) -> tuple[Attribute, ...]:
    if isinstance(attribute, Sharding):
        return attribute.parts if attribute.kind == "tuple" else (attribute,)
    return attribute if isinstance(attribute, tuple) else ()
