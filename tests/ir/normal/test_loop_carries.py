"""The values that loops carry, and that loops, branches and regions capture."""

from __future__ import annotations

import pytest

from conformance.ir.normal.attributes import rename_operations
from conformance.ir.normal.forms import to_exact
from conformance.ir.normal.loop_carries import (
    close_regions,
    find_slots,
    move_loop_invariants,
    normalise_slots,
)
from conformance.ir.normal.tuples import fold_tuples
from tests.ir.jaxpr.documents import F32, document, eqn, jaxpr
from tests.ir.texts import LOOP, STEPS, after, hlo, neutral, ops, reads, settled, stablehlo, the

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


def test_an_invariant_carry_is_captured() -> None:
    """Its result is its initial value."""
    found = after(hlo(*LOOP, before=STEPS), *READY, move_loop_invariants)
    loop = the(found, "while")
    assert (reads(loop), loop.attributes["captured"], len(loop.type)) == (["zero", "x", "y"], 1, 2)
    assert len(dict(loop.bodies)["body"].results) == 2


def test_the_result_of_an_invariant_carry_is_its_initial_value() -> None:
    """Readers read that value."""
    lines = [*LOOP[:3], "%r = f32[4] get-tuple-element(%loop), index=2"]
    assert neutral(hlo(*lines, before=STEPS)) == neutral(hlo("%r = f32[4] copy(%y)"))


def test_an_unread_invariant_carry_is_dropped() -> None:
    """No computation reads it."""
    found = after(hlo(*LOOP, before=UNREAD), *READY, move_loop_invariants, move_loop_invariants)
    assert reads(the(found, "while")) == ["zero", "x"]
    assert not move_loop_invariants(found)


def test_a_carried_constant_is_copied_into_the_loop() -> None:
    """Defined inside or carried, it is the same program."""
    carried = [LOOP[0], "%c = f32[4] constant({1, 2, 3, 4})", *LOOP[1:]]
    carried[2] = carried[2].replace("%y)", "%c)")
    sunk = STEPS.replace(
        "%z = f32[4] multiply(%x, %w)",
        "%c = f32[4] constant({1, 2, 3, 4})\n  %z = f32[4] multiply(%x, %c)",
    )
    assert neutral(hlo(*carried, before=STEPS)) == neutral(hlo(*LOOP, before=sunk))


def test_equal_captures_are_merged() -> None:
    """Also if only CSE shows that they are equal."""
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
def test_constants_sink_through_nested_loops(deep: int) -> None:
    """Every level has a copy, and no level carries it."""
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


def test_a_body_that_changes_nothing_carries_nothing() -> None:
    """Its reads are captures."""
    lazy = STEPS.replace("tuple(%j, %z, %w)", "tuple(%i, %x, %w)")
    found = settled(hlo(*LOOP[:3], "%r = f32[4] get-tuple-element(%loop), index=1", before=lazy))
    assert (ops(found), found.entry.results[0][0].op) == ([], "parameter")


def test_permuted_parameters_are_carried() -> None:
    """Their values change."""
    swap = STEPS.replace("tuple(%j, %z, %w)", "tuple(%j, %w, %x)")
    loop = the(settled(hlo(*LOOP, before=swap)), "while")
    assert (len(loop.operands), "captured" in loop.attributes) == (3, False)


def test_every_branch_takes_the_operands_of_all() -> None:
    """The selector comes first and is no slot."""
    choice = the(after(hlo(*CHOICE, before=BRANCHES), *READY), "conditional")
    slots = find_slots(choice)
    assert slots is not None
    assert (slots.fixed, slots.carried, len(slots.values)) == (1, 0, 3)
    assert [len(inner.parameters) for inner in slots.bodies] == [3, 3]


def test_unread_operands_of_branches_are_dropped() -> None:
    """And equal operands are merged."""
    found = settled(hlo(*CHOICE, before=BRANCHES))
    assert sorted(reads(the(found, "conditional"))[1:]) == ["x", "y"]
    both = BRANCHES.replace("index=0", "index=1")
    assert reads(the(settled(hlo(*CHOICE, before=both)), "conditional"))[1:] == ["y"]


def test_constants_of_a_jaxpr_loop_follow_the_carry() -> None:
    """Those of the condition, then those of the body."""
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


UNARY = "(tensor<4xf32>) -> tensor<4xf32>"
BINARY = "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"
ZERO = '%zero = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>'


def case(*branches: str) -> list[str]:
    """Return a choice between regions, each of one line that makes `%r`."""
    regions = "}, {".join(
        f'\n{line}\n"stablehlo.return"(%b) : (tensor<4xf32>) -> ()\n' for line in branches
    )
    return [
        ZERO,
        *f'%r = "stablehlo.case"(%zero) ({{{regions}}}) : (tensor<i32>) -> tensor<4xf32>'.split(
            "\n"
        ),
    ]


NEGATE = f'%b = "stablehlo.negate"(%x) : {UNARY}'
SUBTRACT = f'%b = "stablehlo.subtract"(%x, %y) : {BINARY}'


def test_outer_values_become_operands() -> None:
    """The same for all regions, each once."""
    found = the(after(stablehlo(*case(SUBTRACT, NEGATE)), rename_operations, close_regions), "case")
    assert reads(found)[1:] == ["x", "y"]
    assert found.attributes["captured"] == 2
    assert [len(inner.parameters) for _, inner in found.bodies] == [2, 2]


def test_outer_constants_are_copied_into_regions() -> None:
    """A constant is no dependency."""
    constant = (
        '%c = "stablehlo.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>'
    )
    add = f'%b = "stablehlo.add"(%x, %c) : {BINARY}'
    outside = stablehlo(constant, *case(add, NEGATE))
    inside = stablehlo(*case(f"{constant}\n{add}", NEGATE))
    assert the(after(outside, rename_operations, close_regions), "case").attributes["captured"] == 1
    assert neutral(outside) == neutral(inside)


def test_a_nested_region_captures_through_the_outer_region() -> None:
    """The outer region takes the value for the inner one."""
    inner = "\n".join(case(SUBTRACT, NEGATE)[1:])
    inner = inner.replace("%b", "%c").replace("%r =", "%b =")
    found = after(stablehlo(*case(inner, NEGATE)), rename_operations, close_regions)
    outer = found.entry.instructions[-1]
    assert outer.attributes["captured"] == 2
    nested = outer.bodies[0][1].instructions[-1]
    assert all(one in outer.bodies[0][1].instructions for one in nested.operands)


def test_branches_take_the_captures_of_all() -> None:
    """Each has a parameter for every capture."""
    other = NEGATE.replace("%x", "%y")
    found = after(stablehlo(*case(NEGATE, other, SUBTRACT)), close_regions)
    assert [len(inner.parameters) for _, inner in the(found, "stablehlo.case").bodies] == [2, 2, 2]


def test_the_order_of_captures_is_canonical() -> None:
    """Independent of the order of reads."""
    mirrored = SUBTRACT.replace("%x, %y", "%y, %x")
    one = stablehlo(*case(SUBTRACT, NEGATE))
    assert neutral(one) == neutral(
        stablehlo(*case(SUBTRACT, NEGATE), f'%d = "stablehlo.negate"(%y) : {UNARY}')
    )
    assert neutral(one) != neutral(stablehlo(*case(mirrored, NEGATE)))


def test_a_captured_value_equals_an_invariant_carry() -> None:
    """StableHLO and HLO differ in this."""

    def loop(read: str, given: str, more: str = "") -> list[str]:
        types = "tensor<i32>, tensor<4xf32>" + (", tensor<4xf32>" if more else "")
        head = "^bb0(%i: tensor<i32>, %a: tensor<4xf32>" + (
            ", %w: tensor<4xf32>):" if more else "):"
        )
        count = 3 if more else 2
        return [
            ZERO,
            f'%l:{count} = "stablehlo.while"({given}) ({{',
            head.replace("%i", "%ci").replace("%a", "%ca").replace("%w", "%cw"),
            '%most = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>',
            '%less = "stablehlo.compare"(%ci, %most)',
            "<{comparison_direction = #stablehlo<comparison_direction LT>}>",
            ": (tensor<i32>, tensor<i32>) -> tensor<i1>",
            '"stablehlo.return"(%less) : (tensor<i1>) -> ()',
            "}, {",
            head,
            '%one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>',
            '%j = "stablehlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>',
            f'%n = "stablehlo.multiply"(%a, {read}) : {BINARY}',
            f'"stablehlo.return"(%j, %n{more}) : ({types}) -> ()',
            f"}}) : ({types}) -> ({types})",
        ]

    captured = stablehlo(*loop("%y", "%zero, %x"), results=("%l#1",))
    carried = stablehlo(*loop("%w", "%zero, %x, %y", ", %w"), results=("%l#1",))
    assert neutral(captured) == neutral(carried)
