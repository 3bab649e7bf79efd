"""Pairs of slots of two loops or branches, which may have different orders."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from conformance.ir.fingerprint import spell_type
from conformance.ir.normal.color_refinement import Uses, hash_slots
from conformance.ir.normal.rewriting import get_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.ir.graph import Instruction
    from conformance.ir.normal.loop_carries import Slots

Keys: TypeAlias = list[bytes]
"""Keys by which slots are paired; an empty key pairs nothing."""


def pair_slots(to_b: Mapping[Instruction, Instruction], a: Slots, b: Slots) -> dict[int, int]:
    """Pair the slots of two loops or branches.

    Args:
        to_b: The paired instruction of the second module, by that of the first.
        a: Slots of an instruction of the first module.
        b: Slots of the paired instruction.

    Returns:
        Numbers of slots: first pairs with the same operand and use, then with the same operand,
        then of the same type, in order.
    """
    names = {value: b"%d" % number for number, value in enumerate(dict.fromkeys(b.values))}
    operand_keys_a: Keys = [
        names.get((to_b[node], path), b"") if node in to_b else b"" for node, path in a.values
    ]
    operand_keys_b: Keys = [names[value] for value in b.values]
    found: dict[int, int] = {}
    # Operands that are all paired and all different decide alone, without hashing any body.
    if sorted(operand_keys_a) == sorted(operand_keys_b) and len(names) == len(operand_keys_a):
        _pair_equal_keys(found, a, b, operand_keys_a, operand_keys_b)
        return found
    for ours, theirs in zip(
        _make_keys(a, operand_keys_a), _make_keys(b, operand_keys_b), strict=True
    ):
        _pair_equal_keys(found, a, b, ours, theirs)
        # Later keys need hashes of nested bodies, and cannot pair more slots.
        if len(found) == min(len(operand_keys_a), len(operand_keys_b)):
            break
    return found


def _pair_equal_keys(found: dict[int, int], a: Slots, b: Slots, keys_a: Keys, keys_b: Keys) -> None:
    """Pair the remaining slots of equal keys, in order."""
    taken = set(found.values())
    # A carried slot is never paired with a captured one: only the carried one has a result.
    waiting: dict[tuple[bytes, bool], list[int]] = defaultdict(list)
    for m in reversed(range(len(keys_b))):
        if m not in taken:
            waiting[keys_b[m], m < b.carried].append(m)
    for n, key in enumerate(keys_a):
        if key and n not in found and waiting.get((key, n < a.carried)):
            found[n] = waiting[key, n < a.carried].pop()


def _make_keys(slots: Slots, operand_keys: Keys) -> Iterator[Keys]:
    """Yield keys of slots, the most specific first: hashes of their operands and uses."""
    types = [spell_type(get_type(value)).encode() for value in slots.values]
    step = dict(slots.instruction.bodies).get("body")
    last = [node.op.encode() for node, _ in step.results] if step is not None else []
    # The operation that makes the next value still identifies a slot when its operands differ.
    ops = [*last[: slots.carried], *[b""] * (len(types) - slots.carried)]

    def add_operand_keys(keys: Keys) -> Keys:
        return [key + own if own else b"" for key, own in zip(keys, operand_keys, strict=True)]

    yield add_operand_keys(_join_keys(*_hash_slots_of_bodies(slots, operand_keys, Uses())))
    # The difference may be in an inner loop, so shallower hashes are tried as well.
    for uses in (Uses(), Uses(deepest=0)):
        made, read = _hash_slots_of_bodies(slots, types, uses)
        both = _join_keys(made, read)
        yield add_operand_keys(both)
        yield both
        yield from map(add_operand_keys, (made, read))
    yield add_operand_keys(ops)
    yield operand_keys
    yield types


def _hash_slots_of_bodies(slots: Slots, colours: Keys, uses: Uses) -> tuple[Keys, Keys]:
    """Return hashes of the next value and of the readers of each slot."""
    seen = list(
        zip(*(hash_slots(inner, slots, colours, uses) for inner in slots.bodies), strict=True)
    )
    made = [b"".join(made for made, _ in own) for own in seen]
    return made, [b"".join(read for _, read in own) for own in seen]


def _join_keys(made: Keys, read: Keys) -> Keys:
    return [own + other for own, other in zip(made, read, strict=True)]
