"""Loop carries: the values that loops, branches and regions take, each in a slot.

In the normal form of a `while`, its first operands are the carried values, one result each. The
others are captured: values that its condition and body read and do not change, counted by the
attribute `captured`. A conditional takes its selector first and captures the rest. All
computations of an instruction have the same parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.ir.graph import Instruction, Tensor
from conformance.ir.normal.rewriting import (
    copy_instruction,
    follow,
    follow_value,
    get_type,
    make_parameter,
    redirect_all,
)
from conformance.ir.vocabulary import BRANCHES, CONSTANTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.ir.graph import Computation, Module, Value
    from conformance.ir.normal.rewriting import Moved


@dataclass(slots=True)
class Slots:
    """The operands of a control flow instruction, as slots.

    Attributes:
        instruction: The instruction.
        fixed: Number of operands before the slots (the selector of a conditional).
        carried: Number of carried slots; the others are captured.
    """

    instruction: Instruction
    fixed: int
    carried: int

    @property
    def values(self) -> list[Value]:
        """The operand of each slot."""
        return self.instruction.inputs[self.fixed :]

    @property
    def bodies(self) -> list[Computation]:
        """The computations that have a parameter for each slot."""
        # A callee is a function, not a region: it sees no values around the instruction.
        return [inner for role, inner in self.instruction.bodies if role != "callee"]

    def split_parameters(self, inner: Computation) -> tuple[list[Instruction], list[Instruction]]:
        """Split the parameters of a computation into those before the slots and those of slots."""
        own = inner.parameters
        others = len(own) - (len(self.instruction.operands) - self.fixed)
        return own[:others], own[others:]


def find_slots(instruction: Instruction) -> Slots | None:
    """Return the slots of an instruction in normal form, None if it has none."""
    # Any operation with regions captures, e.g. a reduction whose reducer reads an outer value.
    captured = instruction.get_number("captured", 0)
    if instruction.op == "while":
        return Slots(instruction, 0, len(instruction.operands) - captured)
    if instruction.op in BRANCHES or captured:
        return Slots(instruction, len(instruction.operands) - captured, 0)
    return None


def close_regions(module: Module) -> None:
    """Pass the outer values that a region reads as operands; constants are copied into it.

    An MLIR region may read any value in scope. In the normal form every computation is a function
    of its parameters: an outer value becomes a further operand, the same for all regions of an
    instruction, and the attribute `captured` counts them.

    Args:
        module: Rewritten in place.
    """
    for computation in module.find_reachable():
        for instruction in computation.instructions:
            if instruction.bodies:
                _close(instruction)


def _close(instruction: Instruction) -> None:
    """Close the regions of an instruction, after the regions within them."""
    regions = [inner for role, inner in instruction.bodies if role != "callee"]
    insides = [set(region.instructions) for region in regions]
    # Constants first, so that they are not captured: a constant is no dependency.
    for region, inside in zip(regions, insides, strict=True):
        _copy_constants(region, inside)
    captured: dict[Value, int] = {}
    for region, inside in zip(regions, insides, strict=True):
        for value in _list_values_read(region):
            if value[0] not in inside:
                # In the order of first use; colour refinement sorts the slots later.
                captured.setdefault(value, len(captured))
    if not captured:
        return
    for region, inside in zip(regions, insides, strict=True):
        _add_parameters(region, inside, captured)
    instruction.inputs = [*instruction.inputs, *captured]
    instruction.attributes = {**instruction.attributes, "captured": len(captured)}


def _list_values_read(region: Computation) -> list[Value]:
    values = [value for instruction in region.instructions for value in instruction.inputs]
    return [*values, *region.results]


def _copy_constants(region: Computation, inside: set[Instruction]) -> None:
    made: dict[Instruction, Instruction] = {}
    for producer, _ in _list_values_read(region):
        if producer.op in CONSTANTS and producer not in inside and producer not in made:
            made[producer] = copy_instruction(producer)
    if not made:
        return
    redirect_all(region, {old: (new, ()) for old, new in made.items()})
    # In front: producers come before their users.
    region.instructions[:0] = made.values()
    inside.update(made.values())


def _add_parameters(
    region: Computation, inside: set[Instruction], captured: dict[Value, int]
) -> None:
    count = len(region.parameters)
    made = {
        value: make_parameter(count + number, get_type(value)) for value, number in captured.items()
    }
    replaced: dict[Value, Value] = {value: (own, ()) for value, own in made.items()}
    for instruction in region.instructions:
        if all(operand in inside for operand in instruction.operands):
            continue
        instruction.inputs = [replaced.get(value, value) for value in instruction.inputs]
    region.results = [replaced.get(value, value) for value in region.results]
    region.instructions[:0] = made.values()
    inside.update(made.values())


def normalise_slots(module: Module) -> None:
    """Bring loops and branches of every IR into the normal form of this module.

    Args:
        module: Rewritten in place, tuples folded and regions closed.
    """
    for computation in module.find_reachable():
        moved: Moved = {}
        for instruction in computation.instructions:
            follow(instruction, moved)
            if "cond_nconsts" in instruction.attributes:
                _normalise_jaxpr_while(instruction)
            # A branch of StableHLO takes nothing but captures, which `close_regions` has counted.
            elif instruction.op in BRANCHES and "captured" not in instruction.attributes:
                _normalise_branches(instruction)
            # Passes read the results of control flow by path, also a single one.
            one_result = isinstance(instruction.type, Tensor)
            if one_result and (instruction.op == "while" or instruction.op in BRANCHES):
                instruction.type = (instruction.type,)
                moved[instruction] = []
        computation.results = [follow_value(value, moved) for value in computation.results]


def _normalise_jaxpr_while(instruction: Instruction) -> None:
    """Put the carry first, then the constants of the condition and of the body."""
    names = ("cond_nconsts", "body_nconsts")
    # A jaxpr passes constants of the condition, constants of the body, then the carry.
    conditions, steps = map(instruction.get_number, names)
    values, count = instruction.inputs, conditions + steps
    first = {"condition": (0, conditions), "body": (conditions, count)}
    for role, inner in instruction.bodies:
        low, high = first[role]
        own, size = inner.parameters, high - low
        made = _align_parameters(values[:count], own[:size], low)
        _set_parameters(inner, [*own[size:], *made])
    instruction.inputs = [*values[count:], *values[:count]]
    instruction.attributes = {k: v for k, v in instruction.attributes.items() if k not in names}
    _count_captured(instruction, count)


def _normalise_branches(instruction: Instruction) -> None:
    """Give every branch of a conditional the parameters of all branches."""
    operands = instruction.inputs[1:]
    # HLO passes each branch an operand; a jaxpr's `cond` passes all branches the same ones.
    if instruction.op == "conditional":
        start = 0
        for _, inner in instruction.bodies:
            own = inner.parameters
            _set_parameters(inner, _align_parameters(operands, own, start))
            start += len(own)
    _count_captured(instruction, len(operands))


def _align_parameters(values: list[Value], own: list[Instruction], start: int) -> list[Instruction]:
    """Return a parameter for each value; `own` are those of the values from `start` on."""
    known = dict(enumerate(own, start))
    return [known.get(n) or make_parameter(0, get_type(value)) for n, value in enumerate(values)]


def _count_captured(instruction: Instruction, count: int) -> None:
    attributes = {k: v for k, v in instruction.attributes.items() if k != "captured"}
    instruction.attributes = {**attributes, "captured": count} if count else attributes


def move_loop_invariants(module: Module) -> bool:
    """Capture the carries that a loop leaves unchanged, and copy captured constants into it.

    This is the part of loop-invariant code motion (LICM) that concerns carries.

    Args:
        module: Rewritten in place, its slots in normal form.

    Returns:
        Whether anything changed.
    """
    order = module.find_reachable()
    # Callees first: a carry becomes invariant if the inner loop that returns it never changes it.
    done = [_hoist_computation(computation) for computation in order]
    # Callers first: a captured value may be captured again by a loop inside.
    done += [
        _merge_captures(slots)
        for computation in reversed(order)
        for slots in map(find_slots, computation.instructions)
        if slots is not None
    ]
    # Lists, because `any` of a generator would stop at the first change.
    return any(done)


def _hoist_computation(computation: Computation) -> bool:
    """Capture the unchanged carries of the loops of a computation, and drop unread captures."""
    moved: Moved = {}
    dropped = False
    for instruction in computation.instructions:
        follow(instruction, moved)
        slots = find_slots(instruction)
        if slots is None:
            continue
        results = _hoist(slots) if slots.carried else None
        if results is not None:
            moved[instruction] = results
        dropped = _drop_unread(slots) or dropped
    computation.results = [follow_value(value, moved) for value in computation.results]
    return dropped or len(moved) > 0


def _hoist(slots: Slots) -> list[Value] | None:
    """Move invariant slots behind the carried ones; return the new value of each result, if any."""
    instruction = slots.instruction
    step = dict(instruction.bodies)["body"]
    own = step.parameters
    keep = [n for n in range(slots.carried) if step.results[n] != (own[n], ())]
    if len(keep) == slots.carried:
        return None
    values = slots.values
    invariant = [n for n in range(slots.carried) if n not in keep]
    # The result of an invariant carry is its initial value.
    results = values[: slots.carried]
    for position, number in enumerate(keep):
        results[number] = (instruction, (position,))
    captured = range(slots.carried, len(values))
    reorder_slots(slots, [*keep, *captured, *invariant], carried=len(keep))
    return results


def reorder_slots(slots: Slots, order: Sequence[int], *, carried: int) -> None:
    """Put slots into another order, in the instruction and in its computations.

    The caller redirects the readers of the results.

    Args:
        slots: The slots of an instruction.
        order: The old number of each slot, in the new order.
        carried: Number of carried slots.
    """
    instruction = slots.instruction
    for inner in slots.bodies:
        others, own = slots.split_parameters(inner)
        _set_parameters(inner, [*others, *(own[n] for n in order)])
    values, fixed = slots.values, instruction.inputs[: slots.fixed]
    instruction.inputs = [*fixed, *(values[n] for n in order)]
    if instruction.op == "while":
        step = dict(instruction.bodies)["body"]
        step.results = [step.results[n] for n in order[:carried]]
        instruction.type = tuple(get_type((instruction, (n,))) for n in order[:carried])
    _count_captured(instruction, len(order) - carried)
    slots.carried = carried


def _drop_unread(slots: Slots) -> bool:
    """Drop captures that no computation of an instruction reads; return whether any were."""
    count = len(slots.values)
    read = {producer for inner in slots.bodies for producer, _ in _list_values_read(inner)}
    owns = [slots.split_parameters(inner)[1] for inner in slots.bodies]
    order = [n for n in range(count) if n < slots.carried or any(own[n] in read for own in owns)]
    if len(order) == count:
        return False
    reorder_slots(slots, order, carried=slots.carried)
    return True


def _merge_captures(slots: Slots) -> bool:
    """Copy captured constants into bodies, and merge equal captures; return whether any changed."""
    values, bodies = slots.values, slots.bodies
    parameters = [slots.split_parameters(inner)[1] for inner in bodies]
    first: dict[Value, int] = {}
    order = list(range(slots.carried))
    replacements: list[dict[Instruction, Value]] = [{} for _ in bodies]
    for number in range(slots.carried, len(values)):
        value = values[number]
        if value[0].op in CONSTANTS:
            for own, replaced, inner in zip(parameters, replacements, bodies, strict=True):
                # Some compilers define a constant outside of the loop, others inside.
                constant = copy_instruction(value[0])
                inner.instructions.insert(0, constant)
                replaced[own[number]] = (constant, value[1])
        elif value in first:
            for own, replaced in zip(parameters, replacements, strict=True):
                replaced[own[number]] = (own[first[value]], ())
        else:
            first[value] = number
            order.append(number)
    if len(order) == len(values):
        return False
    for inner, replaced in zip(bodies, replacements, strict=True):
        redirect_all(inner, replaced)
    reorder_slots(slots, order, carried=slots.carried)
    return True


def _set_parameters(computation: Computation, parameters: Iterable[Instruction]) -> None:
    """Replace the parameters of a computation, and number them."""
    ordered = list(parameters)
    # New dictionaries, because copies of an instruction share theirs.
    for index, own in enumerate(ordered):
        own.attributes = {**own.attributes, "index": index}
    rest = [i for i in computation.instructions if i.op != "parameter"]
    computation.instructions = [*ordered, *rest]
