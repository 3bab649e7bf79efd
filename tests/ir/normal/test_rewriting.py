"""Values, their types, and their replacement."""

from __future__ import annotations

from conformance.ir.graph import Instruction, Tensor
from conformance.ir.normal.rewriting import (
    copy_computation,
    get_type,
    get_type_at,
    is_growth_bounded,
    is_tuple,
    redirect,
    redirect_results,
    resolve,
)
from tests.ir.texts import LOOP, STEPS, hlo, module, reads, the

F32, S32 = Tensor("f32"), Tensor("s32")
A = Instruction(name="a", op="negate", type=F32)
B = Instruction(name="b", op="custom-call", type=(F32, (S32, F32)))
PAIR = Instruction(name="t", op="tuple", type=(F32, (S32, F32)), operands=(A, B), paths=((), (1,)))


def test_the_type_of_a_value_follows_its_path() -> None:
    """A whole result or a part of it."""
    assert get_type((B, ())) == B.type
    assert get_type((B, (1, 0))) == S32
    assert get_type_at(F32, (3,)) == F32
    assert (is_tuple(B.type), is_tuple(F32), is_tuple(())) == (True, False, True)


def test_a_value_is_resolved_through_tuples_and_replacements() -> None:
    """As far as the path leads."""
    assert resolve((PAIR, (1, 0)), {}) == (B, (1, 0))
    assert resolve((PAIR, (0,)), {A: (B, (0,))}) == (B, (0,))
    assert resolve((PAIR, ()), {}) == (PAIR, ())


def test_redirect_replaces_operands() -> None:
    """Other operands are unchanged."""
    reader = Instruction(name="r", op="add", type=F32)
    reader.inputs = [(A, ()), (PAIR, (0,))]
    redirect(reader, {A: (B, (0,))})
    assert reader.inputs == [(B, (0,)), (B, (0,))]


def test_redirect_results_replaces_results() -> None:
    """Those of a computation."""
    found = module(hlo("%a = f32[4] negate(%x)", "%b = f32[4] sine(%a)"))
    x, _, a, b = found.entry.instructions
    redirect_results(found.entry, {b: (a, ()), a: (x, ())})
    assert found.entry.results == [(x, ())]


def test_a_copied_computation_shares_no_loop_bodies() -> None:
    """Reducers may be shared, because no pass rewrites them for one use."""
    entry = module(hlo(*LOOP, before=STEPS)).entry
    copy = copy_computation(entry)
    ours, theirs = (next(i for i in c.instructions if i.op == "while") for c in (entry, copy))
    assert reads(ours) == reads(theirs)
    assert not {id(inner) for _, inner in ours.bodies} & {id(inner) for _, inner in theirs.bodies}


def test_unbounded_growth_is_detected_without_copying() -> None:
    """By adding up sizes."""
    one = "%f0 {\n  %p = f32[4] parameter(0)\n  ROOT %r = f32[4] negate(%p)\n}"
    more = [
        f"%f{n} {{\n  %p = f32[4] parameter(0)\n  %a = f32[4] call(%p), to_apply=%f{n - 1}\n"
        f"  ROOT %b = f32[4] call(%a), to_apply=%f{n - 1}\n}}"
        for n in range(1, 64)
    ]
    found = module(hlo("%r = f32[4] call(%x), to_apply=%f63", before="\n\n".join([one, *more])))
    assert not is_growth_bounded(found.find_reachable(), lambda _: True)
    assert is_growth_bounded(found.find_reachable(), lambda _: False)
    assert the(found, "negate").op == "negate"
