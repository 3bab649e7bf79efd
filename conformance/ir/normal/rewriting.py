"""What passes are made of: values, their types, and replacing one value by another."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from conformance.ir.graph import Computation, Instruction, Tensor
from conformance.ir.vocabulary import CONTROL_FLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.ir.graph import Type

_MOST = 20
"""How many times its size a module may grow."""
_ALWAYS = 50_000

Path: TypeAlias = tuple[int, ...]
Value: TypeAlias = tuple[Instruction, Path]
"""A result, or a part of one: the instruction and the path into its result."""


def type_at(type_: Type, path: Path) -> Type:
    """Return the type of a part of a result.

    Args:
        type_: Type of the whole.
        path: Path into it.
    """
    for index in path:
        if isinstance(type_, Tensor):
            break
        type_ = type_[index]
    return type_


def type_of(value: Value) -> Type:
    """Return the type of a value."""
    return type_at(value[0].type, value[1]) if value[1] else value[0].type


def tensors_of(type_: Type) -> Iterator[Tensor]:
    """Yield the tensors that a type holds, however deep in tuples."""
    if isinstance(type_, Tensor):
        yield type_
    else:
        for part in type_:
            yield from tensors_of(part)


def is_tuple(type_: Type) -> bool:
    """Say whether a type holds several (or no) results."""
    return not isinstance(type_, Tensor)


def operands_of(instruction: Instruction) -> list[Value]:
    """Return an instruction's operands as values."""
    return list(zip(instruction.operands, instruction.paths, strict=True))


def set_operands(instruction: Instruction, values: Iterable[Value]) -> None:
    """Give an instruction other operands."""
    pairs = list(values)
    instruction.operands = tuple(producer for producer, _ in pairs)
    instruction.paths = tuple(path for _, path in pairs)


def resolve(value: Value, replaced: Mapping[Instruction, Value]) -> Value:
    """Return the value that stands for another, through tuples as well.

    Args:
        value: The value.
        replaced: For each instruction replaced as a whole, the value in its stead.
    """
    instruction, path = value
    while True:
        stead = replaced.get(instruction)
        if stead is not None:
            instruction, path = stead[0], stead[1] + path
        elif path and instruction.op == "tuple":
            index = path[0]
            path = instruction.paths[index] + path[1:]
            instruction = instruction.operands[index]
        else:
            return instruction, path


def redirect(instruction: Instruction, replaced: Mapping[Instruction, Value]) -> None:
    """Make an instruction take the values that stand for its operands."""
    for operand, path in zip(instruction.operands, instruction.paths, strict=True):
        if operand in replaced or (path and operand.op == "tuple"):
            values = operands_of(instruction)
            set_operands(instruction, [resolve(value, replaced) for value in values])
            return


def redirect_results(computation: Computation, replaced: Mapping[Instruction, Value]) -> None:
    """Make a computation return the values that stand for its results."""
    computation.results = [resolve(value, replaced) for value in computation.results]


def parameter(index: int, type_: Type) -> Instruction:
    """Return a new parameter."""
    return Instruction(name=f"p{index}", op="parameter", type=type_, attributes={"index": index})


def copy_of(instruction: Instruction) -> Instruction:
    """Return a copy of an instruction; control flow gets copies of what it calls.

    Passes rewrite the bodies of control flow for the one instruction they belong to.
    """
    bodies = instruction.bodies
    if instruction.op in CONTROL_FLOW:
        bodies = tuple((role, copy_of_computation(inner)) for role, inner in bodies)
    return Instruction(
        name=instruction.name,
        op=instruction.op,
        type=instruction.type,
        operands=instruction.operands,
        paths=instruction.paths,
        attributes=instruction.attributes,
        bodies=bodies,
        origin=instruction.origin,
        line=instruction.line,
    )


def grows_reasonably(order: Sequence[Computation], copied: Callable[[Instruction], bool]) -> bool:
    """Say whether a module stays of a size when every use of a computation is a copy of its own.

    Args:
        order: The computations of the module, callees first.
        copied: Which instructions get copies of what they call.
    """
    sizes: dict[int, int] = {}
    for computation in order:
        sizes[id(computation)] = len(computation.instructions) + sum(
            sizes[id(inner)]
            for instruction in computation.instructions
            if instruction.bodies and copied(instruction)
            for _, inner in instruction.bodies
        )
    before = sum(len(computation.instructions) for computation in order)
    return max(sizes.values(), default=0) <= max(_ALWAYS, _MOST * before)


def copy_of_computation(computation: Computation) -> Computation:
    """Return a copy of a computation that shares no control flow with it."""
    replaced: dict[Instruction, Value] = {}
    made = []
    for instruction in computation.instructions:
        copy = copy_of(instruction)
        redirect(copy, replaced)
        replaced[instruction] = (copy, ())
        made.append(copy)
    return Computation(
        name=computation.name,
        instructions=made,
        results=[resolve(value, replaced) for value in computation.results],
        attributes=computation.attributes,
    )
