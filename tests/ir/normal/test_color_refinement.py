"""The order of loop carries."""

from __future__ import annotations

import itertools

import pytest

from conformance.ir.normal.color_refinement import Contexts, Uses, hash_slots, refine_colors
from conformance.ir.normal.forms import to_exact
from conformance.ir.normal.loop_carries import find_slots, normalise_slots
from conformance.ir.normal.text import dumps
from conformance.ir.normal.tuples import fold_tuples
from tests.ir.texts import LOOP, STEPS, after, hlo, neutral, settled, the

FOUR = ("s32[]", "f32[4]", "f32[4]", "f32[4]")


def loop(
    order: tuple[int, ...], steps: tuple[str, str, str], *readers: str, given: str = "xxx"
) -> str:
    """Return HLO with a loop over a counter and three values that it carries in some order."""
    types = f"({', '.join(FOUR[n] for n in order)})"
    names = ("%i", "%a", "%b", "%c")
    take = [
        f"{names[n]} = {FOUR[n]} get-tuple-element(%p), index={order.index(n)}" for n in range(4)
    ]
    after = ("%j", "%n1", "%n2", "%n3")
    made = [f"{name} = f32[4] {step}" for name, step in zip(after[1:], steps, strict=True)]
    body = [
        f"%p = {types} parameter(0)",
        *take,
        "%one = s32[] constant(1)",
        "%j = s32[] add(%i, %one)",
        *made,
        f"ROOT %r = {types} tuple({', '.join(after[n] for n in order)})",
    ]
    condition = [
        f"%p = {types} parameter(0)",
        take[0],
        "%most = s32[] constant(5)",
        "ROOT %l = pred[] compare(%i, %most), direction=LT",
    ]
    start = ("%zero", *(f"%{name}" for name in given))
    lines = [
        "%zero = s32[] constant(0)",
        f"%t = {types} tuple({', '.join(start[n] for n in order)})",
        f"%loop = {types} while(%t), condition=%condition, body=%body",
        *(
            f"%{n}{k} = {FOUR[k]} get-tuple-element(%loop), index={order.index(k)}"
            for k, n in ((1, "o"), (2, "o"), (3, "o"))
        ),
        *readers,
    ]
    before = "\n\n".join(
        f"%{name} {{\n  " + "\n  ".join(inner) + "\n}"
        for name, inner in (("condition", condition), ("body", body))
    )
    return hlo(*lines, before=before)


RETURN = "%out = (f32[4], f32[4], f32[4]) tuple(%o1, %o2, %o3)"
CASES = {
    "distinguished by what they begin as": (("negate(%a)", "negate(%b)", "sine(%c)"), "xyx"),
    "distinguished by the step": (("negate(%a)", "sine(%b)", "tanh(%c)"), "xxx"),
    "distinguished by who reads the result": (("negate(%a)", "negate(%b)", "negate(%c)"), "xxx"),
    "pushed along": (("negate(%a)", "copy(%a)", "copy(%b)"), "xxx"),
    "changing places": (("copy(%b)", "copy(%a)", "negate(%c)"), "xxx"),
    "going round": (("copy(%b)", "copy(%c)", "copy(%a)"), "xxx"),
    "distinguished by the place in which one reader reads them": (
        ("subtract(%b, %c)", "negate(%b)", "negate(%c)"),
        "xxx",
    ),
}


@pytest.mark.parametrize(("steps", "given"), CASES.values(), ids=CASES.keys())
def test_the_order_of_loop_carries_is_canonical(steps: tuple[str, str, str], given: str) -> None:
    """For each property that distinguishes slots."""
    found = {
        dumps(settled(loop(order, steps, RETURN, given=given)))
        for order in itertools.permutations(range(4))
    }
    assert len(found) == 1


def test_reading_another_slot_is_a_difference() -> None:
    """Even if the slots have equal initial values."""
    steps = ("negate(%a)", "sine(%b)", "tanh(%c)")
    one, other = (
        neutral(loop((0, 1, 2, 3), steps, f"%out = f32[4] negate(%{name})"))
        for name in ("o1", "o2")
    )
    assert one != other


def test_symmetric_slots_are_ordered_as_pairs() -> None:
    """Two equal slots may each belong to another one."""
    steps = ("add(%a, %c)", "add(%b, %c)", "negate(%c)")
    found = {
        neutral(loop(order, steps, "%out = f32[4] add(%o1, %o2)"))
        for order in itertools.permutations(range(4))
    }
    assert len(found) == 1


def test_operands_of_commutative_operations_are_sorted() -> None:
    """Those of differences keep their places."""
    assert neutral(hlo("%r = f32[4] add(%x, %y)")) == neutral(hlo("%r = f32[4] add(%y, %x)"))
    assert neutral(hlo("%r = f32[4] subtract(%x, %y)")) != neutral(
        hlo("%r = f32[4] subtract(%y, %x)")
    )


READY = (to_exact, fold_tuples, normalise_slots)


def test_slots_are_hashed_by_next_value_and_readers() -> None:
    """A condition makes no next value, but may read a slot."""
    slots = find_slots(the(after(hlo(*LOOP, before=STEPS), *READY), "while"))
    assert slots is not None
    bodies = dict(slots.instruction.bodies)
    alike = [b"", b"", b""]
    assert len(set(hash_slots(bodies["body"], slots, alike, Uses()))) == 3
    made, read = zip(*hash_slots(bodies["condition"], slots, alike, Uses()), strict=True)
    assert set(made) == {b""}
    assert read[1] == read[2] != read[0]


def test_slots_of_equal_initial_values_are_refined() -> None:
    """If their uses differ."""
    found = after(hlo(*LOOP, before=STEPS), *READY)
    slots = find_slots(the(found, "while"))
    assert slots is not None
    assert len(set(refine_colors(slots, [b"", b"", b""], Contexts(found.entry, Uses())))) == 3


def test_a_context_depends_on_readers_and_places() -> None:
    """Down to the results; operands of a sum have no place."""
    found = after(
        hlo(
            "%a = f32[4] subtract(%x, %y)",
            "%b = f32[4] add(%x, %y)",
            "%r = (f32[4], f32[4]) tuple(%a, %b)",
        )
    )
    x, y, difference, total, _ = found.entry.instructions
    contexts = Contexts(found.entry, Uses())
    assert contexts.hash_context((x, ())) != contexts.hash_context((y, ()))
    assert contexts.hash_context((difference, ())) != contexts.hash_context((total, ()))


def test_uses_distinguish_carried_from_captured_slots() -> None:
    """By the use of each slot, not by its place."""
    slots = find_slots(the(after(hlo(*LOOP, before=STEPS), *READY), "while"))
    assert slots is not None
    assert len(set(Uses().hash_uses(slots))) == 3
