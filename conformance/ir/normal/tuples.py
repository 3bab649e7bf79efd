"""A pass that replaces tuples by their elements, and reads results by their path."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.ir.graph import IrSyntaxError, Tensor
from conformance.ir.normal.rewriting import (
    copy_computation,
    get_type,
    is_growth_bounded,
    is_tuple,
    iterate_tensors,
    make_parameter,
    pack,
    redirect_all,
    resolve,
    rewrite,
)
from conformance.ir.vocabulary import BRANCHES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.ir.graph import Computation, Instruction, Module, Type, Value

# StableHLO and jaxprs pass several operands; only these HLO operations pack them.
_TAKES_ONE_TUPLE = frozenset({"while", "conditional"})


def fold_tuples(module: Module) -> None:
    """Read elements from their producer, not through `tuple` and `get-tuple-element`.

    A tuple that a loop or a branch takes, nested or not, becomes as many operands, parameters and
    results as it holds tensors; so does a tuple that the module returns.

    Args:
        module: Rewritten in place.

    Raises:
        IrSyntaxError: If copies of shared loops and branches would be too large.
    """
    # Passes change the parameters of loops and branches, each for its own instruction.
    _unshare_control_flow(module)
    for computation in module.find_reachable():
        rewrite(computation, _fold)
    _spread_results(module.entry)
    for computation in module.find_reachable():
        _drop_unread(computation)


def _unshare_control_flow(module: Module) -> None:
    """Give every loop and branch its own copies of shared computations, for passes to rewrite."""
    order = module.find_reachable()
    if not is_growth_bounded(order, _has_slots):
        raise IrSyntaxError("loops and branches share computations too often to copy them")
    seen: set[int] = set()
    for computation in order:
        for instruction in computation.instructions:
            if not _has_slots(instruction):
                continue
            bodies = []
            for role, inner in instruction.bodies:
                # The first use keeps the original, so that an unshared module is not copied.
                own = inner if id(inner) not in seen else copy_computation(inner)
                seen.add(id(inner))
                bodies.append((role, own))
            instruction.bodies = tuple(bodies)


def _has_slots(instruction: Instruction) -> bool:
    return instruction.op in _TAKES_ONE_TUPLE or instruction.op in BRANCHES


def _fold(instruction: Instruction, output: list[Instruction]) -> Value | None:
    """Replace a read of a tuple element, and the tuples that a loop or branch takes and returns."""
    if instruction.op == "get-tuple-element":
        source, path = instruction.inputs[0]
        return resolve((source, (*path, instruction.get_number("index"))), {})
    if instruction.op not in _TAKES_ONE_TUPLE:
        return None
    # Bodies first: their parameters and results must match the new operands.
    for _, inner in instruction.bodies:
        _split_parameters(inner)
        _spread_results(inner)
    if any(is_tuple(get_type(value)) for value in instruction.inputs):
        instruction.inputs = [
            leaf for value in instruction.inputs for leaf in _iterate_leaves(value)
        ]
    type_ = instruction.type
    if isinstance(type_, Tensor) or all(isinstance(part, Tensor) for part in type_):
        return None
    # Readers of the old result get it packed again; unread tuples are dropped at the end.
    types = tuple(iterate_tensors(type_))
    flat = replace(instruction, type=types)
    output.append(flat)
    return _pack(type_, iter([(flat, (n,)) for n in range(len(types))]), output)


def _split_parameters(computation: Computation) -> None:
    """Replace parameters that are tuples by a parameter for each of their tensors."""
    olds = computation.parameters
    if not any(is_tuple(old.type) for old in olds):
        return
    news: list[Instruction] = []
    packed: list[Instruction] = []
    replaced: dict[Instruction, Value] = {}
    for old in olds:
        made = [
            make_parameter(len(news) + n, type_)
            for n, type_ in enumerate(iterate_tensors(old.type))
        ]
        # Diffs quote the line of the parameter that was split.
        for new in made:
            new.origin, new.line = old.origin, old.line
        news += made
        replaced[old] = _pack(old.type, iter([(new, ()) for new in made]), packed)
    rest = [i for i in computation.instructions if i.op != "parameter"]
    computation.instructions = [*news, *packed, *rest]
    redirect_all(computation, replaced)


def _pack(type_: Type, leaves: Iterator[Value], made: list[Instruction]) -> Value:
    """Return a tuple of a type, made of tensors; append the instructions that make it."""
    if isinstance(type_, Tensor):
        return next(leaves)
    return pack(made, "packed", type_, [_pack(part, leaves, made) for part in type_])


def _iterate_leaves(value: Value) -> Iterator[Value]:
    """Yield the tensors of a value, each read from its producer."""
    type_ = get_type(value)
    if isinstance(type_, Tensor):
        yield value
    else:
        instruction, path = value
        for index in range(len(type_)):
            yield from _iterate_leaves(resolve((instruction, (*path, index)), {}))


def _spread_results(computation: Computation) -> None:
    if any(is_tuple(get_type(value)) for value in computation.results):
        computation.results = [
            leaf for value in computation.results for leaf in _iterate_leaves(value)
        ]


def _drop_unread(computation: Computation) -> None:
    """Drop tuples that no instruction reads as a whole."""
    read: set[Instruction] = {producer for producer, _ in computation.results}
    kept = []
    for instruction in reversed(computation.instructions):
        if instruction.op == "tuple" and instruction not in read:
            continue
        read.update(instruction.operands)
        kept.append(instruction)
    computation.instructions = kept[::-1]
