"""Slots: what loops, branches and closed regions take.

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
    copy_of,
    operands_of,
    parameter,
    redirect,
    redirect_results,
    set_operands,
    type_of,
)
from conformance.ir.vocabulary import BRANCHES, CONSTANTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.ir.graph import Computation, Module, Type
    from conformance.ir.normal.rewriting import Path, Value


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
        """What each slot is given."""
        return operands_of(self.instruction)[self.fixed :]

    @property
    def bodies(self) -> list[Computation]:
        """The computations that have a parameter for each slot."""
        return [inner for role, inner in self.instruction.bodies if role != "callee"]

    def parameters(self, inner: Computation) -> tuple[list[Instruction], list[Instruction]]:
        """Return what a computation takes besides its slots, and its parameter for each slot."""
        own = inner.parameters
        others = len(own) - (len(self.instruction.operands) - self.fixed)
        return own[:others], own[others:]


def slots_of(instruction: Instruction) -> Slots | None:
    """Return the slots of an instruction in normal form, or None if it has none."""
    captured = instruction.attributes.get("captured", 0)
    assert isinstance(captured, int)  # noqa: S101 - set by the passes below
    if instruction.op == "while":
        return Slots(instruction, 0, len(instruction.operands) - captured)
    if instruction.op in BRANCHES or captured:
        return Slots(instruction, len(instruction.operands) - captured, 0)
    return None


def name_slots(module: Module) -> None:
    """Bring loops and branches of every IR into the one form described above.

    Args:
        module: Rewritten in place, tuples folded and regions closed.
    """
    for computation in module.reachable():
        moved: dict[Instruction, list[Value]] = {}
        for instruction in computation.instructions:
            _follow(instruction, moved)
            if "cond_nconsts" in instruction.attributes:
                _name_jaxpr_while(instruction)
            elif instruction.op in BRANCHES and "captured" not in instruction.attributes:
                _name_branches(instruction)
            one_result = isinstance(instruction.type, Tensor)
            if one_result and (instruction.op == "while" or instruction.op in BRANCHES):
                instruction.type = (instruction.type,)
                moved[instruction] = []
        computation.results = [_moved(value, moved) for value in computation.results]


def _name_jaxpr_while(instruction: Instruction) -> None:
    """Put the carry first, then the constants of condition and body."""
    attributes = dict(instruction.attributes)
    conditions, steps = attributes.pop("cond_nconsts"), attributes.pop("body_nconsts")
    assert isinstance(conditions, int)  # noqa: S101 - JAX's own parameters
    assert isinstance(steps, int)  # noqa: S101
    values = operands_of(instruction)
    constants, carry = values[: conditions + steps], values[conditions + steps :]
    first = {"condition": (0, conditions), "body": (conditions, conditions + steps)}
    for role, inner in instruction.bodies:
        low, high = first[role]
        own = inner.parameters
        given: dict[int, Instruction] = dict(zip(range(low, high), own, strict=False))
        rest = own[high - low :]
        made = [given.get(n) or parameter(0, type_of(v)) for n, v in enumerate(constants)]
        _set_parameters(inner, [*rest, *made])
    set_operands(instruction, [*carry, *constants])
    instruction.attributes = attributes
    _count_captured(instruction, len(constants))


def _name_branches(instruction: Instruction) -> None:
    """Give every branch of a conditional all that any of them takes."""
    values = operands_of(instruction)
    given = values[1:]
    bodies = [inner for _, inner in instruction.bodies]
    if instruction.op == "conditional":
        taken = [len(inner.parameters) for inner in bodies]
        start = 0
        for inner, count in zip(bodies, taken, strict=True):
            own = dict(zip(range(start, start + count), inner.parameters, strict=True))
            start += count
            made = [own.get(n) or parameter(0, type_of(v)) for n, v in enumerate(given)]
            _set_parameters(inner, made)
    _count_captured(instruction, len(given))


def _count_captured(instruction: Instruction, count: int) -> None:
    attributes = {k: v for k, v in instruction.attributes.items() if k != "captured"}
    instruction.attributes = {**attributes, "captured": count} if count else attributes


def hoist_invariants(module: Module) -> bool:
    """Capture what a loop carries unchanged, and make captured constants again inside.

    Args:
        module: Rewritten in place, its slots named.

    Returns:
        Whether anything was to be done.
    """
    order = module.reachable()
    done = [_hoist_in(computation) for computation in order]
    # What is captured comes from outside, and may be captured again within.
    done += [
        _tidy_captures(slots)
        for computation in reversed(order)
        for slots in map(slots_of, computation.instructions)
        if slots is not None
    ]
    return any(done)


def _hoist_in(computation: Computation) -> bool:
    """Capture what the loops of a computation carry unchanged, and drop unread captures."""
    moved: dict[Instruction, list[Value]] = {}
    dropped = False
    for instruction in computation.instructions:
        _follow(instruction, moved)
        slots = slots_of(instruction)
        if slots is None:
            continue
        results = _hoist(slots) if slots.carried else None
        if results is not None:
            moved[instruction] = results
        dropped = _drop_unread(slots) or dropped
    computation.results = [_moved(value, moved) for value in computation.results]
    return dropped or len(moved) > 0


def _hoist(slots: Slots) -> list[Value] | None:
    """Move invariant slots behind the carried ones; return what each result is now, if any."""
    instruction = slots.instruction
    step = dict(instruction.bodies)["body"]
    own = step.parameters
    keep: list[int] = []
    invariant: list[int] = []
    for number in range(slots.carried):
        same = step.results[number] == (own[number], ())
        (invariant if same else keep).append(number)
    if not invariant:
        return None
    values = slots.values
    results: list[Value] = [values[n] for n in range(slots.carried)]
    for position, number in enumerate(keep):
        results[number] = (instruction, (position,))
    captured = range(slots.carried, len(values))
    reorder(slots, [*keep, *captured, *invariant], carried=len(keep))
    return results


def reorder(slots: Slots, order: Sequence[int], *, carried: int) -> None:
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
    values, fixed = slots.values, operands_of(instruction)[: slots.fixed]
    set_operands(instruction, [*fixed, *(values[n] for n in order)])
    if instruction.op == "while":
        step = dict(instruction.bodies)["body"]
        step.results = [step.results[n] for n in order[:carried]]
        types: Type = instruction.type
        assert not isinstance(types, Tensor)  # noqa: S101 - see name_slots
        instruction.type = tuple(types[n] for n in order[:carried])
    _count_captured(instruction, len(order) - carried)
    slots.carried = carried


def _drop_unread(slots: Slots) -> bool:
    """Drop captures that no computation of an instruction reads; say whether there were any."""
    count = len(slots.values)
    read = [_read(inner) for inner in slots.bodies]
    parameters = [slots.parameters(inner)[1] for inner in slots.bodies]
    order = [
        number
        for number in range(count)
        if number < slots.carried
        or any(own[number] in seen for own, seen in zip(parameters, read, strict=True))
    ]
    if len(order) == count:
        return False
    reorder(slots, order, carried=slots.carried)
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
                constant = copy_of(value[0])
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
        _substitute(inner, stead)
    reorder(slots, order, carried=slots.carried)
    return True


def _substitute(computation: Computation, stead: dict[Instruction, Value]) -> None:
    for instruction in computation.instructions:
        redirect(instruction, stead)
    redirect_results(computation, stead)


def _read(computation: Computation) -> set[Instruction]:
    read = {producer for producer, _ in computation.results}
    for instruction in computation.instructions:
        read.update(instruction.operands)
    return read


def _set_parameters(computation: Computation, parameters: Iterable[Instruction]) -> None:
    """Give a computation these parameters, numbered anew."""
    ordered = list(parameters)
    for index, own in enumerate(ordered):
        own.attributes = {**own.attributes, "index": index}
    rest = [i for i in computation.instructions if i.op != "parameter"]
    computation.instructions = [*ordered, *rest]


def _follow(instruction: Instruction, moved: dict[Instruction, list[Value]]) -> None:
    """Make an instruction read results where they have moved to."""
    if moved and any(operand in moved for operand in instruction.operands):
        set_operands(instruction, [_moved(value, moved) for value in operands_of(instruction)])


def _moved(value: Value, moved: dict[Instruction, list[Value]]) -> Value:
    """Return where a value is after results have moved.

    Args:
        value: A value.
        moved: For each instruction, what its results are now; none says that its one result,
            until now the whole, is now the first of a tuple.
    """
    producer, path = value
    results = moved.get(producer)
    if results is None:
        return value
    if not results:
        return producer, (0, *path)
    # Once is enough: what a loop began with was followed when the loop was reached.
    stead: tuple[Instruction, Path] = results[path[0]]
    return stead[0], stead[1] + path[1:]
