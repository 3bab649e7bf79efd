"""Alignment: pairs of corresponding instructions of two modules in the canonical form.

Pairs are found in this order: instructions that depend on equal operands in the same way; operands
of a pair in the same place; readers of a pair in the same place; instructions of the same name
stack, operation and type. Bodies of paired instructions are aligned in turn.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.ir.fingerprint import Fingerprints, spell_type
from conformance.ir.graph import Tensor
from conformance.ir.normal.color_refinement import Contexts, Uses
from conformance.ir.normal.loop_carries import find_slots
from conformance.ir.slot_pairs import pair_slots
from conformance.ir.vocabulary import is_commutative

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from conformance.ir.graph import Computation, Instruction, Module, Value


# The most equal readers that are compared with each other, which takes quadratic time.
_MOST_READERS: Final = 64


@dataclass(slots=True)
class PairedComputations:
    """Two computations at the same place of two modules.

    Attributes:
        a: The computation of the first module.
        b: The computation of the second module.
        path: The operations around them with the role, outermost first, e.g. `("while body",)`;
            empty for the entry.
        caller: The caller in the first module, None for the entry.
    """

    a: Computation
    b: Computation
    path: tuple[str, ...] = ()
    caller: Instruction | None = None


@dataclass(slots=True)
class Alignment:
    """The corresponding instructions of two modules.

    Attributes:
        to_b: The instruction of the second module by that of the first.
        to_a: The reverse.
        computations: The pairs of computations that differ.
        equal_instructions: Number of instructions in computations that are equal as a whole.
        slots: Pairs of slot numbers, by the loop or branch of the first module.
    """

    to_b: dict[Instruction, Instruction] = field(default_factory=dict)
    to_a: dict[Instruction, Instruction] = field(default_factory=dict)
    computations: list[PairedComputations] = field(default_factory=list)
    equal_instructions: int = 0
    slots: dict[Instruction, dict[int, int]] = field(default_factory=dict)

    def pair(self, a: Instruction, b: Instruction) -> bool:
        """Pair two instructions; return False if either is paired already."""
        if a in self.to_b or b in self.to_a:
            return False
        self.to_b[a] = b
        self.to_a[b] = a
        return True

    def mirror(self) -> Alignment:
        """Return the alignment of the second module with the first."""
        computations = [
            PairedComputations(p.b, p.a, p.path, self.to_b[p.caller] if p.caller else None)
            for p in self.computations
        ]
        slots = {
            self.to_b[node]: {m: n for n, m in pairs.items()} for node, pairs in self.slots.items()
        }
        return Alignment(self.to_a, self.to_b, computations, self.equal_instructions, slots)


def align(a: Module, b: Module, hashes_a: Fingerprints, hashes_b: Fingerprints) -> Alignment:
    """Align two modules.

    Args:
        a: The first module, in the canonical form.
        b: The second module.
        hashes_a: Hashes of the first.
        hashes_b: Hashes of the second.

    Returns:
        The alignment; swapped modules give the mirrored one.
    """
    first, second = (
        hashes.computations[id(m.entry)] for m, hashes in ((a, hashes_a), (b, hashes_b))
    )
    # Some steps are greedy, so the result would depend on the order of the modules.
    if second < first:
        return align(b, a, hashes_b, hashes_a).mirror()
    return _Aligner(hashes_a, hashes_b).run(a, b)


class _Aligner:
    """Pairs the instructions of two modules, computation by computation."""

    def __init__(self, hashes_a: Fingerprints, hashes_b: Fingerprints) -> None:
        self._alignment = Alignment()
        self._hashes = (hashes_a, hashes_b)
        # Pairs whose readers may be certain pairs; then, pairs that guesses may start from.
        self._new_pairs: list[tuple[Instruction, Instruction]] = []
        self._guess_candidates: list[tuple[Instruction, Instruction]] = []

    def run(self, a: Module, b: Module) -> Alignment:
        todo = [PairedComputations(a.entry, b.entry)]
        seen: set[tuple[int, int]] = set()
        while todo:
            pair = todo.pop()
            # Two calls may share both computations, e.g. the reducer of every all-reduce.
            if (id(pair.a), id(pair.b)) in seen:
                continue
            seen.add((id(pair.a), id(pair.b)))
            if self._are_equal([pair.a], [pair.b]):
                self._alignment.equal_instructions += len(pair.a.instructions)
                continue
            self._alignment.computations.append(pair)
            self._pair = pair
            self._readers = (_find_readers(pair.a), _find_readers(pair.b))
            self._pair_instructions()
            # Slots before bodies: the parameters of a body are paired by the slots of its caller.
            self._pair_slots()
            todo += self._pair_bodies()
        return self._alignment

    def _are_equal(self, a: list[Computation], b: list[Computation]) -> bool:
        of_a, of_b = (hashes.computations for hashes in self._hashes)
        return [of_a[id(inner)] for inner in a] == [of_b[id(inner)] for inner in b]

    def _pair_slots(self) -> None:
        for node in self._pair.a.instructions:
            slots = find_slots(node)
            other = self._alignment.to_b.get(node)
            slots_b = find_slots(other) if other is not None else None
            if slots is None or slots_b is None:
                continue
            if self._are_equal(slots.bodies, slots_b.bodies):
                self._alignment.slots[node] = {n: n for n in range(len(slots.values))}
            else:
                self._alignment.slots[node] = pair_slots(self._alignment.to_b, slots, slots_b)

    def _pair_bodies(self) -> Iterator[PairedComputations]:
        # Reversed, because `run` takes the last first: differences come in the order of the text.
        for a in reversed(self._pair.a.instructions):
            b = self._alignment.to_b.get(a)
            roles = dict(b.bodies) if b is not None else {}
            for role, inner in a.bodies:
                if role in roles:
                    path = (*self._pair.path, f"{a.op} {role}")
                    yield PairedComputations(inner, roles[role], path, a)

    def _pair_instructions(self) -> None:
        # From certain to guessed: a wrong pair made early would spread to its operands and readers.
        self._pair_parameters()
        self._pair_equal()
        self._propagate_certain()
        self._pair_results()
        self._propagate()
        # Name stacks survive a change of operands, but many instructions share one.
        self._pair_by(lambda node, label: (node.op, label, node.origin.name))
        self._pair_by(lambda node, _: (node.op, node.origin.name, _make_type_key(node)))
        self._pair_by(lambda node, label: (node.op, label))

    def _add(self, a: Instruction, b: Instruction) -> None:
        if self._alignment.pair(a, b):
            self._new_pairs.append((a, b))

    def _pair_parameters(self) -> None:
        a, b = self._pair.a.parameters, self._pair.b.parameters
        caller = self._pair.caller
        pairs = self._alignment.slots.get(caller) if caller is not None else None
        slots = find_slots(caller) if caller is not None else None
        slots_b = find_slots(self._alignment.to_b[caller]) if caller is not None else None
        if pairs is not None and slots is not None and slots_b is not None:
            others, own = slots.split_parameters(self._pair.a)
            others_b, own_b = slots_b.split_parameters(self._pair.b)
            a = [*others, *(own[n] for n in pairs)]
            b = [*others_b, *(own_b[m] for m in pairs.values())]
        # Not strict: a release may add or drop an argument.
        for node, another in zip(a, b, strict=False):
            self._alignment.pair(node, another)

    def _pair_equal(self) -> None:
        """Pair equal instructions with paired operands, from the parameters down."""
        a, b = self._pair.a, self._pair.b
        marks = Fingerprints(commutative=True)
        for hashes in self._hashes:
            marks.computations |= hashes.computations
        # Unpaired parameters get different marks, so that their readers are not taken as equal.
        for number, node in enumerate([*a.parameters, *b.parameters]):
            marks.instructions[node] = b"%d" % number
        to_b = self._alignment.to_b
        for node in a.parameters:
            if node in to_b:
                marks.instructions[to_b[node]] = marks.instructions[node]
        marked: dict[bytes, tuple[list[Instruction], list[Instruction]]] = {}
        for side, computation in enumerate((a, b)):
            for node in computation.instructions:
                if node.op != "parameter":
                    marked.setdefault(marks.add_instruction(node), ([], []))[side].append(node)
        contexts = Contexts(a, Uses()), Contexts(b, Uses())
        for ours, theirs in marked.values():
            self._pair_group(ours, theirs, contexts)
        # Equal instructions have equal operands, so only their readers may find further pairs.
        self._new_pairs = [(node, to_b[node]) for node in a.instructions if node in to_b]

    def _pair_group(
        self,
        ours: list[Instruction],
        theirs: list[Instruction],
        contexts: tuple[Contexts, Contexts],
    ) -> None:
        """Pair equal instructions: first those with equal readers, then the others in order."""
        if len(ours) > 1 or len(theirs) > 1:
            waiting: dict[bytes, list[Instruction]] = defaultdict(list)
            # Reversed, because the loop below takes the last: equal contexts are paired in order.
            for node in reversed(theirs):
                waiting[contexts[1].hash_context((node, ()))].append(node)
            # A copy, because the loop removes pairs from the list.
            for node in list(ours):
                found = waiting[contexts[0].hash_context((node, ()))]
                if found:
                    self._alignment.pair(node, found[-1])
                    ours.remove(node)
                    theirs.remove(found.pop())
        for node, another in zip(ours, theirs, strict=False):
            self._alignment.pair(node, another)

    def _pair_results(self) -> None:
        for (a, _), (b, _) in zip(self._pair.a.results, self._pair.b.results, strict=False):
            if a.op == b.op:
                self._add(a, b)

    def _propagate(self) -> None:
        """Pair operands and readers of pairs, certain ones first, until there are no new pairs."""
        self._propagate_certain()
        while self._guess_candidates:
            a, b = self._guess_candidates.pop()
            # A guess, so it is made only when no reader is certain any more.
            for node, another in self._pair_operands(a, b):
                # A constant of another type is another constant, not a changed one.
                if node.op == another.op and (node.op != "constant" or node.type == another.type):
                    self._add(node, another)
            self._pair_readers(a, b, certain=False)
            self._propagate_certain()

    def _propagate_certain(self) -> None:
        """Pair readers whose operands are all paired, until there are no new pairs."""
        while self._new_pairs:
            a, b = self._new_pairs.pop()
            self._pair_readers(a, b, certain=True)
            self._guess_candidates.append((a, b))

    def _pair_readers(self, a: Instruction, b: Instruction, *, certain: bool) -> None:
        """Pair equal readers of a pair at the same operand.

        Args:
            a: The instruction of the first module.
            b: The instruction of the second.
            certain: Whether their other operands must be paired as well; otherwise the likeliest
                reader is taken, unless several are equally likely.
        """
        alignment = self._alignment
        readers_a = [node for node in self._readers[0].get(a, ()) if node not in alignment.to_b]
        readers_b = [node for node in self._readers[1].get(b, ()) if node not in alignment.to_a]
        if not readers_a or not readers_b:
            return
        labels: dict[Hashable, list[Instruction]] = defaultdict(list)
        for node in readers_b:
            labels[_label_instruction(node, self._hashes[1]), _find_positions(node, b)].append(node)
        for node in readers_a:
            found = labels.get(
                (_label_instruction(node, self._hashes[0]), _find_positions(node, a))
            )
            # The readers of a value with many are found from their other operands or readers.
            if not found or len(found) > _MOST_READERS:
                continue
            best = self._find_likeliest(node, found)
            # A reader with an unpaired operand may get another partner once that is paired.
            if best is None or (certain and self._count_shared(node, best) < len(node.operands)):
                continue
            self._add(node, best)
            found.remove(best)

    def _pair_by(self, key: Callable[[Instruction, Hashable], Hashable]) -> None:
        groups: dict[Hashable, tuple[list[Instruction], list[Instruction]]] = {}
        sides = (
            (self._pair.a, self._alignment.to_b, self._hashes[0]),
            (self._pair.b, self._alignment.to_a, self._hashes[1]),
        )
        for side, (computation, paired, hashes) in enumerate(sides):
            for node in computation.instructions:
                if node not in paired and node.op != "parameter":
                    found = groups.setdefault(key(node, _label_instruction(node, hashes)), ([], []))
                    found[side].append(node)
        for ours, theirs in groups.values():
            # The order of the program pairs them; with other counts any pair would be a guess.
            if len(ours) == len(theirs):
                for node, another in zip(ours, theirs, strict=True):
                    self._add(node, another)
                    self._propagate()
        self._propagate()

    def _pair_operands(
        self, a: Instruction, b: Instruction
    ) -> list[tuple[Instruction, Instruction]]:
        """Return the corresponding operands of two paired instructions."""
        slots_a, slots_b = find_slots(a), find_slots(b)
        if slots_a is not None and slots_b is not None:
            values_a, values_b = slots_a.values, slots_b.values
            pairs = pair_slots(self._alignment.to_b, slots_a, slots_b)
            fixed = list(
                zip(a.operands[: slots_a.fixed], b.operands[: slots_b.fixed], strict=False)
            )
            return [*fixed, *((values_a[n][0], values_b[m][0]) for n, m in pairs.items())]
        if is_commutative(a):
            return self._pair_unordered(a.inputs, b.inputs)
        return list(zip(a.operands, b.operands, strict=False))

    def _pair_unordered(
        self, a: list[Value], b: list[Value]
    ) -> list[tuple[Instruction, Instruction]]:
        rest_a = [node for node, _ in a if node not in self._alignment.to_b]
        rest_b = [node for node, _ in b if node not in self._alignment.to_a]
        pairs = []
        for node in rest_a:
            found = [other for other in rest_b if other.op == node.op]
            best = self._find_likeliest(node, found)
            if best is not None:
                rest_b.remove(best)
                pairs.append((node, best))
        return pairs

    def _count_shared(self, a: Instruction, b: Instruction) -> int:
        """Return the number of operands of two instructions that are paired with each other."""
        if is_commutative(a) or find_slots(a) is not None:
            theirs = set(b.operands)
            return sum(self._alignment.to_b.get(node) in theirs for node in a.operands)
        pairs = zip(a.operands, b.operands, strict=False)
        return sum(self._alignment.to_b.get(node) is other for node, other in pairs)

    def _find_likeliest(
        self, node: Instruction, candidates: list[Instruction]
    ) -> Instruction | None:
        """Return the candidate that shares most with an instruction, None if it is ambiguous."""
        if len(candidates) == 1:
            return candidates[0]
        likeness = [
            (self._count_shared(node, other), other.origin == node.origin, other.type == node.type)
            for other in candidates
        ]
        most = max(likeness, default=(0, False, False))
        return candidates[likeness.index(most)] if likeness.count(most) == 1 else None


def _label_instruction(node: Instruction, hashes: Fingerprints) -> Hashable:
    """Return a key for an instruction without its operands; the order of slots is ignored."""
    if find_slots(node) is None:
        return hashes.hash_label(node)
    # Whether a loop carries or captures a value differs between compilers, so pairs ignore it.
    attributes = {k: v for k, v in node.attributes.items() if k != "captured"}
    return (node.op, _make_type_key(node), *attributes.items())


def _make_type_key(node: Instruction) -> Hashable:
    if isinstance(node.type, Tensor) or find_slots(node) is None:
        return node.type
    # Sorted as text, because sizes are numbers or, if dynamic, texts.
    return tuple(sorted(map(spell_type, node.type)))


def _find_readers(computation: Computation) -> dict[Instruction, list[Instruction]]:
    readers: dict[Instruction, list[Instruction]] = defaultdict(list)
    for node in computation.instructions:
        for operand in dict.fromkeys(node.operands):
            readers[operand].append(node)
    return readers


def _find_positions(reader: Instruction, operand: Instruction) -> tuple[int, ...]:
    if is_commutative(reader) or find_slots(reader) is not None:
        return ()
    return tuple(n for n, node in enumerate(reader.operands) if node is operand)
