"""What nobody reads and does nothing is gone; equal pure work is done once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.fingerprint import Fingerprints
from conformance.ir.normal.rewriting import redirect, redirect_results
from conformance.ir.vocabulary import Purity

if TYPE_CHECKING:
    from conformance.ir.graph import Computation, Instruction, Module
    from conformance.ir.normal.rewriting import Value


def drop_dead(module: Module) -> None:
    """Drop pure instructions whose results nobody reads.

    Args:
        module: Rewritten in place.
    """
    pure = Purity()
    for computation in module.reachable():
        _drop_dead(computation, pure)
        pure.add(computation)


def _drop_dead(computation: Computation, pure: Purity) -> None:
    read: set[Instruction] = {producer for producer, _ in computation.results}
    kept = []
    for instruction in reversed(computation.instructions):
        if instruction in read or instruction.op == "parameter" or not pure.holds(instruction):
            read.update(instruction.operands)
            kept.append(instruction)
    if len(kept) < len(computation.instructions):
        computation.instructions = kept[::-1]


def merge_equal(module: Module) -> None:
    """Do equal pure work once.

    Collectives, random numbers, calls out and what calls such are never merged.

    Args:
        module: Rewritten in place.
    """
    hashes, pure = Fingerprints(commutative=True), Purity()
    for computation in module.reachable():
        _merge(computation, hashes, pure)
        pure.add(computation)


def _merge(computation: Computation, hashes: Fingerprints, pure: Purity) -> None:
    replaced: dict[Instruction, Value] = {}
    first: dict[bytes, Instruction] = {}
    for instruction in computation.instructions:
        if replaced:
            redirect(instruction, replaced)
        same = first.setdefault(hashes.add(instruction), instruction)
        if same is not instruction and instruction.op != "parameter" and pure.holds(instruction):
            replaced[instruction] = (same, ())
    if replaced:
        computation.instructions = [i for i in computation.instructions if i not in replaced]
        redirect_results(computation, replaced)
    hashes.close(computation)
