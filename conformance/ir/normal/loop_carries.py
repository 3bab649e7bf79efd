"""Loop carries: which values loops, branches and closed regions take, each in a slot.

In the normal form of a `while` the operands are first what it carries from step to step, one
result each, then what it captures: values that its condition and body read and leave alone. The
attribute `captured` counts these. A conditional takes its selector first and captures the rest.
All computations of an instruction have the same parameters.
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
    """The operands of one control flow instruction, seen as slots.

    Attributes:
        instruction: The instruction.
        fixed: How many operands before them are no slots (the selector of a conditional).
        carried: How many of the slots are carried; the others are captured.
    """

    instruction: Instruction
    fixed: int
    carried: int

    @property
    def values(self) -> list[Value]:
        """The value that each slot is given."""
        return self.instruction.inputs[self.fixed :]

    @property
    def bodies(self) -> list[Computation]:
        """The computations that have a parameter for each slot."""
        return [inner for role, inner in self.instruction.bodies if role != "callee"]

    def parameters(self, inner: Computation) -> tuple[list[Instruction], list[Instruction]]:
        """Return what a computation takes besides its slots, and its parameter for each slot."""
        own = inner.parameters
        others = len(own) - (len(self.instruction.operands) - self.fixed)
        return own[:others], own[others:]


def find_slots(instruction: Instruction) -> Slots | None:
    """Return the slots of an instruction in normal form, or None if it has none."""
    captured = instruction.get_number("captured")
    if instruction.op == "while":
        return Slots(instruction, 0, len(instruction.operands) - captured)
    if instruction.op in BRANCHES or captured:
        return Slots(instruction, len(instruction.operands) - captured, 0)
    return None


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
    given: dict[Value, Value] = {value: (own, ()) for value, own in made.items()}
    for instruction in region.instructions:
        if all(operand in inside for operand in instruction.operands):
            continue
        instruction.inputs = [given.get(value, value) for value in instruction.inputs]
    region.results = [given.get(value, value) for value in region.results]
    region.instructions[:0] = made.values()
    inside.update(made.values())


def normalise_slots(module: Module) -> None:
    """Bring loops and branches of every IR into the one form described above.

    Args:
        module: Rewritten in place, tuples folded and regions closed.
    """
    for computation in module.reachable():
        moved: Moved = {}
        for instruction in computation.instructions:
            follow(instruction, moved)
            if "cond_nconsts" in instruction.attributes:
                _name_jaxpr_while(instruction)
            elif instruction.op in BRANCHES and "captured" not in instruction.attributes:
                _name_branches(instruction)
            one_result = isinstance(instruction.type, Tensor)
            if one_result and (instruction.op == "while" or instruction.op in BRANCHES):
                instruction.type = (instruction.type,)
                moved[instruction] = []
        computation.results = [follow_value(value, moved) for value in computation.results]


def _name_jaxpr_while(instruction: Instruction) -> None:
    """Put the carry first, then the constants of condition and body."""
    names = ("cond_nconsts", "body_nconsts")
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


def _name_branches(instruction: Instruction) -> None:
    """Give every branch of a conditional all that any of them takes."""
    given = instruction.inputs[1:]
    if instruction.op == "conditional":
        start = 0
        for _, inner in instruction.bodies:
            own = inner.parameters
            _set_parameters(inner, _align_parameters(given, own, start))
            start += len(own)
    _count_captured(instruction, len(given))


def _align_parameters(values: list[Value], own: list[Instruction], start: int) -> list[Instruction]:
    """Return a parameter for each value; the values from `start` on have one already."""
    known = dict(enumerate(own, start))
    return [known.get(n) or make_parameter(0, get_type(value)) for n, value in enumerate(values)]


def _count_captured(instruction: Instruction, count: int) -> None:
    attributes = {k: v for k, v in instruction.attributes.items() if k != "captured"}
    instruction.attributes = {**attributes, "captured": count} if count else attributes


def move_loop_invariants(module: Module) -> bool:
    """Capture what a loop carries unchanged, and make captured constants again inside.

    This is loop-invariant code motion (LICM), as far as it concerns what a loop carries.

    Args:
        module: Rewritten in place, its slots named.

    Returns:
        Whether anything was to be done.
    """
    order = module.reachable()
    done = [_hoist_computation(computation) for computation in order]
    # What is captured comes from outside, and may be captured again within.
    done += [
        _tidy_captures(slots)
        for computation in reversed(order)
        for slots in map(find_slots, computation.instructions)
        if slots is not None
    ]
    return any(done)


def _hoist_computation(computation: Computation) -> bool:
    """Capture what the loops of a computation carry unchanged, and drop unread captures."""
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
    """Move invariant slots behind the carried ones; return what each result is now, if any."""
    instruction = slots.instruction
    step = dict(instruction.bodies)["body"]
    own = step.parameters
    keep = [n for n in range(slots.carried) if step.results[n] != (own[n], ())]
    if len(keep) == slots.carried:
        return None
    values = slots.values
    invariant = [n for n in range(slots.carried) if n not in keep]
    results = values[: slots.carried]
    for position, number in enumerate(keep):
        results[number] = (instruction, (position,))
    captured = range(slots.carried, len(values))
    reorder_slots(slots, [*keep, *captured, *invariant], carried=len(keep))
    return results


def reorder_slots(slots: Slots, order: Sequence[int], *, carried: int) -> None:
    """Put slots into another order, in the instruction and in its computations.

    What reads the results must be moved by the caller.

    Args:
        slots: The slots of an instruction.
        order: The old number of each slot, in the new order.
        carried: How many of them are carried.
    """
    instruction = slots.instruction
    for inner in slots.bodies:
        others, own = slots.parameters(inner)
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
    """Drop captures that no computation of an instruction reads; say whether there were any."""
    count = len(slots.values)
    bodies = [
        (slots.parameters(inner)[1], {producer for producer, _ in _list_read(inner)})
        for inner in slots.bodies
    ]
    order = [
        n for n in range(count) if n < slots.carried or any(own[n] in read for own, read in bodies)
    ]
    if len(order) == count:
        return False
    reorder_slots(slots, order, carried=slots.carried)
    return True


def _tidy_captures(slots: Slots) -> bool:
    """Make captured constants again inside, take equal captures once; say whether any were."""
    values, bodies = slots.values, slots.bodies
    parameters = [slots.parameters(inner)[1] for inner in bodies]
    first: dict[Value, int] = {}
    order = list(range(slots.carried))
    steads: list[dict[Instruction, Value]] = [{} for _ in bodies]
    for number in range(slots.carried, len(values)):
        value = values[number]
        if value[0].op in CONSTANTS:
            for own, stead, inner in zip(parameters, steads, bodies, strict=True):
                constant = copy_instruction(value[0])
                inner.instructions.insert(0, constant)
                stead[own[number]] = (constant, value[1])
        elif value in first:
            for own, stead in zip(parameters, steads, strict=True):
                stead[own[number]] = (own[first[value]], ())
        else:
            first[value] = number
            order.append(number)
    if len(order) == len(values):
        return False
    for inner, stead in zip(bodies, steads, strict=True):
        redirect_all(inner, stead)
    reorder_slots(slots, order, carried=slots.carried)
    return True


def _set_parameters(computation: Computation, parameters: Iterable[Instruction]) -> None:
    """Give a computation these parameters, numbered anew."""
    ordered = list(parameters)
    for index, own in enumerate(ordered):
        own.attributes = {**own.attributes, "index": index}
    rest = [i for i in computation.instructions if i.op != "parameter"]
    computation.instructions = [*ordered, *rest]
