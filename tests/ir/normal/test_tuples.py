"""Tuples are replaced by their elements."""

from __future__ import annotations

import pytest

from conformance.ir.graph import IrSyntaxError
from conformance.ir.normal.tuples import fold_tuples
from tests.ir.texts import LOOP, STEPS, after, hlo, neutral, ops, reads, the

NESTED = """%condition {
  %p = (s32[], (f32[4], f32[4])) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %most = s32[] constant(5)
  ROOT %less = pred[] compare(%i, %most), direction=LT
}

%body {
  %p = (s32[], (f32[4], f32[4])) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %q = (f32[4], f32[4]) get-tuple-element(%p), index=1
  %x = f32[4] get-tuple-element(%q), index=0
  %w = f32[4] get-tuple-element(%q), index=1
  %one = s32[] constant(1)
  %j = s32[] add(%i, %one)
  %z = f32[4] multiply(%x, %w)
  %s = (f32[4], f32[4]) tuple(%z, %w)
  ROOT %r = (s32[], (f32[4], f32[4])) tuple(%j, %s)
}"""


def test_elements_are_read_from_their_producers() -> None:
    """Through nested tuples."""
    text = hlo(
        "%a = (f32[4], f32[4]) tuple(%x, %y)",
        "%b = ((f32[4], f32[4]), f32[4]) tuple(%a, %x)",
        "%c = (f32[4], f32[4]) get-tuple-element(%b), index=0",
        "%d = f32[4] get-tuple-element(%c), index=1",
        "%r = f32[4] negate(%d)",
    )
    found = after(text, fold_tuples)
    assert (ops(found), reads(the(found, "negate"))) == (["negate"], ["y"])


def test_the_tuple_of_a_loop_is_split() -> None:
    """Into operands, parameters and results."""
    loop = the(after(hlo(*LOOP, before=STEPS), fold_tuples), "while")
    assert reads(loop) == ["zero", "x", "y"]
    bodies = dict(loop.bodies)
    assert len(bodies["body"].parameters) == len(bodies["body"].results) == 3


def test_nested_tuples_of_a_loop_are_split() -> None:
    """However the result is taken apart."""
    lines = [
        "%zero = s32[] constant(0)",
        "%s = (f32[4], f32[4]) tuple(%x, %y)",
        "%t = (s32[], (f32[4], f32[4])) tuple(%zero, %s)",
        "%loop = (s32[], (f32[4], f32[4])) while(%t), condition=%condition, body=%body",
        "%u = (f32[4], f32[4]) get-tuple-element(%loop), index=1",
        "%r = f32[4] get-tuple-element(%u), index=0",
    ]
    assert neutral(hlo(*lines, before=NESTED)) == neutral(hlo(*LOOP, before=STEPS))


def test_a_returned_tuple_is_split() -> None:
    """The module returns tensors."""
    whole = hlo(*LOOP[:3], before=STEPS)
    lines = [
        f"%g{n} = {t} get-tuple-element(%loop), index={n}"
        for n, t in enumerate(("s32[]", "f32[4]", "f32[4]"))
    ]
    parts = hlo(
        *LOOP[:3], *lines, "%r = (s32[], f32[4], f32[4]) tuple(%g0, %g1, %g2)", before=STEPS
    )
    assert neutral(whole) == neutral(parts)


def test_the_tuple_of_a_barrier_is_kept() -> None:
    """The barrier takes it as a whole."""
    text = hlo(
        "%t = (f32[4], f32[4]) tuple(%x, %y)",
        "%b = (f32[4], f32[4]) opt-barrier(%t)",
        "%r = f32[4] get-tuple-element(%b), index=1",
    )
    assert ops(after(text, fold_tuples)) == ["tuple", "opt-barrier"]
    assert neutral(text) != neutral(hlo("%r = f32[4] copy(%y)"))


def test_a_body_of_two_loops_is_copied() -> None:
    """Each is rewritten for its loop."""
    again = [line.replace("%loop", "%loop2").replace("%r ", "%r2 ") for line in LOOP[2:]]
    found = after(hlo(*LOOP, *again, "%s = f32[4] add(%r, %r2)", before=STEPS), fold_tuples)
    bodies = {id(inner) for one in found.walk() for _, inner in one.bodies}
    assert len(bodies) == 4


def test_too_many_shared_bodies_are_refused() -> None:
    """Forty nested conditionals, each with equal branches, are a trillion."""
    first = "%f0 {\n  %p = f32[4] parameter(0)\n  ROOT %r = f32[4] negate(%p)\n}"
    others = [
        f"%f{n} {{\n  %p = f32[4] parameter(0)\n  %t = pred[] constant(true)\n"
        "  ROOT %r = f32[4] conditional(%t, %p, %p), "
        f"true_computation=%f{n - 1}, false_computation=%f{n - 1}\n}}"
        for n in range(1, 40)
    ]
    text = hlo("%r = f32[4] call(%x), to_apply=%f39", before="\n\n".join([first, *others]))
    with pytest.raises(IrSyntaxError, match="share computations too often"):
        neutral(text)
