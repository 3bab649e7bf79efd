"""Layouts and memory spaces."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Tensor
from conformance.ir.normal.layouts import (
    FROM_ORDER,
    copy_header_spaces,
    drop_layouts,
    drop_scalar_memory,
    get_host_space,
    keep_host_spaces,
    resolve_bitcasts,
)
from tests.ir.texts import after, hlo, neutral, ops, stablehlo, the


def bitcast(before: str, to: str) -> str:
    """Return HLO in which something of a type is seen as another."""
    return hlo(f"%a = {before} iota(), iota_dimension=0", f"%r = {to} bitcast(%a)")


@pytest.mark.parametrize(
    ("before", "to", "op"),
    [
        ("f32[2,3]{1,0}", "f32[6]{0}", "reshape"),
        ("f32[2,3]{1,0}", "f32[3,2]{0,1}", "transpose"),
        ("f32[2,1,3]{2,1,0}", "f32[2,3]{1,0}", "reshape"),
        ("f32[1,4]{1,0}", "f32[4,1]{1,0}", "reshape"),
        ("f32[4]{0}", "s32[4]{0}", "bitcast-convert"),
        ("f32[2,3]{1,0}", "f32[2,3]{0,1}", "reshape"),
    ],
)
def test_a_bitcast_becomes_the_operation_of_its_layouts(before: str, to: str, op: str) -> None:
    """A reshape, a transpose or a bitcast-convert."""
    assert ops(after(bitcast(before, to), resolve_bitcasts)) == ["iota", op]


def test_a_transposing_bitcast_becomes_a_transpose() -> None:
    """With the dimensions in the order of a transpose."""
    text = bitcast("f32[2,3,4]{2,1,0}", "f32[4,2,3]{0,2,1}")
    assert the(after(text, resolve_bitcasts), "transpose").attributes["dimensions"] == (2, 0, 1)
    other = hlo(
        "%a = f32[2,3,4]{2,1,0} iota(), iota_dimension=0",
        "%r = f32[4,2,3]{2,1,0} transpose(%a), dimensions={2,0,1}",
    )
    assert neutral(text) == neutral(other)


def test_a_bitcast_that_moves_and_reshapes_is_kept() -> None:
    """The same shape in another layout moves elements."""
    text = bitcast("f32[2,3]{1,0}", "f32[2,3]{0,1}")
    assert FROM_ORDER in the(after(text, resolve_bitcasts), "reshape").attributes
    assert neutral(text) != neutral(bitcast("f32[2,3]{1,0}", "f32[2,3]{1,0}"))


def test_layouts_are_dropped_and_memory_spaces_kept() -> None:
    """Also within tuples."""
    text = hlo("%r = (f32[4]{0:T(8,128)S(5)}, f32[2,2]{0,1}) tuple(%x, %y)")
    assert the(after(text, drop_layouts), "tuple").type == (
        Tensor("f32", (4,), "", "5"),
        Tensor("f32", (2, 2)),
    )


def test_bitcasts_of_stablehlo_are_unchanged() -> None:
    """Its bitcast_convert needs no layouts."""
    text = stablehlo('%r = "stablehlo.bitcast_convert"(%x) : (tensor<4xf32>) -> tensor<4xf32>')
    assert ops(after(text, resolve_bitcasts)) == ["stablehlo.bitcast_convert"]


@pytest.mark.parametrize(
    ("space", "name"),
    [
        ("5", "pinned_host"),
        ("6", "unpinned_host"),
        ("1", ""),
        ("", ""),
        ("pinned_host", "pinned_host"),
        ("vmem", ""),
    ],
)
def test_only_host_memory_spaces_have_names(space: str, name: str) -> None:
    """A name is unchanged."""
    assert get_host_space(space) == name


def test_memory_spaces_within_tuples_are_named() -> None:
    """Those of a device are the choice of the compiler."""
    text = hlo('%r = (f32[4]{0:S(5)}, f32[4]{0:S(1)}) custom-call(%x), custom_call_target="f"')
    types = the(after(text, keep_host_spaces, keep_host_spaces), "custom-call").type
    assert types == (Tensor("f32", (4,), "0", "pinned_host"), Tensor("f32", (4,), "0"))


def test_scalar_memory_of_a_tpu_is_dropped() -> None:
    """Its number is that of unpinned host memory; the tiled layouts show a TPU."""
    head = "HloModule m, entry_computation_layout={(f32[]{:T(128)S(6)}, f32[]{:T(128)S(5)})->f32[]}"
    text = hlo("%r = f32[]{:T(128)S(6)} copy(%x)", "%s = f32[4]{0:S(6)} copy(%y)", head=head)
    made = after(text, drop_scalar_memory, copy_header_spaces)
    copies = [one.type for one in made.walk() if one.op == "copy"]
    spaces = [type_.space for type_ in copies if isinstance(type_, Tensor)]
    noted = [one.attributes.get("memory_space") for one in made.entry.parameters]
    assert (spaces, noted) == (["", "6"], [None, "5"])
