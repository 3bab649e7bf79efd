"""Tuples become what they hold, so that every result is read by its path."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from conformance.ir.graph import Instruction, IrSyntaxError, Tensor
from conformance.ir.normal.rewriting import (
    copy_of_computation,
    grows_reasonably,
    is_tuple,
    operands_of,
    parameter,
    redirect,
    redirect_results,
    resolve,
    set_operands,
    tensors_of,
    type_of,
)
from conformance.ir.vocabulary import BRANCHES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.ir.graph import Computation, Module, Type
    from conformance.ir.normal.rewriting import Value

_TAKES_ONE_TUPLE = frozenset({"while", "conditional"})


def fold_tuples(module: Module) -> None:
    """Read elements where they are made, not through `tuple` and `get-tuple-element`.

    What a loop or a branch carries as one tuple, nested or not, becomes as many operands,
    parameters and results as the tuple holds tensors; the same for the results of the module.

    Args:
        module: Rewritten in place.

    Raises:
        IrSyntaxError: If shared loops and branches are beyond number.
    """
    _unshare_control_flow(module)
    for computation in module.reachable():
        _fold(computation)
    _spread_results(module.entry)
    for computation in module.reachable():
        _drop_unread(computation)


def _unshare_control_flow(module: Module) -> None:
    """Give every loop and branch computations of its own, which passes may rewrite for it."""
    order = module.reachable()
    if not grows_reasonably(order, _has_slots):
        raise IrSyntaxError("loops and branches share computations too often to be told apart")
    seen: set[int] = set()
    for computation in order:
        for instruction in computation.instructions:
            if not _has_slots(instruction):
                continue
            bodies = []
            for role, inner in instruction.bodies:
                own = inner if id(inner) not in seen else copy_of_computation(inner)
                seen.add(id(inner))
                bodies.append((role, own))
            instruction.bodies = tuple(bodies)


def _has_slots(instruction: Instruction) -> bool:
    return instruction.op in _TAKES_ONE_TUPLE or instruction.op in BRANCHES


def _fold(computation: Computation) -> None:
    """Read through the tuples of a computation whose bodies are folded already."""
    replaced: dict[Instruction, Value] = {}
    kept = []
    for instruction in computation.instructions:
        redirect(instruction, replaced)
        if instruction.op == "get-tuple-element":
            index = instruction.attributes["index"]
            assert isinstance(index, int)  # noqa: S101 - what a parser always sets
            source, path = instruction.operands[0], instruction.paths[0]
            replaced[instruction] = resolve((source, (*path, index)), replaced)
            continue
        if instruction.op in _TAKES_ONE_TUPLE:
            _spread(instruction)
            if not _is_flat(instruction.type):
                made = _flattened(instruction)
                kept += made
                replaced[instruction] = (made[-1], ())
                continue
        kept.append(instruction)
    computation.instructions = kept
    redirect_results(computation, replaced)


def _spread(instruction: Instruction) -> None:
    """Give a while or a conditional one operand for each tensor in the tuples it takes."""
    for _, inner in instruction.bodies:
        _split_parameters(inner)
        _spread_results(inner)
    values = operands_of(instruction)
    if any(is_tuple(type_of(value)) for value in values):
        set_operands(instruction, [leaf for value in values for leaf in _leaves(value)])


def _is_flat(type_: Type) -> bool:
    return isinstance(type_, Tensor) or all(isinstance(part, Tensor) for part in type_)


def _flattened(instruction: Instruction) -> list[Instruction]:
    """Return an instruction with one result for each tensor, and the tuples that it gave before."""
    types = tuple(tensors_of(instruction.type))
    flat = dataclasses.replace(instruction, type=types)
    made = [flat]
    _pack(instruction.type, iter([(flat, (n,)) for n in range(len(types))]), made)
    return made


def _split_parameters(computation: Computation) -> None:
    """Make a parameter of each tensor in the parameters that are tuples."""
    olds = computation.parameters
    if not any(is_tuple(old.type) for old in olds):
        return
    news: list[Instruction] = []
    packed: list[Instruction] = []
    replaced: dict[Instruction, Value] = {}
    for old in olds:
        made = [parameter(len(news) + n, type_) for n, type_ in enumerate(tensors_of(old.type))]
        for new in made:
            new.origin, new.line = old.origin, old.line
        news += made
        replaced[old] = _pack(old.type, iter([(new, ()) for new in made]), packed)
    rest = [i for i in computation.instructions if i.op != "parameter"]
    for instruction in rest:
        redirect(instruction, replaced)
    redirect_results(computation, replaced)
    computation.instructions = [*news, *packed, *rest]


def _pack(type_: Type, leaves: Iterator[Value], made: list[Instruction]) -> Value:
    """Return the tuple of a type that holds some tensors; the tuples made for it come last."""
    if isinstance(type_, Tensor):
        return next(leaves)
    values = [_pack(part, leaves, made) for part in type_]
    whole = Instruction(name="packed", op="tuple", type=type_)
    set_operands(whole, values)
    made.append(whole)
    return whole, ()


def _leaves(value: Value) -> Iterator[Value]:
    """Yield the tensors that a value holds, each where it is made."""
    type_ = type_of(value)
    if isinstance(type_, Tensor):
        yield value
    else:
        instruction, path = value
        for index in range(len(type_)):
            yield from _leaves(resolve((instruction, (*path, index)), {}))


def _spread_results(computation: Computation) -> None:
    if any(is_tuple(type_of(value)) for value in computation.results):
        computation.results = [leaf for value in computation.results for leaf in _leaves(value)]


def _drop_unread(computation: Computation) -> None:
    """Drop tuples that nobody takes as a whole any more."""
    read: set[Instruction] = {producer for producer, _ in computation.results}
    kept = []
    for instruction in reversed(computation.instructions):
        if instruction.op == "tuple" and instruction not in read:
            continue
        read.update(instruction.operands)
        kept.append(instruction)
    computation.instructions = kept[::-1]
