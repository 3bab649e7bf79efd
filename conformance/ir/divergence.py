"""Divergence: the first operations that differ, without their consequences.

After a changed operation every later one differs too, in a different way in each program. The
first ones are the same in all programs with that change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.ir.edits import IrEdit, Side
from conformance.ir.graph import Tensor
from conformance.ir.vocabulary import CONSTANTS, MOVEMENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.ir.edits import Rewrite
    from conformance.ir.graph import Instruction

CONVERSIONS: Final = frozenset({"convert", "convert_element_type"})
# Attributes of equal meaning: a donor names its output, or leaves it to the compiler.
_SYNONYMS: Final = {"aliases_output": "donation", "donor": "donation"}
_WORDS: Final = {
    Side.REMOVED: "{} gone",
    Side.ADDED: "{} new",
    Side.CHANGED: "{} changed",
    Side.REWIRED: "{} reads otherwise",
    Side.RESULTS: "{} returned otherwise",
}


def find_divergence(rewrites: Iterable[Rewrite]) -> tuple[str, ...]:
    """Return the operations where a difference begins, without sizes and counts.

    Constants are represented by their readers: equal constants are merged, so that the same change
    adds one in some programs and removes one in others. Movement of elements is listed only if
    nothing else differs.

    Args:
        rewrites: The rewrites of two modules.

    Returns:
        Sorted phrases such as `mul reads otherwise`.
    """
    every = [edit for rewrite in rewrites for edit in rewrite]
    edits = [edit for edit in every if _is_operation(edit)]
    edits += [reader for edit in every for reader in _find_readers(edit)]
    affected = {node for edit in edits for node in edit.instructions}
    # A loop or branch differs whenever a computation inside it does.
    around = {edit.place.caller for edit in edits} - {None}
    first = [
        edit
        for edit in edits
        if edit.a not in around
        and all(affected.isdisjoint(node.operands) for node in edit.instructions)
    ]
    work = [edit for edit in first if edit.op not in MOVEMENT]
    # Fallbacks from the most to the least specific: an unequal pair must not have an empty list.
    return tuple(sorted({_describe_edit(edit) for edit in work or first or edits or every}))


def _is_operation(edit: IrEdit) -> bool:
    """Whether an edit is that of an operation."""
    if edit.side is Side.RESULTS:
        return False
    # The parameter of an inner computation differs because the operand of its caller does.
    if edit.op == "parameter":
        return edit.side is Side.CHANGED and edit.place.caller is None
    # Represented by its readers, see `find_divergence`.
    return not any(map(_is_constant, edit.instructions))


def _find_readers(edit: IrEdit) -> Iterator[IrEdit]:
    """Yield the readers of a changed constant as edits, though they did not change themselves."""
    if edit.side is not Side.CHANGED or edit.b is None or not _is_constant(edit.b):
        return
    read = {edit.b}
    for node in edit.place.b.instructions:
        if not read.intersection(node.operands):
            continue
        # A broadcast or converted constant is read through, as `_is_constant` counts it.
        if _is_constant(node):
            read.add(node)
        else:
            yield IrEdit(Side.REWIRED, None, node, edit.place)


def _is_constant(node: Instruction) -> bool:
    """Whether an instruction is a constant, perhaps broadcast or converted."""
    if node.op in CONSTANTS:
        return True
    spreads = node.op in MOVEMENT or node.op in CONVERSIONS
    return spreads and bool(node.operands) and all(map(_is_constant, node.operands))


def _describe_edit(edit: IrEdit) -> str:
    node = edit.b or edit.a
    if node is None:
        return _WORDS[edit.side].format("nothing")
    aspects = dict.fromkeys(_SYNONYMS.get(name, name) for name in edit.aspects)
    names = f" {', '.join(aspects)}" if edit.side is Side.CHANGED else ""
    return _WORDS[edit.side].format(f"{node.op}{_describe_types(node)}{names}")


def _describe_types(node: Instruction) -> str:
    """Return the types of a conversion; other operations are described without types."""
    if node.op not in CONVERSIONS:
        return ""
    return (
        f" {_get_dtype(node.operands[0])} to {_get_dtype(node)}"
        if node.operands
        else f" to {_get_dtype(node)}"
    )


def _get_dtype(node: Instruction) -> str:
    return node.type.dtype if isinstance(node.type, Tensor) else "several"
