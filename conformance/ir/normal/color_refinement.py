"""The order of loop carries: colour refinement (Weisfeiler-Lehman) of the slots of loops.

No compiler says in which order a loop carries its values. A slot has a colour, first that of the
value it is given; where several are alike, all that surrounds them tells them apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING

from conformance.ir.fingerprint import Fingerprints, digest, spell_type
from conformance.ir.normal.loop_carries import find_slots, reorder_slots
from conformance.ir.normal.rewriting import follow, follow_value, get_type
from conformance.ir.vocabulary import CONTROL_FLOW, Purity, is_commutative

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.ir.graph import Computation, Instruction, Module, Value
    from conformance.ir.normal.loop_carries import Slots
    from conformance.ir.normal.rewriting import Moved

_ROUNDS = 4
_MOST = 100_000
"""How many instructions may be looked at to tell the slots of one loop apart."""


def order_slots(module: Module) -> Fingerprints:
    """Sort what loops carry, what loops, branches and regions capture, what sums add.

    A carried slot is known by its initial value and, where several begin alike, by what a step
    makes of it; a captured one by its value. So are the operands of commutative operations.

    Args:
        module: Rewritten in place, its slots named.

    Returns:
        The hashes of the module as it is afterwards.
    """
    hashes = Fingerprints(commutative=True)
    _order_computation(module.entry, hashes)
    return hashes


def has_equal_loops(module: Module, hashes: Fingerprints) -> bool:
    """Say whether loops or branches, now that they are in order, do the same pure work.

    Args:
        module: A module.
        hashes: Its hashes.
    """
    pure = Purity()
    for computation in module.reachable():
        seen: set[bytes] = set()
        for instruction in computation.instructions:
            if instruction.op in CONTROL_FLOW and pure.is_pure(instruction):
                found = hashes.instructions[instruction]
                if found in seen:
                    return True
                seen.add(found)
        pure.add(computation)
    return False


def _order_computation(computation: Computation, hashes: Fingerprints) -> None:
    if id(computation) in hashes.computations:
        return
    moved: Moved = {}
    contexts = Contexts(computation, Uses())
    for instruction in computation.instructions:
        follow(instruction, moved)
        if len(instruction.operands) > 1 and hashes.is_commutative(instruction):
            _sort_operands(instruction, hashes, contexts)
        slots = find_slots(instruction)
        if slots is not None:
            order = _sort_slots(slots, hashes, contexts)
            if order != list(range(len(order))):
                carried = slots.carried
                reorder_slots(slots, order, carried=carried)
                places = sorted(range(carried), key=order.__getitem__)
                if carried:  # What only captures, such as a branch, keeps its results.
                    moved[instruction] = [(instruction, (place,)) for place in places]
        for _, inner in instruction.bodies:
            _order_computation(inner, hashes)
        hashes.add(instruction)
    computation.results = [follow_value(value, moved) for value in computation.results]
    hashes.close(computation)


def _sort_operands(instruction: Instruction, hashes: Fingerprints, contexts: Contexts) -> None:
    values = instruction.inputs
    values.sort(key=lambda value: (hashes.instructions[value[0]], value[1]))
    first, last = values[0], values[-1]
    if (
        first != last
        and hashes.instructions[first[0]] == hashes.instructions[last[0]]
        and first[1] == last[1]
    ):
        # Equal instructions that must not merge, such as collectives: their other readers decide.
        values.sort(key=contexts.of)
    instruction.inputs = values


def _sort_slots(slots: Slots, hashes: Fingerprints, contexts: Contexts) -> list[int]:
    """Return the numbers of the slots, carried before captured, each group in its order."""
    colours = [hashes.instructions[i] + b"%r" % (path,) for i, path in slots.values]
    carried = slots.carried
    if len(set(colours[:carried])) < carried:
        colours = refine_colors(slots, colours, contexts)
    numbers = range(len(colours))
    front = sorted(numbers[:carried], key=lambda n: colours[n])
    return [*front, *sorted(numbers[carried:], key=lambda n: colours[n])]


def refine_colors(slots: Slots, colours: list[bytes], contexts: Contexts) -> list[bytes]:
    """Tell apart slots that begin alike: by what a step makes of them, by who reads the result.

    Those alike in all that are told apart one by one: the first gets a mark, and what depends on
    it differs from then on.

    Args:
        slots: Slots of a loop.
        colours: A hash of what each is given.
        contexts: What becomes of the values around the loop.

    Returns:
        A hash of each slot, which does not depend on their order.
    """
    carried = slots.carried
    # Beyond these rounds, slots that look alike stay as they come.
    size = sum(len(inner.instructions) for inner in slots.bodies)
    work, uses = iter(range(max(_ROUNDS, _MOST // (size + 1)))), Uses()
    colours = _refine(slots, colours, work, uses)
    if len(set(colours[:carried])) < carried:
        results = [contexts.of((slots.instruction, (n,))) for n in range(carried)]
        told = [digest(c + read) for c, read in zip(colours[:carried], results, strict=True)]
        colours = _refine(slots, [*told, *colours[carried:]], work, uses)
    while len(set(colours[:carried])) < carried and next(work, None) is not None:
        known = Counter(colours[:carried])
        alike = min(colour for colour, count in known.items() if count > 1)
        colours[colours.index(alike)] = digest(alike + b"first")
        colours = _refine(slots, colours, work, uses)
    return colours


def _refine(slots: Slots, colours: list[bytes], work: Iterator[int], uses: Uses) -> list[bytes]:
    """Let each slot know those that it depends on, and those that depend on it."""
    kinds = len(set(colours))
    for _ in work:
        colours = _refine_once(slots, colours, uses)
        before, kinds = kinds, len(set(colours))
        if kinds in {before, len(colours)}:
            break
    return colours


def _refine_once(slots: Slots, colours: list[bytes], uses: Uses) -> list[bytes]:
    seen = [hash_slots(inner, slots, colours, uses) for inner in slots.bodies]
    return [
        digest(b"".join([colour, *(part for own in seen for part in own[n])]))
        for n, colour in enumerate(colours)
    ]


class Uses:
    """Knows of inner loops and branches what they do with each of their slots, in any order.

    Args:
        deepest: How many loops within loops are looked into.
    """

    def __init__(self, deepest: int = 3) -> None:
        self.labels = Fingerprints(commutative=True)
        """What each instruction is by itself, which is asked for again and again."""
        self._known: dict[Instruction, list[bytes]] = {}
        self._left = deepest

    def of(self, slots: Slots) -> list[bytes]:
        """Return a hash for each slot, which does not depend on what it is given."""
        found = self._known.get(slots.instruction)
        if found is None:
            found = [
                b"%d" % (n < slots.carried) + spell_type(get_type(value)).encode()
                for n, value in enumerate(slots.values)
            ]
            if self._left > 0:
                self._left -= 1
                found = _refine_once(slots, found, self)
                self._left += 1
            self._known[slots.instruction] = found
        return found


def hash_slots(
    computation: Computation, slots: Slots, colours: list[bytes], uses: Uses
) -> list[tuple[bytes, bytes]]:
    """Hash what becomes of each slot in one step, and who reads it.

    Args:
        computation: One that has a parameter for each slot.
        slots: The slots.
        colours: What each slot is known by.
        uses: What inner loops do with their slots.

    Returns:
        For each slot what the step makes of it, nothing if this is no step, and who reads it.
    """
    shallow = _Shallow(uses)
    numbers = {own: n for n, own in enumerate(slots.parameters(computation)[1])}
    for instruction in computation.instructions:
        if instruction in numbers:
            shallow.of[instruction] = colours[numbers[instruction]]
        else:
            shallow.add(instruction)
    # The body's results are the slots of the next step; a condition's is something else.
    step = computation is dict(slots.instruction.bodies).get("body")
    ends = colours[: slots.carried] if step else None
    contexts = Contexts(computation, uses, shallow.of, ends)
    made = [shallow.hash_value(value) for value in computation.results] if step else []
    read = [contexts.of((own, ())) for own in numbers]
    return list(zip_longest(made, read, fillvalue=b""))


class _Shallow:
    """Hashes that leave out the order in which inner loops and branches take their slots."""

    def __init__(self, uses: Uses) -> None:
        self.of: dict[Instruction, bytes] = {}
        self._uses = uses

    def add(self, instruction: Instruction) -> None:
        operands = [self.hash_value(value) for value in instruction.inputs]
        labels = self._uses.labels
        slots = find_slots(instruction)
        if slots is not None:
            given = zip(operands[slots.fixed :], self._uses.of(slots), strict=True)
            fixed, own = operands[: slots.fixed], instruction.op.encode()
            operands = [*fixed, *sorted(own + use for own, use in given)]
        else:
            own = labels.label(instruction)
            if labels.is_commutative(instruction):
                operands.sort()
        self.of[instruction] = digest(b"".join([own, *operands]))

    def hash_value(self, value: Value) -> bytes:
        producer, path = value
        found = self.of[producer]
        if not path:
            return found
        slots = find_slots(producer)
        if slots is not None and slots.carried:
            # A result of an inner loop is known by its slot.
            number = path[0]
            found += self.hash_value(slots.values[number]) + self._uses.of(slots)[number]
            return digest(found + b"%r" % (path[1:],))
        return found + b"%r" % (path,)


class Contexts:
    """Hashes of what becomes of each value of a computation, down to its results.

    Args:
        computation: The computation.
        uses: What loops and branches do with their slots.
        known: A hash of each instruction; without them each is what it is by itself.
        ends: A hash for each result; without them each is its number.
    """

    def __init__(
        self,
        computation: Computation,
        uses: Uses,
        known: Mapping[Instruction, bytes] | None = None,
        ends: Sequence[bytes] | None = None,
    ) -> None:
        self._computation = computation
        self._uses = uses
        self._known = known or {}
        self._ends = ends or [b"result %d" % n for n in range(len(computation.results))]

    def of(self, value: Value) -> bytes:
        """Return a hash of what becomes of a value."""
        return digest(b"".join(sorted(self._readers.get(value, []))))

    @cached_property
    def _readers(self) -> dict[Value, list[bytes]]:
        labels = self._uses.labels
        readers: dict[Value, list[bytes]] = defaultdict(list)
        whole: dict[Instruction, list[bytes]] = defaultdict(list)
        for value, end in zip(self._computation.results, self._ends, strict=True):
            readers[value].append(end)
            whole[value[0]].append(end)
        for instruction in reversed(self._computation.instructions):
            loop = find_slots(instruction) is not None
            own = instruction.op.encode() if loop else labels.label(instruction)
            seen = sorted(whole.get(instruction, []))
            context = digest(b"".join([self._known.get(instruction, own), *seen]))
            places = self._hash_places(instruction)
            for value, place in zip(instruction.inputs, places, strict=True):
                readers[value].append(context + place)
                whole[value[0]].append(context + place)
        return readers

    def _hash_places(self, instruction: Instruction) -> list[bytes]:
        """Return what the places are in which an instruction takes its operands."""
        count = len(instruction.operands)
        if is_commutative(instruction):
            return [b""] * count
        slots = find_slots(instruction)
        if slots is None:
            return [b"%d" % place for place in range(count)]
        return [*(b"%d" % place for place in range(slots.fixed)), *self._uses.of(slots)]
