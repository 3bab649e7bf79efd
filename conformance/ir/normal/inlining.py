"""Calls and fusions become what they call."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from conformance.ir.graph import Computation, Instruction, Module
from conformance.ir.normal.rewriting import (
    copy_of,
    grows_reasonably,
    is_tuple,
    operands_of,
    redirect,
    redirect_results,
    resolve,
    set_operands,
    type_of,
)
from conformance.ir.vocabulary import runs_on_host

if TYPE_CHECKING:
    from conformance.ir.normal.rewriting import Value

CALLS = {
    "hlo": frozenset({"fusion", "call"}),
    "stablehlo": frozenset({"call", "composite"}),
    "jaxpr": frozenset({"jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"}),
}
"""Instructions that mean no more than what they call, by kind of IR."""

_ROLES = ("calls", "to_apply", "callee", "decomposition", "jaxpr", "call", "fun")
_MARKS = "frontend_attributes"


def inline_calls(module: Module) -> None:
    """Replace calls and fusions by the instructions of what they call.

    A call that is marked for the host stays one: being called is what places it. A module
    whose calls multiply beyond reason keeps the calls of shared computations.

    Args:
        module: Rewritten in place.
    """
    callable_ = CALLS[module.kind]
    order = module.reachable()
    uses = Counter(id(inner) for c in order for i in c.instructions for _, inner in i.bodies)
    shared = grows_reasonably(order, lambda _: True)
    for computation in order:
        _inline_into(computation, callable_, uses, shared=shared)


def _callee(
    instruction: Instruction, callable_: frozenset[str], uses: Counter[int], *, shared: bool
) -> Computation | None:
    if instruction.op not in callable_ or len(instruction.bodies) == 0:
        return None
    if runs_on_host(instruction) and instruction.op != "fusion":
        return None
    found = next((inner for role, inner in instruction.bodies if role in _ROLES), None)
    if found is None or len(found.parameters) != len(instruction.operands):
        return None
    return found if shared or uses[id(found)] == 1 else None


def _inline_into(
    computation: Computation, callable_: frozenset[str], uses: Counter[int], *, shared: bool
) -> None:
    if not any(instruction.op in callable_ for instruction in computation.instructions):
        return
    replaced: dict[Instruction, Value] = {}
    kept: list[Instruction] = []
    for instruction in computation.instructions:
        redirect(instruction, replaced)
        callee = _callee(instruction, callable_, uses, shared=shared)
        if callee is None:
            kept.append(instruction)
            continue
        spliced, results = _instance(callee, operands_of(instruction), own=uses[id(callee)] == 1)
        kept += spliced
        if runs_on_host(instruction):
            _mark(results, instruction)
        if is_tuple(instruction.type) and not _is_whole(results):
            packed = Instruction(name=instruction.name, op="tuple", type=instruction.type)
            set_operands(packed, results)
            kept.append(packed)
            replaced[instruction] = (packed, ())
        else:
            replaced[instruction] = results[0]
    computation.instructions = kept
    redirect_results(computation, replaced)


def _mark(results: list[Value], fusion: Instruction) -> None:
    """Let what a fusion gives bear the mark of the host that the fusion bears."""
    mark = {_MARKS: fusion.attributes[_MARKS]} if _MARKS in fusion.attributes else {}
    for producer, _ in results:
        producer.attributes = {**mark, **producer.attributes}


def _is_whole(results: list[Value]) -> bool:
    """Say whether the one result is the tuple itself, as in HLO, and not its only part."""
    return len(results) == 1 and is_tuple(type_of(results[0]))


def _instance(
    callee: Computation, arguments: list[Value], *, own: bool
) -> tuple[list[Instruction], list[Value]]:
    """Return the instructions of a computation applied to arguments, and its results.

    Args:
        callee: The computation.
        arguments: A value for each parameter.
        own: Whether this is its only use: its instructions are then taken, not copied.
    """
    replaced: dict[Instruction, Value] = {}
    made: list[Instruction] = []
    for instruction in callee.instructions:
        if instruction.op == "parameter":
            index = instruction.attributes["index"]
            assert isinstance(index, int)  # noqa: S101 - what a parser always sets
            replaced[instruction] = arguments[index]
            continue
        copy = instruction if own else copy_of(instruction)
        if copy is not instruction:
            replaced[instruction] = (copy, ())
        redirect(copy, replaced)
        made.append(copy)
    return made, [resolve(value, replaced) for value in callee.results]
