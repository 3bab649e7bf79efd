"""Where a difference begins: what was changed, without all that merely follows from it. Pure.

A program that does one thing otherwise differs from there on: everything that reads the result
differs too, in another way in each program. Where it begins is the same in all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.ir.edits import Delta, Side
from conformance.ir.graph import Tensor
from conformance.ir.vocabulary import CONSTANTS, MOVEMENT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from conformance.ir.edits import Rewrite
    from conformance.ir.graph import Instruction

CONVERSIONS: Final = frozenset({"convert", "convert_element_type"})
_ONE: Final = {"aliases_output": "donation", "donor": "donation"}
"""What is said in several ways: who donates names the output, or leaves it to the compiler."""
_WORDS: Final = {
    Side.REMOVED: "{} gone",
    Side.ADDED: "{} new",
    Side.CHANGED: "{} changed",
    Side.REWIRED: "{} reads otherwise",
    Side.RESULTS: "{} returned otherwise",
}


def beginnings(found: Iterable[Rewrite]) -> tuple[str, ...]:
    """Return where a difference begins: operations, no sizes and no counts.

    Constants are told by who reads them: they are merged where one has the same already, so that
    the same change adds one here and removes one there. What only moves elements is told where
    nothing else is.

    Args:
        found: What differs between two modules.

    Returns:
        A few words for each kind of place, e.g. `mul reads otherwise`, in order.
    """
    every = [delta for rewrite in found for delta in rewrite.deltas]
    deltas = [delta for delta in every if _tells(delta)]
    deltas += [reader for delta in every for reader in _readers(delta)]
    affected = {one for delta in deltas for one in (delta.a, delta.b) if one is not None}
    # A computation is within an instruction that differs because it does.
    around = {delta.at.inside for delta in deltas} - {None}
    first = [d for d in deltas if not _follows(d, affected) and d.a not in around]
    work = [delta for delta in first if delta.op not in MOVEMENT]
    return tuple(sorted({_told(delta) for delta in work or first or deltas or every}))


def _tells(delta: Delta) -> bool:
    """Say whether a delta is an operation of its own."""
    if delta.side is Side.RESULTS:
        return False
    if delta.op == "parameter":  # within a computation it is what it is given
        return delta.side is Side.CHANGED and delta.at.inside is None
    return not any(_is_constant(one) for one in (delta.a, delta.b) if one is not None)


def _readers(delta: Delta) -> Iterator[Delta]:
    """Yield who reads a constant that has another value; they themselves are what they were."""
    if delta.side is not Side.CHANGED or delta.b is None or not _is_constant(delta.b):
        return
    read = {delta.b}
    for one in delta.at.b.instructions:
        if not read.intersection(one.operands):
            continue
        if _is_constant(one):
            read.add(one)
        else:
            yield Delta(Side.REWIRED, None, one, delta.at)


def _is_constant(one: Instruction) -> bool:
    """Say whether an instruction is a constant, maybe spread over a shape or of another type."""
    if one.op in CONSTANTS:
        return True
    spreads = one.op in MOVEMENT or one.op in CONVERSIONS
    return spreads and bool(one.operands) and all(map(_is_constant, one.operands))


def _follows(delta: Delta, affected: Collection[Instruction]) -> bool:
    """Say whether what an operation reads differs already."""
    sides = (one for one in (delta.a, delta.b) if one is not None)
    return any(operand in affected for one in sides for operand in one.operands)


def _told(delta: Delta) -> str:
    one = delta.b or delta.a
    if one is None:
        return _WORDS[delta.side].format("nothing")
    what = dict.fromkeys(_ONE.get(name, name) for name in delta.what)
    names = f" {', '.join(what)}" if delta.side is Side.CHANGED else ""
    return _WORDS[delta.side].format(f"{one.op}{_types(one)}{names}")


def _types(one: Instruction) -> str:
    """Return from what to what a conversion converts; of others the type is of no account."""
    if one.op not in CONVERSIONS:
        return ""
    return f" {_dtype(one.operands[0])} to {_dtype(one)}" if one.operands else f" to {_dtype(one)}"


def _dtype(one: Instruction) -> str:
    return one.type.dtype if isinstance(one.type, Tensor) else "several"
