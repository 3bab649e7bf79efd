"""Slots that look alike."""

from __future__ import annotations

from conformance.ir.normal.forms import to_structure
from conformance.ir.normal.slots import name_slots, slots_of
from conformance.ir.normal.symmetry import Contexts, Uses, outlook, told_apart
from conformance.ir.normal.tuples import fold_tuples
from tests.ir.texts import LOOP, STEPS, after, hlo, the

READY = (to_structure, fold_tuples, name_slots)


def test_the_outlook_of_a_slot_is_what_becomes_of_it() -> None:
    """A condition makes nothing of it, but may read it."""
    slots = slots_of(the(after(hlo(*LOOP, before=STEPS), *READY), "while"))
    assert slots is not None
    bodies = dict(slots.instruction.bodies)
    alike = [b"", b"", b""]
    assert len(set(outlook(bodies["body"], slots, alike, Uses()))) == 3
    made, read = zip(*outlook(bodies["condition"], slots, alike, Uses()), strict=True)
    assert set(made) == {b""}
    assert read[1] == read[2] != read[0]


def test_slots_that_begin_alike_get_hashes_of_their_own() -> None:
    """As far as they do anything of their own."""
    found = after(hlo(*LOOP, before=STEPS), *READY)
    slots = slots_of(the(found, "while"))
    assert slots is not None
    assert len(set(told_apart(slots, [b"", b"", b""], Contexts(found.entry, Uses())))) == 3


def test_a_context_is_who_reads_a_value_in_which_place() -> None:
    """Down to the results; the order of a sum is nothing."""
    found = after(
        hlo(
            "%a = f32[4] subtract(%x, %y)",
            "%b = f32[4] add(%x, %y)",
            "%r = (f32[4], f32[4]) tuple(%a, %b)",
        )
    )
    x, y, difference, total, _ = found.entry.instructions
    contexts = Contexts(found.entry, Uses())
    assert contexts.of((x, ())) != contexts.of((y, ()))
    assert contexts.of((difference, ())) != contexts.of((total, ()))


def test_inner_loops_tell_what_they_carry_from_what_they_read() -> None:
    """By what they do with each slot, not by its place."""
    slots = slots_of(the(after(hlo(*LOOP, before=STEPS), *READY), "while"))
    assert slots is not None
    assert len(set(Uses().of(slots))) == 3
