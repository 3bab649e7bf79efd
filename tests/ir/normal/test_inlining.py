"""Calls, fusions and asynchronous pairs."""

from __future__ import annotations

import pytest

from conformance.ir.normal.inlining import fold_async, inline_calls
from tests.ir.jaxpr.documents import document, eqn, jaxpr
from tests.ir.texts import ADD, after, hlo, neutral, ops, reads, stablehlo, the

CALLEE = """%callee {
  %p = f32[4] parameter(0)
  %q = f32[4] parameter(1)
  ROOT %s = f32[4] subtract(%p, %q)
}"""
PAIR = """%callee {
  %p = f32[4] parameter(0)
  %n = f32[4] negate(%p)
  %s = f32[4] sine(%p)
  ROOT %t = (f32[4], f32[4]) tuple(%n, %s)
}"""


def test_calls_and_fusions_are_inlined() -> None:
    """With the operands in place of the parameters."""
    plain = hlo("%r = f32[4] subtract(%y, %x)")
    call = hlo("%r = f32[4] call(%y, %x), to_apply=%callee", before=CALLEE)
    fusion = hlo("%r = f32[4] fusion(%y, %x), kind=kLoop, calls=%callee", before=CALLEE)
    assert reads(the(after(call, inline_calls), "subtract")) == ["y", "x"]
    assert neutral(plain) == neutral(call) == neutral(fusion)


def test_a_callee_used_twice_is_copied() -> None:
    """Each use has separate instructions."""
    lines = [f"%c{n} = f32[4] call(%x, %y), to_apply=%callee" for n in range(2)]
    found = after(hlo(*lines, "%r = f32[4] add(%c0, %c1)", before=CALLEE), inline_calls)
    assert ops(found) == ["subtract", "subtract", "add"]
    assert len(set(found.entry.results[0][0].operands)) == 2


def test_several_results_of_a_call_are_read_by_path() -> None:
    """As in HLO, a tuple."""
    text = hlo(
        "%c = (f32[4], f32[4]) fusion(%x), kind=kLoop, calls=%callee",
        "%r = f32[4] get-tuple-element(%c), index=1",
        before=PAIR,
    )
    assert neutral(text) == neutral(hlo("%r = f32[4] sine(%x)"))


def test_a_fusion_with_another_memory_space_is_inlined() -> None:
    """Its type may place a part of the result elsewhere than its root."""
    text = hlo(
        "%c = (f32[4]{0:S(5)}, f32[4]{0}) fusion(%x), kind=kLoop, calls=%callee",
        "%r = f32[4] get-tuple-element(%c), index=1",
        before=PAIR,
    )
    assert neutral(text) == neutral(hlo("%r = f32[4] sine(%x)"))


def test_a_call_on_the_host_is_kept() -> None:
    """The call itself places the work."""
    mark = 'frontend_attributes={_xla_compute_type="host"}'
    text = hlo(f"%r = f32[4] call(%x, %y), to_apply=%callee, {mark}", before=CALLEE)
    assert ops(after(text, inline_calls)) == ["call"]
    assert neutral(text) != neutral(hlo("%r = f32[4] subtract(%x, %y)"))


def test_calls_are_kept_if_copies_grow_too_large() -> None:
    """Forty functions that each call the next twice are a trillion instructions."""
    first = "%f0 {\n  %p = f32[4] parameter(0)\n  ROOT %r = f32[4] negate(%p)\n}"
    others = [
        f"%f{n} {{\n  %p = f32[4] parameter(0)\n  %a = f32[4] call(%p), to_apply=%f{n - 1}\n"
        f"  %b = f32[4] call(%a), to_apply=%f{n - 1}\n  ROOT %r = f32[4] add(%a, %b)\n}}"
        for n in range(1, 40)
    ]
    text = hlo("%r = f32[4] call(%x), to_apply=%f39", before="\n\n".join([first, *others]))
    found = after(text, inline_calls)
    assert sum(len(one.instructions) for one in found.find_reachable()) < 200


def test_functions_of_stablehlo_are_inlined() -> None:
    """A single result of the callee is that of the call."""
    call = '%r = "func.call"(%x) <{callee = @f}> : (tensor<4xf32>) -> tensor<4xf32>'
    function = (
        '  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "f", '
        'sym_visibility = "private"}> ({\n  ^bb0(%p: tensor<4xf32>):\n'
        '    %n = "stablehlo.negate"(%p) : (tensor<4xf32>) -> tensor<4xf32>\n'
        '    "func.return"(%n) : (tensor<4xf32>) -> ()\n  }) : () -> ()\n}) : () -> ()\n'
    )
    text = stablehlo(call).removesuffix("}) : () -> ()\n") + function
    plain = stablehlo('%r = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>')
    assert neutral(text) == neutral(plain)


def test_a_jitted_function_is_inlined() -> None:
    """In a jaxpr as well."""
    inner = jaxpr(eqn("neg", [0]), out=(1,))
    text = document(jaxpr(eqn("jit", [0], jaxpr={"jaxpr": 1}), out=(1,)), inner)
    assert neutral(text) == neutral(document(jaxpr(eqn("neg", [0]), out=(1,))))


AROUND = ", channel_id=1, replica_groups={{0,1}}, to_apply=%add"


def test_a_start_and_its_done_are_folded() -> None:
    """Readers of the done read the operation; the work between keeps its place."""
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
def test_asynchronous_and_plain_operations_are_equal(start: str, done: str, plain: str) -> None:
    """For each type of start."""
    pair = hlo(f"%s = {start}", f"%d = f32[4] {done}", "%r = f32[4] negate(%d)", before=ADD)
    whole = hlo(f"%d = f32[4] {plain}", "%r = f32[4] negate(%d)", before=ADD)
    assert neutral(pair) == neutral(whole)


def test_asynchronous_updates_are_folded() -> None:
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


def test_the_done_of_a_send_is_kept() -> None:
    """A send starts under its plain name."""
    text = hlo(
        "%token = token[] after-all()",
        "%s = (f32[4], u32[], token[]) send(%x, %token), channel_id=1",
        "%d = token[] send-done(%s), channel_id=1",
    )
    assert ops(after(text, fold_async)) == ["after-all", "send", "send-done"]


def test_aliases_of_the_tuple_of_a_start_are_dropped() -> None:
    """The plain operation has no such tuple."""
    alias = ", output_to_operand_aliasing={{1}: (0, {})}"
    text = hlo(
        f"%s = f32[4] all-reduce-start(%x){AROUND}{alias}",
        "%d = f32[4] all-reduce-done(%s)",
        before=ADD,
    )
    assert neutral(text) == neutral(hlo(f"%d = f32[4] all-reduce(%x){AROUND}", before=ADD))


def test_a_start_without_a_done_is_kept() -> None:
    """It has an effect, even if it is dead."""
    text = hlo(f"%s = f32[4] all-reduce-start(%x){AROUND}", "%r = f32[4] negate(%x)", before=ADD)
    assert neutral(text) != neutral(hlo("%r = f32[4] negate(%x)"))
