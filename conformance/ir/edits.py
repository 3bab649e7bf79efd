"""The edits between two aligned modules, and their groups.

An *edit* is a place that differs: an instruction on one side only, or a pair with other attributes,
types or operands. Edits that explain each other form a *rewrite*: a reduction that now takes two
steps is a single rewrite, not five edits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, TypeAlias

from conformance.ir.normal.loop_carries import find_slots
from conformance.ir.vocabulary import is_commutative

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.ir.alignment import Alignment, PairedComputations
    from conformance.ir.graph import Instruction, Value


ValueDifference: TypeAlias = tuple[str, "Value | None", "Value | None"]
"""A difference of two lists of values: position, value in the first list, value in the second."""


class Side(StrEnum):
    """The kind of an edit."""

    REMOVED = "-"
    ADDED = "+"
    CHANGED = "~"
    """A pair differs in its type or an attribute."""
    REWIRED = ">"
    """A pair differs in its operands."""
    RESULTS = "="
    """The results of a computation differ."""


@dataclass(slots=True, eq=False)
class IrEdit:
    """A place that differs.

    Attributes:
        side: Kind of the edit.
        a: The instruction of the first module, if any.
        b: The instruction of the second module, if any.
        place: The pair of computations that contains the instructions.
        aspects: For a changed pair, `type` and the names of attributes; for a rewired one, the
            positions of operands.
    """

    side: Side
    a: Instruction | None
    b: Instruction | None
    place: PairedComputations
    aspects: tuple[str, ...] = ()

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions of the first and of the second module, as far as they exist."""
        return [node for node in (self.a, self.b) if node is not None]

    @property
    def op(self) -> str:
        """The operation, `results` for the results of a computation."""
        return self.instructions[0].op if self.a or self.b else "results"


Rewrite: TypeAlias = list[IrEdit]
"""Edits that belong together."""


def find_rewrites(alignment: Alignment) -> list[Rewrite]:
    """Return the differences of two aligned modules, in the order of the first module's text."""
    edits = _Edits(alignment)
    for pair in alignment.computations:
        edits.add_computations(pair)
    return edits.group()


class _Edits:
    """Finds the edits of aligned modules and groups them by a union-find.

    An unpaired slot of a paired loop causes edits around the loop, within it and at its results,
    which are grouped into a single rewrite.
    """

    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment
        self._parent: dict[IrEdit, IrEdit] = {}
        self._unpaired: dict[Instruction, IrEdit] = {}
        self._retyped: dict[Instruction, IrEdit] = {}
        # The edit around each loop, with the numbers of its paired slots.
        self._loops: dict[Instruction, tuple[IrEdit, frozenset[int]]] = {}

    def add_computations(self, pair: PairedComputations) -> None:
        to_a, to_b = self._alignment.to_a, self._alignment.to_b
        loop = self._loops.get(pair.caller) if pair.caller is not None else None
        around = loop[0] if loop is not None else None
        # Unpaired instructions first: the edits of pairs are joined with those of their operands.
        for node in pair.a.instructions:
            if node not in to_b:
                self._add_unpaired(node, IrEdit(Side.REMOVED, node, None, pair), around)
        for node in pair.b.instructions:
            if node not in to_a:
                self._add_unpaired(node, IrEdit(Side.ADDED, None, node, pair), around)
        for node in pair.a.instructions:
            if node in to_b:
                self._add_pair(node, to_b[node], pair)
        for _, ours, theirs in _compare_results(self._alignment, pair):
            a, b = (value[0] if value is not None else None for value in (ours, theirs))
            edit = IrEdit(Side.RESULTS, a, b, pair)
            self._join_producers(edit, ours, theirs)
            # A result on one side only belongs to a slot on one side only.
            if ours is None or theirs is None:
                self._join(edit, around)

    def group(self) -> list[Rewrite]:
        found: dict[IrEdit, Rewrite] = {}
        # Insertion order, so that rewrites and the edits in them come in the order of the text.
        for edit in self._parent:
            found.setdefault(self._find_root(edit), []).append(edit)
        return list(found.values())

    def _add_unpaired(self, node: Instruction, edit: IrEdit, around: IrEdit | None) -> None:
        self._unpaired[node] = self._parent[edit] = edit
        for operand in node.operands:
            self._join(edit, self._unpaired.get(operand))
        # A parameter on one side only is the inner end of a slot on one side only.
        if node.op == "parameter":
            self._join(edit, around)

    def _add_pair(self, a: Instruction, b: Instruction, pair: PairedComputations) -> None:
        changed = _compare_pair(a, b, pair)
        if changed is not None:
            self._parent[changed] = changed
            if "type" in changed.aspects:
                self._retyped[a] = changed
                for operand in a.operands:
                    # A type that propagates from operand to reader is a single change.
                    self._join(changed, self._retyped.get(operand))
        differing = _compare_operands(self._alignment, a, b)
        if differing:
            places = tuple(sorted({place for place, _, _ in differing}))
            rewired = IrEdit(Side.REWIRED, a, b, pair, places)
            self._parent[rewired] = rewired
            # Callers come before bodies, so `add_computations` finds the edit around a body here.
            if a in self._alignment.slots:
                slots = self._alignment.slots[a]
                self._loops[a] = rewired, frozenset(slots)
                self._loops[b] = rewired, frozenset(slots.values())
            self._join(rewired, changed)
            for _, ours, theirs in differing:
                self._join_producers(rewired, ours, theirs)

    def _join_producers(self, edit: IrEdit, ours: Value | None, theirs: Value | None) -> None:
        """Join an edit with those of the instructions that produce its values."""
        self._parent.setdefault(edit, edit)
        for value in (ours, theirs):
            if value is None:
                continue
            producer, path = value
            self._join(edit, self._unpaired.get(producer))
            if path and producer in self._loops:
                around, paired = self._loops[producer]
                self._join(edit, around if path[0] not in paired else None)

    def _join(self, edit: IrEdit, other: IrEdit | None) -> None:
        if other is not None:
            root, child = self._find_root(edit), self._find_root(other)
            if root is not child:
                self._parent[child] = root

    def _find_root(self, edit: IrEdit) -> IrEdit:
        while self._parent[edit] is not edit:
            # Path halving keeps chains short without a second walk.
            self._parent[edit] = self._parent[self._parent[edit]]
            edit = self._parent[edit]
        return edit


def _compare_pair(a: Instruction, b: Instruction, pair: PairedComputations) -> IrEdit | None:
    # The type of a loop lists its carries in an order that is free.
    aspects = ["type"] if a.type != b.type and find_slots(a) is None else []
    ours, theirs = a.attributes, b.attributes
    if ours is not theirs:
        # Slots and parameters were paired by their operands, not by their number.
        skipped = {"captured", "index"} if a.op == "parameter" else {"captured"}
        aspects += [
            name
            for name in dict.fromkeys([*ours, *theirs])
            if name not in skipped and ours.get(name, _ABSENT) != theirs.get(name, _ABSENT)
        ]
    if len(a.bodies) != len(b.bodies):
        aspects.append("bodies")
    return IrEdit(Side.CHANGED, a, b, pair, tuple(aspects)) if aspects else None


_ABSENT: Final = object()


def _compare_operands(
    alignment: Alignment, a: Instruction, b: Instruction
) -> list[ValueDifference]:
    """Return the differing operands of two paired instructions."""
    ours, theirs = a.inputs, b.inputs
    slots = find_slots(a)
    if slots is not None and a in alignment.slots:
        fixed = _compare_in_order(alignment, ours[: slots.fixed], theirs[: slots.fixed])
        pairs = alignment.slots[a]
        return [
            *fixed,
            *_compare_by_slot(alignment, pairs, ours[slots.fixed :], theirs[slots.fixed :]),
        ]
    return (_compare_unordered if is_commutative(a) else _compare_in_order)(alignment, ours, theirs)


def _compare_by_slot(
    alignment: Alignment, pairs: Mapping[int, int], ours: list[Value], theirs: list[Value]
) -> list[ValueDifference]:
    """Return the differences of two lists of values, slot by slot."""
    found: list[ValueDifference] = []
    for n, value in enumerate(ours):
        other = theirs[pairs[n]] if n in pairs else None
        if other is None or not _is_paired(alignment, value, other):
            found.append(("", value, other))
    taken = set(pairs.values())
    return [*found, *(("", None, other) for m, other in enumerate(theirs) if m not in taken)]


def _compare_in_order(
    alignment: Alignment, ours: list[Value], theirs: list[Value]
) -> list[ValueDifference]:
    """Return the differences of two lists of values, place by place."""
    found: list[ValueDifference] = []
    # An operand on one side only is a difference, too.
    for n, (value, other) in enumerate(zip_longest(ours, theirs)):
        if value is None or other is None or not _is_paired(alignment, value, other):
            found.append((str(n), value, other))
    return found


def _compare_unordered(
    alignment: Alignment, ours: list[Value], theirs: list[Value]
) -> list[ValueDifference]:
    """Return the values of only one of two lists, regardless of their order."""
    rest = list(theirs)
    found: list[ValueDifference] = []
    for value in ours:
        match = next((other for other in rest if _is_paired(alignment, value, other)), None)
        if match is None:
            found.append(("", value, None))
        else:
            # Once only: `add(x, x)` and `add(x, y)` differ.
            rest.remove(match)
    return [*found, *(("", None, other) for other in rest)]


def _is_paired(alignment: Alignment, a: Value, b: Value) -> bool:
    producer, path = a
    if alignment.to_b.get(producer) is not b[0]:
        return False
    slots = alignment.slots.get(producer)
    if slots is None or not path:
        return path == b[1]
    # The results of a loop are in the order of its slots, which is free.
    return (slots.get(path[0], path[0]), *path[1:]) == b[1]


def _compare_results(alignment: Alignment, pair: PairedComputations) -> list[ValueDifference]:
    ours, theirs = pair.a.results, pair.b.results
    # Only the body of a loop returns its slots; a condition or branch returns by position.
    if pair.caller is None or pair.caller.op != "while" or not pair.path[-1].endswith(" body"):
        return _compare_in_order(alignment, ours, theirs)
    slots = alignment.slots[pair.caller]
    carried = {n: m for n, m in slots.items() if n < len(ours) and m < len(theirs)}
    return _compare_by_slot(alignment, carried, ours, theirs)
