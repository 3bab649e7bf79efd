"""What loops carry, what they capture."""

from __future__ import annotations

import pytest

from conformance.ir.normal.forms import to_exact
from conformance.ir.normal.loop_carries import find_slots, move_loop_invariants, normalise_slots
from conformance.ir.normal.tuples import fold_tuples
from tests.ir.jaxpr.documents import F32, document, eqn, jaxpr
from tests.ir.texts import LOOP, STEPS, after, hlo, neutral, ops, reads, settled, the

READY = (to_exact, fold_tuples, normalise_slots)
UNREAD = STEPS.replace("multiply(%x, %w)", "negate(%x)")
BRANCHES = """%yes {
  %p = (f32[4], f32[4]) parameter(0)
  %a = f32[4] get-tuple-element(%p), index=0
  ROOT %n = f32[4] negate(%a)
}

%no {
  %p = f32[4] parameter(0)
  ROOT %n = f32[4] sine(%p)
}"""
CHOICE = (
    "%t = (f32[4], f32[4]) tuple(%x, %y)",
    "%which = pred[] constant(true)",
    "%r = f32[4] conditional(%which, %t, %y), true_computation=%yes, false_computation=%no",
)


def test_what_a_step_leaves_alone_is_captured() -> None:
    """Its result is what it was given."""
    found = after(hlo(*LOOP, before=STEPS), *READY, move_loop_invariants)
    loop = the(found, "while")
    assert (reads(loop), loop.attributes["captured"], len(loop.type)) == (["zero", "x", "y"], 1, 2)
    assert len(dict(loop.bodies)["body"].results) == 2


def test_the_result_of_an_invariant_slot_is_what_it_was_given() -> None:
    """Whoever reads it reads that."""
    lines = [*LOOP[:3], "%r = f32[4] get-tuple-element(%loop), index=2"]
    assert neutral(hlo(*lines, before=STEPS)) == neutral(hlo("%r = f32[4] copy(%y)"))


def test_an_unread_slot_is_no_slot() -> None:
    """Carried along unchanged, for nobody."""
    found = after(hlo(*LOOP, before=UNREAD), *READY, move_loop_invariants, move_loop_invariants)
    assert reads(the(found, "while")) == ["zero", "x"]
    assert not move_loop_invariants(found)


def test_a_constant_is_made_again_inside() -> None:
    """Sunk into the loop or carried through it: the same."""
    carried = [LOOP[0], "%c = f32[4] constant({1, 2, 3, 4})", *LOOP[1:]]
    carried[2] = carried[2].replace("%y)", "%c)")
    sunk = STEPS.replace(
        "%z = f32[4] multiply(%x, %w)",
        "%c = f32[4] constant({1, 2, 3, 4})\n  %z = f32[4] multiply(%x, %c)",
    )
    assert neutral(hlo(*carried, before=STEPS)) == neutral(hlo(*LOOP, before=sunk))


def test_equal_captures_are_one() -> None:
    """Also when only the equality of what is captured makes them so."""
    text = [LOOP[0], "%n = f32[4] negate(%x)", "%m = f32[4] negate(%x)"]
    steps = STEPS.replace("(s32[], f32[4], f32[4])", "(s32[], f32[4], f32[4], f32[4])")
    steps = steps.replace("multiply(%x, %w)", "add(%x, %both)").replace(
        "%one =",
        "%v = f32[4] get-tuple-element(%p), index=3\n  %both = f32[4] subtract(%w, %v)\n  %one =",
    )
    steps = steps.replace("tuple(%j, %z, %w)", "tuple(%j, %z, %w, %v)")
    loop = [line.replace("f32[4], f32[4])", "f32[4], f32[4], f32[4])") for line in LOOP[1:]]
    loop[0] = loop[0].replace("%y)", "%n, %m)")
    found = settled(hlo(*text, *loop, before=steps))
    assert the(found, "while").attributes["captured"] == 1


@pytest.mark.parametrize("deep", [1, 2, 3])
def test_constants_sink_through_loops_within_loops(deep: int) -> None:
    """However deep: every level makes its own, and no level carries it."""
    text = hlo(*LOOP, before=STEPS)
    for level in range(deep):
        outer = STEPS.replace("%condition", f"%condition{level}").replace("%body", f"%body{level}")
        inner = "" if not level else str(level - 1)
        step = (
            "%zero = s32[] constant(0)\n  %t = (s32[], f32[4], f32[4]) tuple(%zero, %x, %w)\n"
            f"  %l = (s32[], f32[4], f32[4]) while(%t), condition=%condition{inner}, "
            f"body=%body{inner}\n  %z = f32[4] get-tuple-element(%l), index=1"
        )
        outer = outer.replace("%z = f32[4] multiply(%x, %w)", step)
        text = text.replace("ENTRY", f"{outer}\n\nENTRY")
    last = f"while(%t), condition=%condition{deep - 1}, body=%body{deep - 1}\n  %r"
    text = text.replace("while(%t), condition=%condition, body=%body\n  %r", last)
    text = text.replace("tuple(%zero, %x, %y)\n  %loop", "tuple(%zero, %x, %c)\n  %loop").replace(
        "  %zero = s32[] constant(0)\n  %t = (s32[], f32[4], f32[4]) tuple(%zero, %x, %c)",
        "  %zero = s32[] constant(0)\n  %c = f32[4] constant({1, 2, 3, 4})\n"
        "  %t = (s32[], f32[4], f32[4]) tuple(%zero, %x, %c)",
    )
    found = settled(text)
    loops = [one for one in found.walk() if one.op == "while"]
    assert [len(one.operands) for one in loops] == [2] * (deep + 1)


def test_a_body_may_leave_everything_alone() -> None:
    """Then nothing is carried, and what is read is captured."""
    lazy = STEPS.replace("tuple(%j, %z, %w)", "tuple(%i, %x, %w)")
    found = settled(hlo(*LOOP[:3], "%r = f32[4] get-tuple-element(%loop), index=1", before=lazy))
    assert (ops(found), found.entry.results[0][0].op) == ([], "parameter")


def test_a_body_that_returns_its_parameters_permuted_carries_them() -> None:
    """They change, by changing places."""
    swap = STEPS.replace("tuple(%j, %z, %w)", "tuple(%j, %w, %x)")
    loop = the(settled(hlo(*LOOP, before=swap)), "while")
    assert (len(loop.operands), "captured" in loop.attributes) == (3, False)


def test_every_branch_takes_all_that_any_takes() -> None:
    """The selector comes first and is no slot."""
    choice = the(after(hlo(*CHOICE, before=BRANCHES), *READY), "conditional")
    slots = find_slots(choice)
    assert slots is not None
    assert (slots.fixed, slots.carried, len(slots.values)) == (1, 0, 3)
    assert [len(inner.parameters) for inner in slots.bodies] == [3, 3]


def test_what_no_branch_reads_is_not_given() -> None:
    """And what is given twice is given once."""
    found = settled(hlo(*CHOICE, before=BRANCHES))
    assert sorted(reads(the(found, "conditional"))[1:]) == ["x", "y"]
    both = BRANCHES.replace("index=0", "index=1")
    assert reads(the(settled(hlo(*CHOICE, before=both)), "conditional"))[1:] == ["y"]


def test_a_jaxprs_loop_has_its_constants_behind() -> None:
    """The constants of the condition and of the step, each where they are read."""
    condition = jaxpr(eqn("lt", [0, 1]), inputs=(F32, F32), out=(2,))
    step = jaxpr(eqn("add", [0, 1]), inputs=(F32, F32), out=(2,))
    loop = eqn(
        "while",
        [0, 1, 0],
        cond_jaxpr={"jaxpr": 1},
        body_jaxpr={"jaxpr": 2},
        cond_nconsts=1,
        body_nconsts=1,
    )
    text = document(jaxpr(loop, inputs=(F32, F32), out=(2,)), condition, step)
    slots = find_slots(the(settled(text), "while"))
    assert slots is not None
    assert (slots.carried, len(slots.values)) == (1, 3)
