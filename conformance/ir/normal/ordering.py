"""The slots of loops and branches in an order that no compiler chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.fingerprint import Fingerprints
from conformance.ir.normal.rewriting import operands_of, set_operands
from conformance.ir.normal.slots import reorder, slots_of
from conformance.ir.normal.symmetry import Contexts, Uses, told_apart
from conformance.ir.vocabulary import CONTROL_FLOW, Purity

if TYPE_CHECKING:
    from conformance.ir.graph import Computation, Instruction, Module
    from conformance.ir.normal.rewriting import Value
    from conformance.ir.normal.slots import Slots


def order_slots(module: Module) -> Fingerprints:
    """Sort what loops carry, what loops, branches and regions capture, what sums add.

    A carried slot is known by its initial value and, where several begin alike, by what a step
    makes of it; a captured one by its value. So are the operands of commutative operations.

    Args:
        module: Rewritten in place, its slots named.

    Returns:
        The hashes of the module as it is afterwards.
    """
    hashes = Fingerprints(commutative=True)
    _order(module.entry, hashes)
    return hashes


def has_equal_loops(module: Module, hashes: Fingerprints) -> bool:
    """Say whether loops or branches, now that they are in order, do the same pure work.

    Args:
        module: A module.
        hashes: Its hashes.
    """
    pure = Purity()
    for computation in module.reachable():
        seen: set[bytes] = set()
        for instruction in computation.instructions:
            if instruction.op in CONTROL_FLOW and pure.holds(instruction):
                found = hashes.of[instruction]
                if found in seen:
                    return True
                seen.add(found)
        pure.add(computation)
    return False


def _order(computation: Computation, hashes: Fingerprints) -> None:
    if id(computation) in hashes.computations:
        return
    moved: dict[Instruction, list[int]] = {}
    contexts = Contexts(computation, Uses())
    for instruction in computation.instructions:
        if moved:
            _follow(instruction, moved)
        if len(instruction.operands) > 1 and hashes.is_commutative(instruction):
            _sort_operands(instruction, hashes, contexts)
        slots = slots_of(instruction)
        if slots is not None:
            order = _sorted(slots, hashes, contexts)
            if order != list(range(len(order))):
                carried = slots.carried
                reorder(slots, order, carried=carried)
                moved[instruction] = sorted(range(carried), key=order.__getitem__)
        for _, inner in instruction.bodies:
            _order(inner, hashes)
        hashes.add(instruction)
    computation.results = [_place(value, moved) for value in computation.results]
    hashes.close(computation)


def _sort_operands(instruction: Instruction, hashes: Fingerprints, contexts: Contexts) -> None:
    values = operands_of(instruction)
    values.sort(key=lambda value: (hashes.of[value[0]], value[1]))
    first, last = values[0], values[-1]
    if first != last and hashes.of[first[0]] == hashes.of[last[0]] and first[1] == last[1]:
        # Two that do the same and are two, such as collectives: who else reads them tells.
        values.sort(key=contexts.of)
    set_operands(instruction, values)


def _follow(instruction: Instruction, moved: dict[Instruction, list[int]]) -> None:
    if any(operand in moved for operand in instruction.operands):
        set_operands(instruction, [_place(value, moved) for value in operands_of(instruction)])


def _place(value: Value, moved: dict[Instruction, list[int]]) -> Value:
    producer, path = value
    if path and producer in moved and path[0] < len(moved[producer]):
        return producer, (moved[producer][path[0]], *path[1:])
    return value


def _sorted(slots: Slots, hashes: Fingerprints, contexts: Contexts) -> list[int]:
    """Return the numbers of the slots, carried before captured, each group in its order."""
    colours = [hashes.of[i] + b"%r" % (path,) for i, path in slots.values]
    carried = slots.carried
    if len(set(colours[:carried])) < carried:
        colours = told_apart(slots, colours, contexts)
    numbers = range(len(colours))
    front = sorted(numbers[:carried], key=lambda n: colours[n])
    return [*front, *sorted(numbers[carried:], key=lambda n: colours[n])]
