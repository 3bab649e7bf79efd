"""What differs between two aligned modules, and which differences belong together.

A *delta* is one place: an instruction only one side has, or a pair that differs in what it is or
in what it reads. Deltas that explain each other form a *rewrite*: a reduction that is now made
in two steps is one rewrite, not five deltas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from conformance.ir.normal.loop_carries import slots_of
from conformance.ir.vocabulary import is_commutative

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.ir.alignment import Alignment, PairedComputations
    from conformance.ir.graph import Instruction, Value


Differing: TypeAlias = tuple[str, "Value | None", "Value | None"]
"""Where two lists of values differ: the place, what one has there, what the other."""


class Side(StrEnum):
    """What kind of place a delta is."""

    REMOVED = "-"
    ADDED = "+"
    CHANGED = "~"
    """Both sides have it; its type or an attribute differs."""
    REWIRED = ">"
    """Both sides have it, and it reads something else."""
    RESULTS = "="
    """The computation returns something else."""


@dataclass(slots=True, eq=False)
class Delta:
    """One place that differs.

    Attributes:
        side: What kind of place.
        a: The instruction of the first module, if it has one.
        b: The instruction of the second.
        what: For a changed pair, the names of what differs: `type` and attributes; for a
            rewired one, the positions of its operands.
        at: The computations it lies in.
    """

    side: Side
    a: Instruction | None
    b: Instruction | None
    at: PairedComputations
    what: tuple[str, ...] = ()

    @property
    def op(self) -> str:
        """The operation, `results` for what a computation returns."""
        one = self.a or self.b
        return one.op if one is not None else "results"


@dataclass(slots=True)
class Rewrite:
    """Deltas that belong together."""

    deltas: list[Delta] = field(default_factory=list)


def rewrites(alignment: Alignment) -> list[Rewrite]:
    """Return what differs between two aligned modules.

    Args:
        alignment: What corresponds to what.

    Returns:
        Rewrites, in the order of the first module's text.
    """
    groups, loops = _Groups(), _Loops(alignment)
    for pair in alignment.computations:
        _Difference(alignment, pair, groups, loops).take()
    return groups.rewrites()


class _Loops:
    """Knows the loops that carry more, or less, than the ones they are paired with.

    Such a slot shows around the loop, within it, and at its results: one rewrite.
    """

    def __init__(self, alignment: Alignment) -> None:
        self._slots = alignment.slots
        self._of: dict[Instruction, tuple[Delta, frozenset[int]]] = {}

    def add(self, delta: Delta) -> None:
        """Take note of a loop whose operands differ."""
        a, b = delta.a, delta.b
        if a is not None and b is not None and a in self._slots:
            pairs = self._slots[a]
            self._of[a] = delta, frozenset(pairs)
            self._of[b] = delta, frozenset(pairs.values())

    def around(self, inside: Instruction | None) -> Delta | None:
        """Return what differs around a computation of a loop."""
        return self._of[inside][0] if inside is not None and inside in self._of else None

    def of_result(self, value: Value) -> Delta | None:
        """Return what differs around a loop of which only one side has this result."""
        producer, path = value
        if not path or producer not in self._of:
            return None
        delta, paired = self._of[producer]
        return delta if path[0] not in paired else None


class _Difference:
    """Finds the deltas of two computations, and which of them explain each other."""

    def __init__(
        self, alignment: Alignment, pair: PairedComputations, groups: _Groups, loops: _Loops
    ) -> None:
        self._alignment = alignment
        self._pair = pair
        self._groups = groups
        self._loops = loops
        self._alone: dict[Instruction, Delta] = {}
        self._retyped: dict[Instruction, Delta] = {}

    def take(self) -> None:
        to_a, to_b = self._alignment.to_a, self._alignment.to_b
        for one in self._pair.a.instructions:
            if one not in to_b:
                self._take_alone(one, Delta(Side.REMOVED, one, None, self._pair))
        for one in self._pair.b.instructions:
            if one not in to_a:
                self._take_alone(one, Delta(Side.ADDED, None, one, self._pair))
        for one in self._pair.a.instructions:
            if one in to_b:
                self._take_pair(one, to_b[one])
        for _, ours, theirs in _differing_results(self._alignment, self._pair):
            a, b = (value[0] if value is not None else None for value in (ours, theirs))
            delta = Delta(Side.RESULTS, a, b, self._pair)
            self._take_surroundings(delta, ours, theirs)
            if ours is None or theirs is None:
                self._join(delta, self._loops.around(self._pair.inside))

    def _take_alone(self, one: Instruction, delta: Delta) -> None:
        self._alone[one] = delta
        self._groups.add(delta)
        for operand in one.operands:
            self._join(delta, self._alone.get(operand))
        if one.op == "parameter":
            self._join(delta, self._loops.around(self._pair.inside))

    def _take_pair(self, a: Instruction, b: Instruction) -> None:
        changed = _changed(a, b, self._pair)
        if changed is not None:
            self._groups.add(changed)
            if "type" in changed.what:
                self._retyped[a] = changed
                for operand in a.operands:
                    # A type that spreads from operand to reader is one change.
                    self._join(changed, self._retyped.get(operand))
        differing = _differing_operands(self._alignment, a, b)
        if differing:
            places = tuple(sorted({place for place, _, _ in differing}))
            rewired = Delta(Side.REWIRED, a, b, self._pair, places)
            self._loops.add(rewired)
            self._groups.add(rewired)
            self._join(rewired, changed)
            for _, ours, theirs in differing:
                self._take_surroundings(rewired, ours, theirs)

    def _take_surroundings(self, delta: Delta, ours: Value | None, theirs: Value | None) -> None:
        """Take a delta that what is alone on either side explains."""
        self._groups.add(delta)
        for value in (ours, theirs):
            if value is not None:
                self._join(delta, self._alone.get(value[0]))
                self._join(delta, self._loops.of_result(value))

    def _join(self, one: Delta, other: Delta | None) -> None:
        if other is not None:
            self._groups.join(one, other)


def _changed(a: Instruction, b: Instruction, pair: PairedComputations) -> Delta | None:
    what = ["type"] if a.type != b.type and slots_of(a) is None else []
    if a.attributes is not b.attributes:
        names = dict.fromkeys([*a.attributes, *b.attributes])
        what += [n for n in names if n not in _OF_POSITION and not _same(a, b, n)]
    if len(a.bodies) != len(b.bodies):
        what.append("bodies")
    return Delta(Side.CHANGED, a, b, pair, tuple(what)) if what else None


_OF_POSITION = frozenset({"captured"})


def _same(a: Instruction, b: Instruction, name: str) -> bool:
    if a.op == "parameter" and name == "index":
        return True  # parameters were paired by what they are given
    ours, theirs = a.attributes, b.attributes
    return (name in ours) == (name in theirs) and ours.get(name) == theirs.get(name)


def _differing_operands(alignment: Alignment, a: Instruction, b: Instruction) -> list[Differing]:
    """Find the operands in which two paired instructions differ."""
    ours, theirs = a.inputs, b.inputs
    slots = slots_of(a)
    if slots is not None and a in alignment.slots:
        fixed = _in_place(alignment, ours[: slots.fixed], theirs[: slots.fixed])
        pairs = alignment.slots[a]
        return [*fixed, *_by_slot(alignment, pairs, ours[slots.fixed :], theirs[slots.fixed :])]
    return (_unordered if is_commutative(a) else _in_place)(alignment, ours, theirs)


def _by_slot(
    alignment: Alignment, pairs: Mapping[int, int], ours: list[Value], theirs: list[Value]
) -> list[Differing]:
    """Return where two lists of values differ, slot by slot."""
    found: list[Differing] = []
    for n, one in enumerate(ours):
        other = theirs[pairs[n]] if n in pairs else None
        if other is None or not _is(alignment, one, other):
            found.append(("", one, other))
    taken = set(pairs.values())
    return [*found, *(("", None, other) for m, other in enumerate(theirs) if m not in taken)]


def _in_place(alignment: Alignment, ours: list[Value], theirs: list[Value]) -> list[Differing]:
    """Return where two lists of values differ, place by place."""
    found: list[Differing] = []
    for n in range(max(len(ours), len(theirs))):
        one = ours[n] if n < len(ours) else None
        other = theirs[n] if n < len(theirs) else None
        if one is None or other is None or not _is(alignment, one, other):
            found.append((str(n), one, other))
    return found


def _unordered(alignment: Alignment, ours: list[Value], theirs: list[Value]) -> list[Differing]:
    """Return what only one of two lists holds, in whatever order."""
    rest = list(theirs)
    found: list[Differing] = []
    for one in ours:
        stead = next((other for other in rest if _is(alignment, one, other)), None)
        if stead is None:
            found.append(("", one, None))
        else:
            rest.remove(stead)
    return [*found, *(("", None, other) for other in rest)]


def _is(alignment: Alignment, a: Value, b: Value) -> bool:
    producer, path = a
    if alignment.to_b.get(producer) is not b[0]:
        return False
    slots = alignment.slots.get(producer)
    if slots is None or not path:
        return path == b[1]
    # The results of a loop are in the order of its slots, which is its own affair.
    return (slots.get(path[0], path[0]), *path[1:]) == b[1]


def _differing_results(alignment: Alignment, pair: PairedComputations) -> list[Differing]:
    ours, theirs = pair.a.results, pair.b.results
    if pair.inside is None or pair.inside.op != "while" or not pair.path[-1].endswith(" body"):
        return _in_place(alignment, ours, theirs)
    slots = alignment.slots[pair.inside]
    carried = {n: m for n, m in slots.items() if n < len(ours) and m < len(theirs)}
    return _by_slot(alignment, carried, ours, theirs)


class _Groups:
    """Deltas, joined into groups (a union-find)."""

    def __init__(self) -> None:
        self._parent: dict[Delta, Delta] = {}

    def add(self, delta: Delta) -> None:
        self._parent.setdefault(delta, delta)

    def join(self, one: Delta, other: Delta) -> None:
        self._parent.setdefault(one, one)
        self._parent.setdefault(other, other)
        root, child = self._root(one), self._root(other)
        if root is not child:
            self._parent[child] = root

    def rewrites(self) -> list[Rewrite]:
        found: dict[Delta, Rewrite] = {}
        for delta in self._parent:
            found.setdefault(self._root(delta), Rewrite()).deltas.append(delta)
        return list(found.values())

    def _root(self, delta: Delta) -> Delta:
        while self._parent[delta] is not delta:
            self._parent[delta] = self._parent[self._parent[delta]]
            delta = self._parent[delta]
        return delta
