"""An operation that is started here and awaited there is that operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.graph import Instruction

if TYPE_CHECKING:
    from conformance.ir.graph import Computation, Module

_START, _DONE, _UPDATE = "-start", "-done", "-update"
_OF_THE_START = "output_to_operand_aliasing"
"""An attribute that speaks of the tuple of a start, which the plain operation does not have."""


def fold_async(module: Module) -> None:
    """Replace each start and its done by the plain operation, where its result is awaited.

    `async-start`, which calls a computation, becomes a call of it.

    Args:
        module: Rewritten in place.
    """
    for computation in module.reachable():
        if any(i.op.endswith(_DONE) for i in computation.instructions):
            _fold(computation)


def _fold(computation: Computation) -> None:
    folded: dict[Instruction, Instruction] = {}
    kept: list[Instruction] = []
    awaited: set[Instruction] = set()
    for instruction in computation.instructions:
        start = _start_of(instruction)
        if start is None:
            kept.append(instruction)
            continue
        awaited.add(start)
        plain = _plain(instruction, start)
        folded[instruction] = plain
        kept.append(plain)
    if not folded:
        return
    for instruction in kept:
        if any(operand in folded for operand in instruction.operands):
            instruction.operands = tuple(folded.get(o, o) for o in instruction.operands)
    computation.results = [(folded.get(i, i), path) for i, path in computation.results]
    read = {id(o) for i in kept for o in i.operands if not i.op.endswith(_UPDATE)}
    computation.instructions = [
        i
        for i in kept
        if id(i) in read or not (i in awaited or i.op.endswith(_UPDATE)) or i.op == "parameter"
    ]


def _start_of(done: Instruction) -> Instruction | None:
    if not done.op.endswith(_DONE) or not done.operands:
        return None
    start = done.operands[0]
    while start.op.endswith(_UPDATE) and start.operands:
        start = start.operands[0]
    # A send or a recv has a done as well, but starts under its own name.
    return start if start.op.endswith(_START) else None


def _plain(done: Instruction, start: Instruction) -> Instruction:
    op = start.op.removesuffix(_START)
    return Instruction(
        name=start.name,
        op="call" if op == "async" else op,
        type=done.type,
        operands=start.operands,
        paths=start.paths,
        attributes={k: v for k, v in start.attributes.items() if k != _OF_THE_START},
        bodies=start.bodies,
        origin=start.origin,
        line=start.line,
    )
