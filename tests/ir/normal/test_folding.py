"""Copies, reshapes and comparisons."""

from __future__ import annotations

import pytest

from conformance.ir.normal.folding import (
    fold_copies,
    fold_identities,
    fold_reshapes,
    order_comparisons,
)
from conformance.ir.normal.forms import to_structure
from tests.ir.texts import after, hlo, neutral, ops, reads, stablehlo, the


def test_copies_are_read_through() -> None:
    """A convert to the same type as well."""
    text = hlo("%c = f32[4]{0} copy(%x)", "%d = f32[4]{0} convert(%c)", "%r = f32[4] negate(%d)")
    found = after(text, to_structure, fold_copies)
    assert (ops(found), reads(the(found, "negate"))) == (["negate"], ["x"])


def test_a_copy_to_another_memory_stays() -> None:
    """Both to the host and back; between memories of a device it is the compiler's affair."""
    there, here = "%c = f32[4]{0:S(5)} copy(%x)", "%r = f32[4]{0} copy(%c)"
    assert neutral(hlo(there, here)) != neutral(hlo("%r = f32[4] copy(%x)"))
    assert neutral(hlo(there.replace("S(5)", "S(1)"), here)) == neutral(hlo("%r = f32[4] copy(%x)"))


def test_an_asynchronous_copy_to_the_host_stays_one_copy() -> None:
    """Start and done are the copy."""
    pair = hlo(
        "%s = (f32[4]{0:S(5)}, f32[4]{0}, u32[]) copy-start(%x)",
        "%r = f32[4]{0:S(5)} copy-done(%s)",
    )
    assert neutral(pair) == neutral(hlo("%r = f32[4]{0:S(5)} copy(%x)"))


def test_reshapes_in_a_row_are_one() -> None:
    """And none, if the shape is the old one in the end."""
    chain = ["%a = f32[2,2] reshape(%x)", "%b = f32[1,4] reshape(%a)"]
    found = after(hlo(*chain, "%r = f32[4,1] reshape(%b)"), to_structure, fold_reshapes)
    assert reads(found.entry.results[0][0]) == ["x"]
    back = after(hlo(*chain, "%r = f32[4] reshape(%b)"), to_structure, fold_reshapes)
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
def test_what_moves_nothing_is_nothing(operation: str, kept: bool) -> None:
    """What changes no element and no place is read through."""
    found = after(hlo(operation), to_structure, fold_copies, fold_identities, fold_reshapes)
    assert bool(ops(found)) is kept


def test_a_broadcast_that_turns_a_square_stays() -> None:
    """The shape is the old one, the places are not."""
    made = "%m = f32[4,4] broadcast(%x), dimensions={0}"
    turned = hlo(made, "%r = f32[4,4] broadcast(%m), dimensions={1,0}")
    assert ops(after(turned, to_structure, fold_identities)) == ["broadcast", "broadcast"]
    straight = hlo(made, "%r = f32[4,4] broadcast(%m), dimensions={0,1}")
    assert ops(after(straight, to_structure, fold_identities)) == ["broadcast"]


def test_slices_of_a_whole_are_the_whole() -> None:
    """Wherever a dynamic one begins; and an update of everything is the update."""
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
def test_equality_has_no_order(direction: str, same: bool) -> None:
    """The other comparisons have one."""
    one = neutral(hlo(f"%r = pred[4] compare(%x, %y), direction={direction}"))
    other = neutral(hlo(f"%r = pred[4] compare(%y, %x), direction={direction}"))
    assert (one == other) is same
