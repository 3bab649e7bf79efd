"""What is started here and awaited there."""

from __future__ import annotations

import pytest

from conformance.ir.normal.asynchronous import fold_async
from tests.ir.texts import ADD, after, hlo, neutral, ops, reads, the

AROUND = ", channel_id=1, replica_groups={{0,1}}, to_apply=%add"


def test_a_start_and_its_done_are_the_operation() -> None:
    """What reads the done reads the operation; the work between stays where it is."""
    text = hlo(
        f"%s = f32[4] all-reduce-start(%x){AROUND}",
        "%between = f32[4] negate(%x)",
        "%d = f32[4] all-reduce-done(%s)",
        "%r = f32[4] add(%d, %between)",
        before=ADD,
    )
    found = after(text, fold_async)
    assert ops(found) == ["negate", "all-reduce", "add"]
    assert reads(the(found, "all-reduce")) == ["x"]


@pytest.mark.parametrize(
    ("start", "done", "plain"),
    [
        (
            f"f32[4] all-reduce-start(%x){AROUND}",
            "all-reduce-done(%s)",
            f"all-reduce(%x){AROUND}",
        ),
        (
            "(f32[4], f32[4]) collective-permute-start(%x), source_target_pairs={{0,1}}",
            "collective-permute-done(%s)",
            "collective-permute(%x), source_target_pairs={{0,1}}",
        ),
        ("(f32[4], f32[4], u32[]) copy-start(%x)", "copy-done(%s)", "copy(%x)"),
    ],
)
def test_both_spellings_mean_the_same(start: str, done: str, plain: str) -> None:
    """Whatever the type of the start is."""
    pair = hlo(f"%s = {start}", f"%d = f32[4] {done}", "%r = f32[4] negate(%d)", before=ADD)
    whole = hlo(f"%d = f32[4] {plain}", "%r = f32[4] negate(%d)", before=ADD)
    assert neutral(pair) == neutral(whole)


def test_updates_on_the_way_are_gone() -> None:
    """A computation that is started, updated and awaited is a call."""
    callee = "%callee {\n  %p = f32[4] parameter(0)\n  ROOT %n = f32[4] negate(%p)\n}"
    state = "((f32[4]), f32[4], s32[])"
    text = hlo(
        f"%s = {state} async-start(%x), calls=%callee",
        f"%u = {state} async-update(%s)",
        "%d = f32[4] async-done(%u)",
        before=callee,
    )
    assert ops(after(text, fold_async)) == ["call"]
    assert neutral(text) == neutral(hlo("%n = f32[4] negate(%x)"))


def test_a_done_of_something_else_stays() -> None:
    """A send has a done, but starts under its own name."""
    text = hlo(
        "%token = token[] after-all()",
        "%s = (f32[4], u32[], token[]) send(%x, %token), channel_id=1",
        "%d = token[] send-done(%s), channel_id=1",
    )
    assert ops(after(text, fold_async)) == ["after-all", "send", "send-done"]


def test_what_speaks_of_the_tuple_of_a_start_is_gone() -> None:
    """The plain operation has no such tuple."""
    alias = ", output_to_operand_aliasing={{1}: (0, {})}"
    text = hlo(
        f"%s = f32[4] all-reduce-start(%x){AROUND}{alias}",
        "%d = f32[4] all-reduce-done(%s)",
        before=ADD,
    )
    assert neutral(text) == neutral(hlo(f"%d = f32[4] all-reduce(%x){AROUND}", before=ADD))


def test_a_start_that_nobody_awaits_still_happens() -> None:
    """Not even a dead one is dropped."""
    text = hlo(f"%s = f32[4] all-reduce-start(%x){AROUND}", "%r = f32[4] negate(%x)", before=ADD)
    assert neutral(text) != neutral(hlo("%r = f32[4] negate(%x)"))
