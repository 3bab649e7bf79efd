"""Dead and double work."""

from __future__ import annotations

import pytest

from conformance.ir.normal.dead import drop_dead, merge_equal
from tests.ir.texts import ADD, LOOP, STEPS, after, hlo, neutral, ops

REDUCE = "f32[4] all-reduce(%x), replica_groups={}, to_apply=%add"
CALL = 'f32[4] custom-call(%x), custom_call_target="f", custom_call_has_side_effect=true'


def test_what_nobody_reads_is_gone() -> None:
    """And what only that read."""
    text = hlo("%a = f32[4] negate(%x)", "%b = f32[4] sine(%a)", "%r = f32[4] add(%x, %y)")
    assert ops(after(text, drop_dead)) == ["add"]


@pytest.mark.parametrize("impure", [REDUCE, CALL, "f32[4] rng(%x, %y), distribution=rng_uniform"])
def test_what_does_more_than_compute_stays(impure: str) -> None:
    """An unread collective still waits for the others."""
    text = hlo(f"%a = {impure}", "%b = f32[4] sine(%a)", "%r = f32[4] add(%x, %y)", before=ADD)
    assert len(ops(after(text, drop_dead))) == 2


def test_a_dead_loop_is_gone_unless_it_does_something() -> None:
    """A collective within counts, at any depth."""
    talks = STEPS.replace("multiply(%x, %w)", "all-reduce(%x), replica_groups={}, to_apply=%add")
    dead = [*LOOP, "%n = f32[4] negate(%x)"]
    assert neutral(hlo(*dead, before=STEPS)) == neutral(hlo("%n = f32[4] negate(%x)"))
    assert neutral(hlo(*dead, before=f"{ADD}\n\n{talks}")) != neutral(hlo("%n = f32[4] negate(%x)"))


def test_a_call_that_is_kept_counts_for_what_it_calls() -> None:
    """Work of the host is not inlined, its effects are still effects."""
    callee = "%callee {\n  %x = f32[4] parameter(0)\n  ROOT %n = " + REDUCE + "\n}"
    host = 'frontend_attributes={_xla_compute_type="host"}'
    text = hlo(
        f"%c = f32[4] call(%x), to_apply=%callee, {host}",
        "%r = f32[4] add(%x, %y)",
        before=f"{ADD}\n\n{callee}",
    )
    assert ops(after(text, drop_dead)) == ["call", "add"]


def test_equal_work_is_done_once() -> None:
    """Operands of commutative operations in any order."""
    text = hlo(
        "%a = f32[4] add(%x, %y)",
        "%b = f32[4] add(%y, %x)",
        "%r = f32[4] subtract(%a, %b)",
    )
    assert ops(after(text, merge_equal)) == ["add", "subtract"]


def test_two_collectives_are_two() -> None:
    """Nor are what they depend on merged away between them."""
    text = hlo(f"%a = {REDUCE}", f"%b = {REDUCE}", "%r = f32[4] subtract(%a, %b)", before=ADD)
    assert ops(after(text, merge_equal)) == ["all-reduce", "all-reduce", "subtract"]


def test_equal_loops_are_one() -> None:
    """What reads one reads the other, whatever order each carries its values in."""
    again = [line.replace("%loop", "%loop2").replace("%r ", "%r2 ") for line in LOOP[2:]]
    text = hlo(*LOOP, *again, "%s = f32[4] subtract(%r, %r2)", before=STEPS)
    once = hlo(*LOOP, "%s = f32[4] subtract(%r, %r)", before=STEPS)
    assert neutral(text) == neutral(once)
