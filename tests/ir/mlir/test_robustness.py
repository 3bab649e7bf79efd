"""Any text is read, or refused with a single type of error."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance.ir.graph import IrSyntaxError
from conformance.ir.mlir import parse
from tests.ir.mlir.printer import print_module

from .same import plain, text
from .test_parser import FUNCTIONS, LOOP

WHOLE = text(
    *LOOP.splitlines(),
    '%k = "stablehlo.constant"() <{value = dense<[1.5, 0x7FC00000]> : tensor<2xf32>}> : () -> '
    'tensor<2xf32> loc("a"("f.py":1:2))',
    '%n = "stablehlo.all_reduce"(%x) <{g = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = '
    '[#stablehlo.axis_ref<name = "x">]>, s = #sdy.sharding<@mesh, [{"x", ?}p1]>}> '
    ": (tensor<4xf32>) -> tensor<4xf32>",
)
TOKENS = [
    *'"<>{}()[]%@#!^:,=-\\?x \n',
    *("->", "//", "0x", "loc(", "dense<", "tensor<", "array<i64:", "#sdy.mesh<", "true", "%x"),
    *("1e999", "9" * 40, "é", "\0"),
]


def reads_or_refuses(whole: str) -> None:
    """Check that a text is read, then also written and read again; or refused."""
    try:
        module = parse(whole)
    except IrSyntaxError as error:
        assert str(error).startswith("stablehlo line ")  # noqa: PT017 - either way is good
        return
    again = parse(print_module(module))
    assert plain(again)[1] == plain(module)[1]


@given(st.text())
def test_any_text_is_read_or_refused_by_mlir(whole: str) -> None:
    """Also after the beginning of a module."""
    reads_or_refuses(whole)
    reads_or_refuses('"builtin.module"() ({' + whole)


@given(st.sampled_from([WHOLE, FUNCTIONS]), st.data())
def test_a_truncated_mlir_module_is_refused(whole: str, data: st.DataObject) -> None:
    """No part of a module is a module."""
    end = data.draw(st.integers(0, len(whole.rstrip()) - 1))
    try:
        parse(whole[:end])
    except IrSyntaxError:
        return
    raise AssertionError(whole[end - 20 : end])


@given(st.sampled_from([WHOLE, FUNCTIONS]), st.data())
def test_an_edited_mlir_module_is_read_or_refused(whole: str, data: st.DataObject) -> None:
    """With a piece removed, inserted or repeated."""
    begin = data.draw(st.integers(0, len(whole)))
    end = min(len(whole), begin + data.draw(st.integers(0, 40)))
    piece = data.draw(st.sampled_from([*TOKENS, "", whole[begin:end] * 2]))
    reads_or_refuses(whole[:begin] + piece + whole[end:])
