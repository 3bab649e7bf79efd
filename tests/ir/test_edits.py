"""Edits between aligned modules, and their groups."""

from __future__ import annotations

import pytest

from conformance.ir.edits import Rewrite, find_rewrites
from tests.ir.test_alignment import aligned
from tests.ir.texts import ADD, LOOP, STEPS, hlo

REDUCE = "%r = f32[4] all-reduce(%x), replica_groups={{{{0,1}}}}, to_apply=%add"


def found(a: str, b: str) -> list[Rewrite]:
    """Return the rewrites between two texts."""
    alignment, _, _ = aligned(a, b)
    return find_rewrites(alignment)


def describe(rewrite: Rewrite) -> list[tuple[str, str]]:
    """Return what a rewrite says, each place by its sign and operation."""
    return sorted((str(edit.side), edit.op) for edit in rewrite)


def test_equal_modules_have_no_rewrites() -> None:
    """Not even empty ones."""
    text = hlo("%r = f32[4] add(%x, %y)")
    assert found(text, text) == []


def test_a_replaced_operation_is_one_rewrite() -> None:
    """With its readers."""
    one, two = (
        hlo(f"%a = f32[4] {op}(%x)", "%r = f32[4] divide(%a, %y)") for op in ("sine", "tanh")
    )
    (rewrite,) = found(one, two)
    assert describe(rewrite) == [("+", "tanh"), ("-", "sine"), (">", "divide")]


def test_distant_edits_are_two_rewrites() -> None:
    """No operand joins them."""
    text = hlo(
        "%a = f32[4] sine(%x)", "%b = f32[4] sine(%y)", "%r = (f32[4], f32[4]) tuple(%a, %b)"
    )
    assert len(found(text, text.replace("sine", "tanh"))) == 2


def test_an_attribute_that_differs_is_named() -> None:
    """Of a pair."""
    one = hlo("%r = f32[4] iota(), iota_dimension=0, about=1")
    (rewrite,) = found(one, one.replace("about=1", "about=2"))
    assert [(d.side, d.aspects) for d in rewrite if d.aspects] == [("~", ("about",))]


def test_a_propagated_type_is_one_rewrite() -> None:
    """From its origin to its last reader."""
    one = hlo("%a = f32[4] negate(%x)", "%b = f32[4] sine(%a)", "%r = f32[4] abs(%b)")
    rewrite, *others = found(one, one.replace("f32", "f64"))
    assert len(rewrite) == 4
    assert {d.aspects for d in rewrite} == {("type",)}
    assert all(d.op == "parameter" for one in others for d in one)


@pytest.mark.parametrize(("op", "count"), [("divide", 1), ("add", 0)])
def test_swapped_operands_are_rewired(op: str, count: int) -> None:
    """Unless the operation is commutative."""
    one, two = (hlo(f"%r = f32[4] {op}({operands})") for operands in ("%x, %y", "%y, %x"))
    assert len(found(one, two)) == count


def test_reading_another_result_of_a_loop_is_an_edit() -> None:
    """Although the order of its results is free."""
    same = STEPS.replace(
        "%z = f32[4] multiply(%x, %w)", "%z = f32[4] sine(%x)\n  %v = f32[4] abs(%w)"
    )
    same = same.replace("tuple(%j, %z, %w)", "tuple(%j, %z, %v)")
    one = hlo(*LOOP, before=same)
    two = hlo(*LOOP[:3], "%r = f32[4] get-tuple-element(%loop), index=2", before=same)
    assert [describe(rewrite) for rewrite in found(one, two)] == [[("=", "while")]]


def test_an_unpaired_slot_is_one_rewrite() -> None:
    """Around the loop, within it and at its results."""
    text = STEPS.replace(
        "%z = f32[4] multiply(%x, %w)", "%z = f32[4] sine(%x)\n  %v = f32[4] tanh(%w)"
    )
    more = text.replace("tuple(%j, %z, %w)", "tuple(%j, %z, %v)")
    end = [
        "%s = f32[4] get-tuple-element(%loop), index=2",
        "%q = f32[4] divide(%r, %s)",
    ]
    one, two = hlo(*LOOP, *end, before=text), hlo(*LOOP, *end, before=more)
    (rewrite,) = found(one, two)
    assert ("+", "tanh") in describe(rewrite)


def test_an_edit_in_a_reducer_is_placed_there() -> None:
    """Its path names the collective and the role."""
    line = "%r = f32[4] all-reduce(%x), replica_groups={{0,1}}, to_apply=%add"
    one = hlo(line, before=ADD)
    two = hlo(line, before=ADD.replace("= f32[] add", "= f32[] maximum"))
    (rewrite,) = found(one, two)
    assert {edit.place.path for edit in rewrite} == {("all-reduce to_apply",)}
