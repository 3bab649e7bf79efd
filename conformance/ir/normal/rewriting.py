"""The building blocks of passes: types of values, replacement of values and types, copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.ir.graph import Computation, Instruction, Tensor
from conformance.ir.vocabulary import CONTROL_FLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.ir.graph import Module, Path, Type, Value

# How many times its size a module may grow by copies: forty functions that each call the next one
# twice would be a trillion instructions.
_MOST = 20
# A number of instructions that copies may always reach, because small modules share a lot.
_ALWAYS = 50_000


def get_type_at(type_: Type, path: Path) -> Type:
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


def get_type(value: Value) -> Type:
    """Return the type of a value."""
    return get_type_at(value[0].type, value[1]) if value[1] else value[0].type


def iterate_tensors(type_: Type) -> Iterator[Tensor]:
    """Yield the tensors of a type, also those in nested tuples."""
    if isinstance(type_, Tensor):
        yield type_
    else:
        for part in type_:
            yield from iterate_tensors(part)


def is_tuple(type_: Type) -> bool:
    """Whether a type is that of several results, or of none."""
    return not isinstance(type_, Tensor)


def convert_tensors(type_: Any, convert: Callable[[Tensor], Tensor]) -> Any:
    """Return a type with each of its tensors converted."""
    if isinstance(type_, Tensor):
        return convert(type_)
    return tuple([convert_tensors(part, convert) for part in type_])


def convert_types(module: Module, convert: Callable[[Tensor], Tensor]) -> None:
    """Convert every tensor in the types of a module; equal types become one object.

    Args:
        module: Rewritten in place.
        convert: Returns the new type of a tensor.
    """
    # The key is an id, which another object may get unless the type stays alive in the value.
    known: dict[int, tuple[Type, Type]] = {}
    unique: dict[Type, Type] = {}
    for instruction in module.walk():
        type_ = instruction.type
        found = known.get(id(type_))
        if found is None:
            converted = convert_tensors(type_, convert)
            found = known[id(type_)] = (type_, unique.setdefault(converted, converted))
        instruction.type = found[1]


def resolve(value: Value, replaced: Mapping[Instruction, Value]) -> Value:
    """Return the value that replaces another, read through replaced and known tuples.

    Args:
        value: The value.
        replaced: The value that replaces each removed instruction.
    """
    instruction, path = value
    while True:
        new = replaced.get(instruction)
        if new is not None:
            instruction, path = new[0], new[1] + path
        elif path and instruction.op == "tuple":
            index = path[0]
            path = instruction.paths[index] + path[1:]
            instruction = instruction.operands[index]
        else:
            return instruction, path


def redirect(instruction: Instruction, replaced: Mapping[Instruction, Value]) -> None:
    """Replace the operands of an instruction, and read them through known tuples."""
    # Most instructions read nothing that was replaced, and need no new tuples.
    for operand, path in zip(instruction.operands, instruction.paths, strict=True):
        if operand in replaced or (path and operand.op == "tuple"):
            instruction.inputs = [resolve(value, replaced) for value in instruction.inputs]
            return


def redirect_results(computation: Computation, replaced: Mapping[Instruction, Value]) -> None:
    """Replace the results of a computation, and read them through known tuples."""
    computation.results = [resolve(value, replaced) for value in computation.results]


def redirect_all(computation: Computation, replaced: Mapping[Instruction, Value]) -> None:
    """Replace values in all instructions and results of a computation."""
    for instruction in computation.instructions:
        redirect(instruction, replaced)
    redirect_results(computation, replaced)


def rewrite(
    computation: Computation, step: Callable[[Instruction, list[Instruction]], Value | None]
) -> None:
    """Replace instructions of a computation in order, and redirect their readers.

    Args:
        computation: Rewritten in place.
        step: Takes an instruction whose operands are replaced already, and the list of the
            instructions before it, to which it may append. Returns the value that replaces the
            instruction, or None to keep it.
    """
    replaced: dict[Instruction, Value] = {}
    output: list[Instruction] = []
    for instruction in computation.instructions:
        if replaced:
            redirect(instruction, replaced)
        value = step(instruction, output)
        if value is None:
            output.append(instruction)
        else:
            replaced[instruction] = value
    if replaced:
        computation.instructions = output
        redirect_results(computation, replaced)


Moved = dict["Instruction", "list[Value]"]
"""The new value of each result of an instruction whose results have moved.

An empty list means that its single result is now the first of a tuple.
"""


def follow(instruction: Instruction, moved: Moved) -> None:
    """Redirect the operands of an instruction to results that have moved."""
    if moved and any(operand in moved for operand in instruction.operands):
        instruction.inputs = [follow_value(value, moved) for value in instruction.inputs]


def follow_value(value: Value, moved: Moved) -> Value:
    """Return a value after results have moved."""
    producer, path = value
    results = moved.get(producer)
    if results is None:
        return value
    if not results:
        return producer, (0, *path)
    if not path and len(results) == len(producer.type):
        return value  # all results, in another order
    # A single lookup is enough: the operands of a loop were followed when the loop was reached.
    producer, inner = results[path[0]]
    return producer, inner + path[1:]


def pack(output: list[Instruction], name: str, type_: Type, values: Sequence[Value]) -> Value:
    """Append a tuple of values to the instructions before it, and return it."""
    packed = Instruction(name, "tuple", type_)
    packed.inputs = list(values)
    output.append(packed)
    return packed, ()


def make_parameter(index: int, type_: Type) -> Instruction:
    """Return a new parameter."""
    return Instruction(name=f"p{index}", op="parameter", type=type_, attributes={"index": index})


def copy_instruction(instruction: Instruction) -> Instruction:
    """Return a copy of an instruction; control flow gets copies of its computations.

    Passes rewrite the computations of control flow for a single instruction.
    """
    i, bodies = instruction, instruction.bodies
    if i.op in CONTROL_FLOW:
        bodies = tuple((role, copy_computation(inner)) for role, inner in bodies)
    return Instruction(
        i.name, i.op, i.type, i.operands, i.paths, i.attributes, bodies, i.origin, i.line
    )


def copy_computation(computation: Computation) -> Computation:
    """Return a copy of a computation that shares no control flow with it."""
    replaced: dict[Instruction, Value] = {}
    made = []
    for instruction in computation.instructions:
        copy = copy_instruction(instruction)
        redirect(copy, replaced)
        replaced[instruction] = (copy, ())
        made.append(copy)
    results = [resolve(value, replaced) for value in computation.results]
    return Computation(computation.name, made, results, computation.attributes)


def is_growth_bounded(order: Sequence[Computation], copied: Callable[[Instruction], bool]) -> bool:
    """Whether a module keeps a reasonable size when every call gets its own copy of the callee.

    Args:
        order: The computations of the module, callees first.
        copied: Whether an instruction gets copies of its callees.
    """
    # Sizes are added up bottom-up, without making any copy.
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
