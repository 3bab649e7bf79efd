"""The order of loop carries, by colour refinement (Weisfeiler-Lehman) of the slots of loops.

The order in which a loop carries its values is free. A slot has a colour, at first that of its
initial value; equal colours are refined by the computations around the slots.
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

# Rounds that a loop of any size gets.
_ROUNDS = 4
# How many instructions the refinement of a loop may hash, beyond `_ROUNDS` rounds.
_MOST = 100_000


def order_slots(module: Module) -> Fingerprints:
    """Sort the carries of loops, the captures, and the operands of commutative operations.

    Carried slots are sorted by their colour, captured ones by the hash of their value.

    Args:
        module: Rewritten in place, its slots in normal form.

    Returns:
        The hashes of the sorted module.
    """
    hashes = Fingerprints(commutative=True)
    _order_computation(module.entry, hashes)
    return hashes


def has_equal_loops(module: Module, hashes: Fingerprints) -> bool:
    """Whether equal pure loops or branches remain; sorting may have revealed them.

    Args:
        module: A sorted module.
        hashes: Its hashes.
    """
    pure = Purity()
    for computation in module.find_reachable():
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
    # Reducers are shared by many callers.
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
                if carried:  # without carries, as in a branch, results do not move
                    moved[instruction] = [(instruction, (place,)) for place in places]
        # The bodies come after their slots are sorted, because their hashes depend on that order.
        for _, inner in instruction.bodies:
            _order_computation(inner, hashes)
        # After its slots and bodies are sorted: the hash covers both.
        hashes.add_instruction(instruction)
    computation.results = [follow_value(value, moved) for value in computation.results]
    hashes.finish_computation(computation)


def _sort_operands(instruction: Instruction, hashes: Fingerprints, contexts: Contexts) -> None:
    values = instruction.inputs
    values.sort(key=lambda value: (hashes.instructions[value[0]], value[1]))
    first, last = values[0], values[-1]
    if (
        first != last
        and hashes.instructions[first[0]] == hashes.instructions[last[0]]
        and first[1] == last[1]
    ):
        # Equal instructions with effects, such as collectives: their other readers decide.
        values.sort(key=contexts.hash_context)
    instruction.inputs = values


def _sort_slots(slots: Slots, hashes: Fingerprints, contexts: Contexts) -> list[int]:
    """Return the numbers of the slots in order, carried before captured."""
    colours = [hashes.instructions[i] + b"%r" % (path,) for i, path in slots.values]
    carried = slots.carried
    # Refinement is expensive; most slots differ in their initial value.
    if len(set(colours[:carried])) < carried:
        colours = refine_colors(slots, colours, contexts)
    numbers = range(len(colours))
    front = sorted(numbers[:carried], key=lambda n: colours[n])
    return [*front, *sorted(numbers[carried:], key=lambda n: colours[n])]


def refine_colors(slots: Slots, colours: list[bytes], contexts: Contexts) -> list[bytes]:
    """Refine the colours of slots by the body of the loop, then by the readers of its results.

    Colours that stay equal are individualised as in graph canonisation: the first slot of a class
    gets a unique colour, and refinement resumes. Slots of a class are almost always symmetric, so
    that either choice gives the same graph.

    Args:
        slots: Slots of a loop.
        colours: A hash of the operand of each slot.
        contexts: Contexts of the values around the loop.

    Returns:
        A colour for each slot, independent of the order of the slots.
    """
    carried = slots.carried
    # When the budget is spent, slots of equal colour keep the order of the text.
    size = sum(len(inner.instructions) for inner in slots.bodies)
    budget, uses = iter(range(max(_ROUNDS, _MOST // (size + 1)))), Uses()
    colours = _refine(slots, colours, budget, uses)
    if len(set(colours[:carried])) < carried:
        results = [contexts.hash_context((slots.instruction, (n,))) for n in range(carried)]
        refined = [digest(c + read) for c, read in zip(colours[:carried], results, strict=True)]
        colours = _refine(slots, [*refined, *colours[carried:]], budget, uses)
    while len(set(colours[:carried])) < carried and next(budget, None) is not None:
        # The smallest colour, so that the choice of the class does not depend on the text.
        known = Counter(colours[:carried])
        alike = min(colour for colour, count in known.items() if count > 1)
        colours[colours.index(alike)] = digest(alike + b"first")
        colours = _refine(slots, colours, budget, uses)
    return colours


def _refine(slots: Slots, colours: list[bytes], budget: Iterator[int], uses: Uses) -> list[bytes]:
    """Refine until the number of colours stays the same, all differ, or the budget is spent."""
    kinds = len(set(colours))
    for _ in budget:
        colours = _refine_once(slots, colours, uses)
        # Refinement only splits classes, so an equal number means equal classes.
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
    """Hashes of the use of each slot of inner loops and branches, independent of their order.

    Args:
        deepest: How many levels of nested loops are hashed; the cost grows with each.

    Attributes:
        labels: Hashes of instructions without their operands, computed once.
    """

    def __init__(self, deepest: int = 3) -> None:
        self.labels = Fingerprints(commutative=True)
        self._known: dict[Instruction, list[bytes]] = {}
        self._levels = deepest

    def hash_uses(self, slots: Slots) -> list[bytes]:
        """Return a hash of the use of each slot, independent of its operand."""
        found = self._known.get(slots.instruction)
        if found is None:
            found = [
                b"%d" % (n < slots.carried) + spell_type(get_type(value)).encode()
                for n, value in enumerate(slots.values)
            ]
            if self._levels > 0:
                self._levels -= 1
                found = _refine_once(slots, found, self)
                self._levels += 1
            self._known[slots.instruction] = found
        return found


def hash_slots(
    computation: Computation, slots: Slots, colours: list[bytes], uses: Uses
) -> list[tuple[bytes, bytes]]:
    """Hash the next value and the readers of each slot in a computation of a loop.

    Args:
        computation: The body or the condition of the loop.
        slots: The slots.
        colours: The colour of each slot.
        uses: Uses of the slots of inner loops.

    Returns:
        For each slot a hash of its next value, empty for a condition, and one of its readers.
    """
    shallow = _Shallow(uses)
    # Slots have their colour in place of a hash; all other hashes follow from these.
    numbers = {own: n for n, own in enumerate(slots.split_parameters(computation)[1])}
    for instruction in computation.instructions:
        if instruction in numbers:
            shallow.of[instruction] = colours[numbers[instruction]]
        else:
            shallow.add(instruction)
    # The results of a body are the slots of the next iteration; those of a condition are not.
    step = computation is dict(slots.instruction.bodies).get("body")
    ends = colours[: slots.carried] if step else None
    contexts = Contexts(computation, uses, shallow.of, ends)
    made = [shallow.hash_value(value) for value in computation.results] if step else []
    read = [contexts.hash_context((own, ())) for own in numbers]
    return list(zip_longest(made, read, fillvalue=b""))


class _Shallow:
    """Hashes of instructions that ignore the order of the slots of inner loops and branches."""

    def __init__(self, uses: Uses) -> None:
        self.of: dict[Instruction, bytes] = {}
        self._uses = uses

    def add(self, instruction: Instruction) -> None:
        operands = [self.hash_value(value) for value in instruction.inputs]
        labels = self._uses.labels
        slots = find_slots(instruction)
        if slots is not None:
            given = zip(operands[slots.fixed :], self._uses.hash_uses(slots), strict=True)
            fixed, own = operands[: slots.fixed], instruction.op.encode()
            # Each operand with its use, sorted: the order of the inner slots is not decided yet.
            operands = [*fixed, *sorted(own + use for own, use in given)]
        else:
            own = labels.hash_label(instruction)
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
            # The order of an inner loop's results is not known yet: its slot identifies a result.
            number = path[0]
            found += self.hash_value(slots.values[number]) + self._uses.hash_uses(slots)[number]
            return digest(found + b"%r" % (path[1:],))
        return found + b"%r" % (path,)


class Contexts:
    """Hashes of the context of each value of a computation: of all its direct and later readers.

    Args:
        computation: The computation.
        uses: Uses of the slots of loops and branches.
        known: A hash of each instruction; by default its label, without operands.
        ends: A hash of each result; by default its number.
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

    def hash_context(self, value: Value) -> bytes:
        """Return a hash of the context of a value."""
        return digest(b"".join(sorted(self._readers.get(value, []))))

    @cached_property
    def _readers(self) -> dict[Value, list[bytes]]:
        labels = self._uses.labels
        readers: dict[Value, list[bytes]] = defaultdict(list)
        # A value's context is by part of the result, an instruction's by all its parts.
        whole: dict[Instruction, list[bytes]] = defaultdict(list)
        for value, end in zip(self._computation.results, self._ends, strict=True):
            readers[value].append(end)
            whole[value[0]].append(end)
        # Backwards, so that the context of every reader is complete before it is passed on.
        for instruction in reversed(self._computation.instructions):
            loop = find_slots(instruction) is not None
            own = instruction.op.encode() if loop else labels.hash_label(instruction)
            seen = sorted(whole.get(instruction, []))
            context = digest(b"".join([self._known.get(instruction, own), *seen]))
            places = self._hash_places(instruction)
            for value, place in zip(instruction.inputs, places, strict=True):
                readers[value].append(context + place)
                whole[value[0]].append(context + place)
        return readers

    def _hash_places(self, instruction: Instruction) -> list[bytes]:
        """Return a hash for the place of each operand of an instruction."""
        count = len(instruction.operands)
        if is_commutative(instruction):
            return [b""] * count
        slots = find_slots(instruction)
        if slots is None:
            return [b"%d" % place for place in range(count)]
        return [*(b"%d" % place for place in range(slots.fixed)), *self._uses.hash_uses(slots)]
