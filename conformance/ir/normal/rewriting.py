"""The vocabulary of passes: types of values, and walks that replace values or types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.ir.graph import Computation, Instruction, Tensor
from conformance.ir.vocabulary import CONTROL_FLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.ir.graph import Module, Path, Type, Value

_MOST = 20
"""How many times its size a module may grow."""
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
    """Yield the tensors that a type holds, however deep in tuples."""
    if isinstance(type_, Tensor):
        yield type_
    else:
        for part in type_:
            yield from iterate_tensors(part)


def is_tuple(type_: Type) -> bool:
    """Say whether a type holds several (or no) results."""
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
        convert: Returns what a tensor becomes.
    """
    # The key is an id: what it names must live as long as it does.
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
            instruction.inputs = [resolve(value, replaced) for value in instruction.inputs]
            return


def redirect_results(computation: Computation, replaced: Mapping[Instruction, Value]) -> None:
    """Make a computation return the values that stand for its results."""
    computation.results = [resolve(value, replaced) for value in computation.results]


def redirect_all(computation: Computation, replaced: Mapping[Instruction, Value]) -> None:
    """Make all that a computation holds take the values that stand for others."""
    for instruction in computation.instructions:
        redirect(instruction, replaced)
    redirect_results(computation, replaced)


def rewrite(
    computation: Computation, step: Callable[[Instruction, list[Instruction]], Value | None]
) -> None:
    """Replace instructions of a computation one after the other, with those that read them.

    Args:
        computation: Rewritten in place.
        step: Is given an instruction that takes what stands for its operands already, and the
            instructions before it, to which it may add. Returns the value that stands for the
            instruction from then on, or None if it stays.
    """
    replaced: dict[Instruction, Value] = {}
    kept: list[Instruction] = []
    for instruction in computation.instructions:
        if replaced:
            redirect(instruction, replaced)
        stead = step(instruction, kept)
        if stead is None:
            kept.append(instruction)
        else:
            replaced[instruction] = stead
    if replaced:
        computation.instructions = kept
        redirect_results(computation, replaced)


Moved = dict["Instruction", "list[Value]"]
"""For each instruction whose results have moved, what each of them is now.

No value says that the one result, until now the whole, is now the first of a tuple.
"""


def follow(instruction: Instruction, moved: Moved) -> None:
    """Make an instruction read results where they have moved to."""
    if moved and any(operand in moved for operand in instruction.operands):
        instruction.inputs = [follow_value(value, moved) for value in instruction.inputs]


def follow_value(value: Value, moved: Moved) -> Value:
    """Return where a value is after results have moved."""
    producer, path = value
    results = moved.get(producer)
    if results is None:
        return value
    if not results:
        return producer, (0, *path)
    if not path and len(results) == len(producer.type):
        return value  # All of them, as before, in another order.
    # Once is enough: what a loop began with was followed when the loop was reached.
    stead, inner = results[path[0]]
    return stead, inner + path[1:]


def pack(kept: list[Instruction], name: str, type_: Type, values: Sequence[Value]) -> Value:
    """Make a tuple of values behind the instructions before it, and return it."""
    packed = Instruction(name, "tuple", type_)
    packed.inputs = list(values)
    kept.append(packed)
    return packed, ()


def make_parameter(index: int, type_: Type) -> Instruction:
    """Return a new parameter."""
    return Instruction(name=f"p{index}", op="parameter", type=type_, attributes={"index": index})


def copy_instruction(instruction: Instruction) -> Instruction:
    """Return a copy of an instruction; control flow gets copies of what it calls.

    Passes rewrite the bodies of control flow for the one instruction they belong to.
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
