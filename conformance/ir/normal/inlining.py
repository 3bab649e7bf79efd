"""Passes that inline calls and fusions, and fold asynchronous pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.ir.normal.rewriting import (
    copy_instruction,
    get_type,
    is_growth_bounded,
    is_tuple,
    pack,
    redirect,
    resolve,
    rewrite,
)
from conformance.ir.vocabulary import runs_on_host

if TYPE_CHECKING:
    from conformance.ir.graph import Computation, Instruction, Module, Value

CALLS = {
    "hlo": frozenset({"fusion", "call"}),
    "stablehlo": frozenset({"call", "composite"}),
    "jaxpr": frozenset({"jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"}),
}
"""Instructions that are equivalent to their callee, by kind of IR."""

# The roles of a callee; a custom derivative also has bodies for its rules, which do not run.
_ROLES = ("calls", "to_apply", "callee", "decomposition", "jaxpr", "call", "fun")
_MARKS = "frontend_attributes"
_START, _DONE, _UPDATE = "-start", "-done", "-update"
# An attribute about the tuple of a start, which the plain operation does not have.
_OF_THE_START = "output_to_operand_aliasing"


def fold_async(module: Module) -> None:
    """Replace each start and its done by the plain operation, at the place of the done.

    An `async-start`, which calls a computation, becomes a call of it.

    Args:
        module: Rewritten in place.
    """
    for computation in module.find_reachable():
        if any(node.op.endswith(_DONE) for node in computation.instructions):
            _fold_async(computation)


def _fold_async(computation: Computation) -> None:
    awaited: set[Instruction] = set()

    def fold(instruction: Instruction, output: list[Instruction]) -> Value | None:
        start = _find_start(instruction)
        if start is None:
            return None
        awaited.add(start)
        op = start.op.removesuffix(_START)
        attributes = {k: v for k, v in start.attributes.items() if k != _OF_THE_START}
        # A generic start wraps a computation, and a call of it is inlined later.
        op = "call" if op == "async" else op
        output.append(replace(start, op=op, type=instruction.type, attributes=attributes))
        return output[-1], ()

    rewrite(computation, fold)
    if awaited:
        output = computation.instructions
        # A start that another instruction reads, or that nothing awaits, must stay.
        read = {o for node in output for o in node.operands if not node.op.endswith(_UPDATE)}
        computation.instructions = [
            node
            for node in output
            if node in read or not (node in awaited or node.op.endswith(_UPDATE))
        ]


def _find_start(done: Instruction) -> Instruction | None:
    if not done.op.endswith(_DONE) or not done.operands:
        return None
    start = done.operands[0]
    while start.op.endswith(_UPDATE) and start.operands:
        start = start.operands[0]
    # A send or a recv has a done as well, but starts under its own name.
    return start if start.op.endswith(_START) else None


def inline_calls(module: Module) -> None:
    """Replace calls and fusions by the instructions of their callees.

    A call marked for the host is kept, because the call itself places the work. Calls of shared
    computations are kept if their copies would make the module too large.

    Args:
        module: Rewritten in place.
    """
    callable_ = CALLS[module.kind]
    # Callees first: a callee is flat by the time its callers inline it.
    order = module.find_reachable()
    # A callee with a single use is moved, not copied: most fusions have one.
    uses = Counter(id(inner) for computation in order for inner in computation.callees)
    shared = is_growth_bounded(order, lambda _: True)

    def inline(instruction: Instruction, output: list[Instruction]) -> Value | None:
        callee = _find_callee(instruction) if instruction.op in callable_ else None
        own = uses[id(callee)] == 1
        if callee is None or not (shared or own):
            return None
        results = splice(output, callee, instruction.inputs, own=own)
        # Only the fusion is a choice of the compiler: its work stays on the host.
        if runs_on_host(instruction):
            _mark(results, instruction)
        # As in HLO, a single result may be the tuple itself, and not its only element.
        whole = len(results) == 1 and is_tuple(get_type(results[0]))
        if is_tuple(instruction.type) and not whole:
            return pack(output, instruction.name, instruction.type, results)
        return results[0]

    for computation in order:
        if any(instruction.op in callable_ for instruction in computation.instructions):
            rewrite(computation, inline)


def _find_callee(instruction: Instruction) -> Computation | None:
    """Return the callee of a call, None if the call is not equivalent to it."""
    if runs_on_host(instruction) and instruction.op != "fusion":
        return None
    found = next((inner for role, inner in instruction.bodies if role in _ROLES), None)
    if found is None or len(found.parameters) != len(instruction.operands):
        return None
    return found


def _mark(results: list[Value], fusion: Instruction) -> None:
    """Copy the host mark of a fusion to the instructions that produce its results."""
    mark = {_MARKS: fusion.attributes[_MARKS]} if _MARKS in fusion.attributes else {}
    for producer, _ in results:
        # The mark of the producer itself has priority; the dictionary may be shared.
        producer.attributes = {**mark, **producer.attributes}


def splice(
    output: list[Instruction], callee: Computation, arguments: list[Value], *, own: bool
) -> list[Value]:
    """Append the instructions of a computation to others, and return its results.

    Args:
        output: The instructions before; appended to.
        callee: The computation.
        arguments: A value for each parameter.
        own: Whether this is its only use: its instructions are then moved, not copied.
    """
    replaced: dict[Instruction, Value] = {}
    for instruction in callee.instructions:
        if instruction.op == "parameter":
            replaced[instruction] = arguments[instruction.get_number("index")]
            continue
        copy = instruction if own else copy_instruction(instruction)
        if copy is not instruction:
            replaced[instruction] = (copy, ())
        redirect(copy, replaced)
        output.append(copy)
    return [resolve(value, replaced) for value in callee.results]
