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
def test_the_order_in_which_a_loop_carries_is_nothing(
    steps: tuple[str, str, str], given: str
) -> None:
    """Whatever tells its slots apart."""
    found = {
        dumps(settled(loop(order, steps, RETURN, given=given)))
        for order in itertools.permutations(range(4))
    }
    assert len(found) == 1


def test_which_slot_is_read_is_something() -> None:
    """Slots that begin alike are not the same."""
    steps = ("negate(%a)", "sine(%b)", "tanh(%c)")
    one, other = (
        neutral(loop((0, 1, 2, 3), steps, f"%out = f32[4] negate(%{name})"))
        for name in ("o1", "o2")
    )
    assert one != other


def test_slots_alike_in_all_are_told_apart_in_pairs() -> None:
    """Two of a kind may each belong to one of another kind."""
    steps = ("add(%a, %c)", "add(%b, %c)", "negate(%c)")
    found = {
        neutral(loop(order, steps, "%out = f32[4] add(%o1, %o2)"))
        for order in itertools.permutations(range(4))
    }
    assert len(found) == 1


def test_operands_of_sums_are_in_order() -> None:
    """Those of differences are where they are."""
    assert neutral(hlo("%r = f32[4] add(%x, %y)")) == neutral(hlo("%r = f32[4] add(%y, %x)"))
    assert neutral(hlo("%r = f32[4] subtract(%x, %y)")) != neutral(
        hlo("%r = f32[4] subtract(%y, %x)")
    )


READY = (to_exact, fold_tuples, normalise_slots)


def test_the_outlook_of_a_slot_is_what_becomes_of_it() -> None:
    """A condition makes nothing of it, but may read it."""
    slots = find_slots(the(after(hlo(*LOOP, before=STEPS), *READY), "while"))
    assert slots is not None
    bodies = dict(slots.instruction.bodies)
    alike = [b"", b"", b""]
    assert len(set(hash_slots(bodies["body"], slots, alike, Uses()))) == 3
    made, read = zip(*hash_slots(bodies["condition"], slots, alike, Uses()), strict=True)
    assert set(made) == {b""}
    assert read[1] == read[2] != read[0]


def test_slots_that_begin_alike_get_hashes_of_their_own() -> None:
    """As far as they do anything of their own."""
    found = after(hlo(*LOOP, before=STEPS), *READY)
    slots = find_slots(the(found, "while"))
    assert slots is not None
    assert len(set(refine_colors(slots, [b"", b"", b""], Contexts(found.entry, Uses())))) == 3


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
    assert contexts.hash_context((x, ())) != contexts.hash_context((y, ()))
    assert contexts.hash_context((difference, ())) != contexts.hash_context((total, ()))


def test_inner_loops_tell_what_they_carry_from_what_they_read() -> None:
    """By what they do with each slot, not by its place."""
    slots = find_slots(the(after(hlo(*LOOP, before=STEPS), *READY), "while"))
    assert slots is not None
    assert len(set(Uses().hash_uses(slots))) == 3
