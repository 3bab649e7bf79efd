"""Folds, dead-code elimination and common-subexpression elimination."""

from __future__ import annotations

import pytest

from conformance.ir.normal.forms import to_exact
from conformance.ir.normal.simplification import (
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_copies,
    fold_identities,
    fold_reshapes,
    order_comparisons,
)
from tests.ir.texts import ADD, LOOP, STEPS, after, hlo, neutral, ops, reads, stablehlo, the


def test_copies_are_folded() -> None:
    """A convert to the same type as well."""
    text = hlo("%c = f32[4]{0} copy(%x)", "%d = f32[4]{0} convert(%c)", "%r = f32[4] negate(%d)")
    found = after(text, to_exact, fold_copies)
    assert (ops(found), reads(the(found, "negate"))) == (["negate"], ["x"])


def test_a_copy_to_the_host_is_kept() -> None:
    """In both directions; between memories of a device the compiler chooses."""
    there, here = "%c = f32[4]{0:S(5)} copy(%x)", "%r = f32[4]{0} copy(%c)"
    assert neutral(hlo(there, here)) != neutral(hlo("%r = f32[4] copy(%x)"))
    assert neutral(hlo(there.replace("S(5)", "S(1)"), here)) == neutral(hlo("%r = f32[4] copy(%x)"))


def test_an_asynchronous_copy_to_the_host_becomes_a_copy() -> None:
    """Start and done are folded."""
    pair = hlo(
        "%s = (f32[4]{0:S(5)}, f32[4]{0}, u32[]) copy-start(%x)",
        "%r = f32[4]{0:S(5)} copy-done(%s)",
    )
    assert neutral(pair) == neutral(hlo("%r = f32[4]{0:S(5)} copy(%x)"))


def test_consecutive_reshapes_are_merged() -> None:
    """And folded if the shape is the original one."""
    chain = ["%a = f32[2,2] reshape(%x)", "%b = f32[1,4] reshape(%a)"]
    found = after(hlo(*chain, "%r = f32[4,1] reshape(%b)"), to_exact, fold_reshapes)
    assert reads(found.entry.results[0][0]) == ["x"]
    back = after(hlo(*chain, "%r = f32[4] reshape(%b)"), to_exact, fold_reshapes)
    assert back.entry.results[0][0].name == "x"


@pytest.mark.parametrize(
    ("operation", "kept"),
    [
        ("%r = f32[4]{0} transpose(%x), dimensions={0}", False),
        ("%r = f32[4]{0} broadcast(%x), dimensions={0}", False),
        ("%r = f32[4,4]{1,0} broadcast(%x), dimensions={0}", True),
        ("%r = f32[4]{0} slice(%x), slice={[0:4]}", False),
        ("%r = f32[3]{0} slice(%x), slice={[0:3]}", True),
        ("%r = f32[4]{0} concatenate(%x), dimensions={0}", False),
        ("%r = f32[8]{0} concatenate(%x, %y), dimensions={0}", True),
        ("%r = s32[4]{0} convert(%x)", True),
    ],
)
def test_identities_are_folded(operation: str, kept: bool) -> None:
    """Operations that change no element and no place."""
    found = after(hlo(operation), to_exact, fold_copies, fold_identities, fold_reshapes)
    assert bool(ops(found)) is kept


def test_a_transposing_broadcast_is_kept() -> None:
    """The shape is equal, the places are not."""
    made = "%m = f32[4,4] broadcast(%x), dimensions={0}"
    turned = hlo(made, "%r = f32[4,4] broadcast(%m), dimensions={1,0}")
    assert ops(after(turned, to_exact, fold_identities)) == ["broadcast", "broadcast"]
    straight = hlo(made, "%r = f32[4,4] broadcast(%m), dimensions={0,1}")
    assert ops(after(straight, to_exact, fold_identities)) == ["broadcast"]


def test_full_slices_and_updates_are_folded() -> None:
    """A dynamic slice of everything can only begin at 0."""
    start = "%i = s32[] constant(2)"
    taken = hlo(start, "%r = f32[4] dynamic-slice(%x, %i), dynamic_slice_sizes={4}")
    assert neutral(taken) == neutral(hlo("%r = f32[4] copy(%x)"))
    put = hlo(start, "%r = f32[4] dynamic-update-slice(%x, %y, %i)")
    assert neutral(put) == neutral(hlo("%r = f32[4] copy(%y)"))


@pytest.mark.parametrize(("greater", "less"), [("GT", "LT"), ("GE", "LE")])
def test_comparisons_are_mirrored(greater: str, less: str) -> None:
    """In both spellings of the direction."""
    found = after(hlo(f"%r = pred[4] compare(%x, %y), direction={greater}"), order_comparisons)
    compare = the(found, "compare")
    assert (compare.attributes["direction"], reads(compare)) == (less, ["y", "x"])
    one, other = (
        stablehlo(
            f'%r = "stablehlo.compare"({operands}) <{{comparison_direction = '
            f"#stablehlo<comparison_direction {direction}>}}> : "
            "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
            types="tensor<4xi1>",
        )
        for direction, operands in ((greater, "%x, %y"), (less, "%y, %x"))
    )
    assert neutral(one) == neutral(other)


@pytest.mark.parametrize(("direction", "same"), [("EQ", True), ("NE", True), ("LT", False)])
def test_operands_of_equality_are_sorted(direction: str, same: bool) -> None:
    """Those of other comparisons are not."""
    one = neutral(hlo(f"%r = pred[4] compare(%x, %y), direction={direction}"))
    other = neutral(hlo(f"%r = pred[4] compare(%y, %x), direction={direction}"))
    assert (one == other) is same


REDUCE = "f32[4] all-reduce(%x), replica_groups={}, to_apply=%add"
CALL = 'f32[4] custom-call(%x), custom_call_target="f", custom_call_has_side_effect=true'


def test_dead_code_is_removed() -> None:
    """With the instructions that only it reads."""
    text = hlo("%a = f32[4] negate(%x)", "%b = f32[4] sine(%a)", "%r = f32[4] add(%x, %y)")
    assert ops(after(text, eliminate_dead_code)) == ["add"]


@pytest.mark.parametrize("impure", [REDUCE, CALL, "f32[4] rng(%x, %y), distribution=rng_uniform"])
def test_dead_effects_are_kept(impure: str) -> None:
    """An unread collective still waits for the others."""
    text = hlo(f"%a = {impure}", "%b = f32[4] sine(%a)", "%r = f32[4] add(%x, %y)", before=ADD)
    assert len(ops(after(text, eliminate_dead_code))) == 2


def test_a_dead_loop_is_removed_unless_it_has_an_effect() -> None:
    """A collective within counts, at any depth."""
    talks = STEPS.replace("multiply(%x, %w)", "all-reduce(%x), replica_groups={}, to_apply=%add")
    dead = [*LOOP, "%n = f32[4] negate(%x)"]
    assert neutral(hlo(*dead, before=STEPS)) == neutral(hlo("%n = f32[4] negate(%x)"))
    assert neutral(hlo(*dead, before=f"{ADD}\n\n{talks}")) != neutral(hlo("%n = f32[4] negate(%x)"))


def test_a_kept_call_has_the_effects_of_its_callee() -> None:
    """Calls on the host are not inlined."""
    callee = "%callee {\n  %x = f32[4] parameter(0)\n  ROOT %n = " + REDUCE + "\n}"
    host = 'frontend_attributes={_xla_compute_type="host"}'
    text = hlo(
        f"%c = f32[4] call(%x), to_apply=%callee, {host}",
        "%r = f32[4] add(%x, %y)",
        before=f"{ADD}\n\n{callee}",
    )
    assert ops(after(text, eliminate_dead_code)) == ["call", "add"]


def test_equal_instructions_are_merged() -> None:
    """With operands of commutative operations in any order."""
    text = hlo(
        "%a = f32[4] add(%x, %y)",
        "%b = f32[4] add(%y, %x)",
        "%r = f32[4] subtract(%a, %b)",
    )
    assert ops(after(text, eliminate_common_subexpressions)) == ["add", "subtract"]


def test_equal_collectives_are_not_merged() -> None:
    """Nor are the instructions that depend on them."""
    text = hlo(f"%a = {REDUCE}", f"%b = {REDUCE}", "%r = f32[4] subtract(%a, %b)", before=ADD)
    assert ops(after(text, eliminate_common_subexpressions)) == [
        "all-reduce",
        "all-reduce",
        "subtract",
    ]


def test_equal_loops_are_merged() -> None:
    """In any order of their carries."""
    again = [line.replace("%loop", "%loop2").replace("%r ", "%r2 ") for line in LOOP[2:]]
    text = hlo(*LOOP, *again, "%s = f32[4] subtract(%r, %r2)", before=STEPS)
    once = hlo(*LOOP, "%s = f32[4] subtract(%r, %r)", before=STEPS)
    assert neutral(text) == neutral(once)
