"""Pairs of corresponding instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.alignment import Alignment, align
from conformance.ir.fingerprint import hash_module
from tests.ir.texts import LOOP, STEPS, hlo, settled, the

if TYPE_CHECKING:
    from conformance.ir.graph import Module


def aligned(a: str, b: str) -> tuple[Alignment, Module, Module]:
    """Return two modules in normal form and what corresponds in them."""
    one, two = settled(a), settled(b)
    hashes = [hash_module(found, commutative=True) for found in (one, two)]
    return align(one, two, *hashes), one, two


CHAIN = ("%a = f32[4] negate(%x)", "%b = f32[4] {}(%a)", "%r = f32[4] subtract(%b, %y)")


def chain(op: str) -> str:
    """Return three operations, of which one may vary."""
    return hlo(*(line.replace("{}", op) for line in CHAIN))


def test_equal_modules_are_not_aligned() -> None:
    """All their instructions are equal."""
    found, one, _ = aligned(chain("sine"), chain("sine"))
    assert (found.computations, found.equal_instructions) == ([], len(one.entry.instructions))


def test_operands_and_readers_of_a_difference_are_paired() -> None:
    """The replaced operation itself is not."""
    found, one, two = aligned(chain("sine"), chain("tanh"))
    assert found.to_b[the(one, "negate")] is the(two, "negate")
    assert found.to_b[the(one, "subtract")] is the(two, "subtract")
    assert the(one, "sine") not in found.to_b


def test_alignment_is_symmetric() -> None:
    """Also for guessed pairs."""
    there, one, two = aligned(chain("sine"), chain("tanh"))
    hashes = [hash_module(found, commutative=True) for found in (two, one)]
    back = align(two, one, *hashes)
    assert back.to_a == there.to_b
    assert back.to_b == there.to_a


def test_loops_are_paired_with_their_slots() -> None:
    """By equal operands; then their bodies are aligned."""
    other = STEPS.replace("multiply", "add")
    found, one, two = aligned(hlo(*LOOP, before=STEPS), hlo(*LOOP, before=other))
    loop = the(one, "while")
    given = [the(two, "while").operands[m].op for m in found.slots[loop].values()]
    assert given == [operand.op for operand in loop.operands]
    assert [pair.path for pair in found.computations] == [(), ("while body",)]


def test_twins_are_paired_by_their_readers() -> None:
    """Not by the order of the text."""
    call = 'f32[4] custom-call(%x), custom_call_target="f"'
    lines = (f"%a = {call}", f"%b = {call}")
    text = hlo(*lines, "%s = f32[4] sine(%a)", "%r = (f32[4], f32[4]) tuple(%s, %b)")
    other = hlo(*lines, "%s = f32[4] sine(%b)", "%r = (f32[4], f32[4], f32[4]) tuple(%s, %a, %y)")
    found, one, two = aligned(text, other)
    assert found.to_b[the(one, "sine").operands[0]] is the(two, "sine").operands[0]


def test_remaining_instructions_are_paired_by_name_stack() -> None:
    """If their operands and readers all differ."""

    def text(op: str, end: str) -> str:
        metadata = 'metadata={{op_name="jit(f)/{}"}}'
        return hlo(
            f"%a = f32[4] {op}(%x)",
            f"%b = f32[4] exponential(%a), {metadata.format('one')}",
            f"%c = f32[4] {op}(%y)",
            f"%d = f32[4] exponential(%c), {metadata.format('two')}",
            f"%r = f32[4] {end}(%b, %d)",
        )

    found, one, two = aligned(text("sine", "divide"), text("tanh", "subtract"))
    pairs = [(a, b) for a, b in found.to_b.items() if a.op == "exponential"]
    assert len(pairs) == 2
    assert all(a.origin == b.origin for a, b in pairs)
    assert {a for a, _ in pairs} == {i for i in one.walk() if i.op == "exponential"}
    assert {b for _, b in pairs} == {i for i in two.walk() if i.op == "exponential"}
