"""The order of slots and operands."""

from __future__ import annotations

import itertools

import pytest

from conformance.ir.normal.text import dumps
from tests.ir.texts import hlo, neutral, settled

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
    "told apart by what they begin as": (("negate(%a)", "negate(%b)", "sine(%c)"), "xyx"),
    "told apart by the step": (("negate(%a)", "sine(%b)", "tanh(%c)"), "xxx"),
    "told apart by who reads the result": (("negate(%a)", "negate(%b)", "negate(%c)"), "xxx"),
    "pushed along": (("negate(%a)", "copy(%a)", "copy(%b)"), "xxx"),
    "changing places": (("copy(%b)", "copy(%a)", "negate(%c)"), "xxx"),
    "going round": (("copy(%b)", "copy(%c)", "copy(%a)"), "xxx"),
    "told apart by the place in which one reader reads them": (
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
        dumps(settled(loop(order, steps, RETURN, given=given)), 1)
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
