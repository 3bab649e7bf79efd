"""Hashes of instructions, computations and modules."""

from __future__ import annotations

import pytest

from conformance.ir.fingerprint import Fingerprints, hash_module, spell_type
from conformance.ir.graph import Instruction, Tensor
from tests.ir.texts import ADD, fingerprint_of, hlo, module

RNG = "f32[4] rng(%x, %y), distribution=rng_uniform"


def of(*lines: str) -> str:
    """Return the fingerprint of a module as parsed."""
    return fingerprint_of(module(hlo(*lines, before=ADD)))


def test_names_order_and_lines_do_not_change_a_fingerprint() -> None:
    """They are choices of the printer."""
    one = of("%a = f32[4] negate(%x)", "%b = f32[4] sine(%y)", "%r = f32[4] divide(%a, %b)")
    two = of("%q = f32[4] sine(%y)", "%p = f32[4] negate(%x)", "%s = f32[4] divide(%p, %q)")
    assert one == two


@pytest.mark.parametrize(
    "lines",
    [
        ["%a = f32[4] negate(%y)", "%r = f32[4] divide(%a, %y)"],
        ["%a = f32[4] sine(%x)", "%r = f32[4] divide(%a, %y)"],
        ["%a = f32[4] negate(%x)", "%r = f32[4] divide(%y, %a)"],
        ["%a = f32[4] negate(%x)", "%r = f32[2,2] divide(%a, %y)"],
        ["%a = f32[4] negate(%x)", "%b = f32[4] negate(%x)", "%r = f32[4] divide(%a, %y)"],
        ["%a = f32[4] negate(%x)", '%r = f32[4] divide(%a, %y), about="x"'],
    ],
)
def test_every_other_change_changes_a_fingerprint(lines: list[str]) -> None:
    """Operands, operations, their order, types, attributes, repetition."""
    assert of(*lines) != of("%a = f32[4] negate(%x)", "%r = f32[4] divide(%a, %y)")


def test_commutative_hashes_ignore_the_order_of_operands() -> None:
    """As in the canonical form."""
    found = module(
        hlo("%a = f32[4] add(%x, %y)", "%b = f32[4] add(%y, %x)", "%r = f32[4] sine(%b)")
    )
    _, _, a, b, _ = found.entry.instructions
    strict, loose = hash_module(found), hash_module(found, commutative=True)
    assert strict.instructions[a] != strict.instructions[b]
    assert loose.instructions[a] == loose.instructions[b]


@pytest.mark.parametrize("twin", [RNG, "f32[4] all-reduce(%x), replica_groups={}, to_apply=%add"])
def test_reading_another_twin_changes_a_fingerprint(twin: str) -> None:
    """Two random numbers are two values."""
    twins = [f"%a = {twin}", f"%b = {twin}"]
    assert of(*twins, "%r = f32[4] divide(%a, %b)") == of(*twins, "%r = f32[4] divide(%b, %a)")
    assert of(*twins, "%r = f32[4] divide(%a, %b)") != of(*twins, "%r = f32[4] divide(%a, %a)")


def test_parts_of_a_result_have_different_hashes() -> None:
    """Also the whole."""
    whole = Instruction(name="w", op="sort", type=(Tensor("f32"), Tensor("f32")))
    hashes = Fingerprints()
    hashes.add_instruction(whole)
    readers = [
        Instruction(name="r", op="negate", type=Tensor("f32"), operands=(whole,), paths=(path,))
        for path in ((), (0,), (1,), (0, 1))
    ]
    assert len({hashes.add_instruction(reader) for reader in readers}) == 4


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (Tensor("f32"), "f32[]"),
        (Tensor("f32", (2, "<=8"), "1,0", "5"), "f32[2,<=8]{1,0}S(5)"),
        ((Tensor("s32"), (Tensor("token"),)), "(s32[], (token[]))"),
        ((), "()"),
    ],
)
def test_types_are_spelled_as_in_hlo(type_: Tensor, text: str) -> None:
    """Goldens hold hashes of this text."""
    assert spell_type(type_) == text


def test_header_and_kind_change_a_fingerprint() -> None:
    """The same entry under another header is another module."""
    plain, other = (module(hlo("%r = f32[4] negate(%x)")) for _ in range(2))
    other.attributes = {"buffer_donor": ((0, ()),)}
    assert fingerprint_of(plain) != fingerprint_of(other)
    other.attributes = plain.attributes
    assert fingerprint_of(plain) == fingerprint_of(other)
    other.kind = "stablehlo"
    assert fingerprint_of(plain) != fingerprint_of(other)
