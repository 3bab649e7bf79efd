"""The two forms, also of odd and of real modules."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from conformance.ir.analysis import parse_ir
from conformance.ir.graph import Computation, Instruction, IrSyntaxError, Module, Tensor
from conformance.ir.normal.forms import to_canonical, to_exact
from conformance.ir.normal.text import dumps, loads
from tests.ir.jaxpr.documents import SAMPLES as JAXPRS
from tests.ir.texts import ADD, LOOP, STEPS, hlo, module, neutral, ops, settled

SAMPLES = Path(__file__).parents[1] / "samples"
KINDS = {".hlo": "hlo", ".generic": "stablehlo", ".json": "jaxpr"}
FILES = [
    file
    for file in sorted([*SAMPLES.rglob("*.hlo"), *SAMPLES.rglob("*.generic"), *JAXPRS])
    if file.stat().st_size < 40_000
][::4]
VARIADIC = """%both {
  %a = f32[] parameter(0)
  %b = s32[] parameter(1)
  %c = f32[] parameter(2)
  %d = s32[] parameter(3)
  %s = f32[] add(%a, %c)
  %m = s32[] maximum(%b, %d)
  ROOT %r = (f32[], s32[]) tuple(%s, %m)
}"""
TALKING = STEPS.replace(
    "%most = s32[] constant(5)",
    "%most = s32[] constant(5)\n  %q = f32[4] get-tuple-element(%p), index=1\n"
    "  %w = f32[4] all-reduce(%q), replica_groups={}, to_apply=%add",
)
ODD = {
    "a result that is a parameter": hlo("%r = (f32[4], f32[4]) tuple(%y, %x)"),
    "no result at all": hlo("%r = () tuple()"),
    "two operands the same": hlo(
        "%which = pred[] constant(true)",
        "%r = f32[4] conditional(%which, %x, %x), true_computation=%f, false_computation=%f",
        before="%f {\n  %p = f32[4] parameter(0)\n  ROOT %n = f32[4] negate(%p)\n}",
    ),
    "an empty computation": hlo(
        "%r = f32[4] call(%x), to_apply=%f", before="%f {\n  ROOT %p = f32[4] parameter(0)\n}"
    ),
    "a collective in a condition": hlo(*LOOP, before=f"{ADD}\n\n{TALKING}"),
    "a variadic reduction": hlo(
        "%i = s32[4] iota(), iota_dimension=0",
        "%z = f32[] constant(0)",
        "%k = s32[] constant(0)",
        "%r = (f32[], s32[]) reduce(%x, %i, %z, %k), dimensions={0}, to_apply=%both",
        "%s = s32[] get-tuple-element(%r), index=1",
        before=VARIADIC,
    ),
    "three branches": hlo(
        "%which = s32[] constant(1)",
        "%r = f32[4] conditional(%which, %x, %y, %x), branch_computations={%f, %f, %f}",
        before="%f {\n  %p = f32[4] parameter(0)\n  ROOT %n = f32[4] negate(%p)\n}",
    ),
    "a barrier": hlo(
        "%t = (f32[4], f32[4]) tuple(%x, %y)", "%b = (f32[4], f32[4]) opt-barrier(%t)"
    ),
    "a call into the unknown": hlo(
        '%c = () custom-call(%x), custom_call_target="f", custom_call_has_side_effect=true',
        "%r = f32[4] negate(%y)",
    ),
    "a loop within a condition": hlo(*LOOP, before=STEPS.replace(
        "%most = s32[] constant(5)",
        "%most = s32[] constant(5)\n  %l = (s32[], f32[4], f32[4]) while(%p), "
        "condition=%inner, body=%step",
    ) + "\n\n" + STEPS.replace("%condition", "%inner").replace("%body", "%step")),
}  # fmt: skip


def test_fingerprints_are_twelve_bytes_in_hexadecimal() -> None:
    """Those of the two forms differ."""
    found = module(hlo("%r = f32[4] copy(%x)"))
    one, other = to_exact(found), to_canonical(found)
    assert len(one) == len(other) == 24
    assert one != other


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_normalising_odd_modules_twice_changes_nothing(text: str) -> None:
    """Also after a round trip through the text."""
    found = settled(text)
    before = dumps(found)
    to_exact(found)
    to_canonical(found)
    again = loads(before)
    to_exact(again)
    to_canonical(again)
    assert before == dumps(found) == dumps(again)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_normalising_real_modules_twice_changes_nothing(file: Path) -> None:
    """Programs of many releases and platforms."""
    found = parse_ir(file.read_text(encoding="utf-8"), KINDS[file.suffix])
    to_exact(found)
    first = to_canonical(found)
    text = dumps(found)
    again = loads(text)
    to_exact(again)
    assert to_canonical(again) == first
    assert dumps(again) == text


def test_a_dead_loop_is_removed() -> None:
    """With its initial values."""
    assert ops(settled(hlo(*LOOP, "%n = f32[4] negate(%x)", before=STEPS))) == ["negate"]


def test_a_recursive_computation_is_refused() -> None:
    """By name."""
    loop = Computation("f")
    one = Instruction(name="c", op="call", type=Tensor("f32"), bodies=(("to_apply", loop),))
    loop.instructions.append(one)
    loop.results.append((one, ()))
    with pytest.raises(IrSyntaxError, match="computation f calls itself"):
        to_exact(Module("hlo", "m", loop))


def test_garbage_collection_is_enabled_again() -> None:
    """After the passes."""
    assert gc.isenabled()
    neutral(hlo("%r = f32[4] copy(%x)"))
    assert gc.isenabled()
