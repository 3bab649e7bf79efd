"""Types with the element types of HLO."""

from __future__ import annotations

import pytest

from conformance.ir.graph import IrSyntaxError, Tensor
from conformance.ir.mlir.scan import Scanner
from conformance.ir.mlir.tensors import SCALAR, Types
from tests.ir.mlir.spelling import of_type

SPELLINGS = [
    ("tensor<f32>", Tensor("f32")),
    ("tensor<8x16xf32>", Tensor("f32", (8, 16))),
    ("tensor<0x3xbf16>", Tensor("bf16", (0, 3))),
    ("tensor<i1>", Tensor("pred")),
    ("tensor<2xi32>", Tensor("s32", (2,))),
    ("tensor<2xui4>", Tensor("u4", (2,))),
    ("tensor<2xf8E4M3B11FNUZ>", Tensor("f8e4m3b11fnuz", (2,))),
    ("tensor<4xcomplex<f32>>", Tensor("c64", (4,))),
    ("tensor<complex<f64>>", Tensor("c128")),
    ("tensor<2xindex>", Tensor("index", (2,))),
    ("tensor<?x3xf32>", Tensor("f32", ("?", 3))),
    ("tensor<?x3xf32, #stablehlo.bounds<8, ?>>", Tensor("f32", ("<=8", 3))),
    ("tensor<*xf32>", Tensor("f32", ("*",))),
    ("tensor<4xf32, #enc.a<1>>", Tensor("f32", (4,), "#enc.a<1>")),
    ("tensor<4x!quant.uniform<i8:f32, 0.5>>", Tensor("!quant.uniform<i8:f32, 0.5>", (4,))),
    ("memref<4xf32>", Tensor("f32", (4,), "memref")),
    ("memref<4xf32, #a.b<2>, 5>", Tensor("f32", (4,), "memref #a.b<2>", "5")),
    ("memref<4xf32, 5>", Tensor("f32", (4,), "memref", "5")),
    ("!stablehlo.token", Tensor("token")),
    ("i64", Tensor("s64", (), SCALAR)),
    ("tuple<>", ()),
    (
        "tuple<tensor<f32>, tuple<tensor<2xi1>>>",
        (Tensor("f32"), (Tensor("pred", (2,)),)),
    ),
]


@pytest.mark.parametrize(("text", "expected"), SPELLINGS)
def test_an_mlir_type_is_read_and_written(text: str, expected: object) -> None:
    """Dynamic sizes are texts; the text after the element type is the layout."""
    found = Types({}, []).read(Scanner(text))
    assert found == expected
    assert of_type(found) == text


def test_equal_types_are_one_object() -> None:
    """So memory stays small, and comparing is quick."""
    types = Types({"!v": "tensor<2xf32>"}, [])
    first = types.read(Scanner("tensor<2xf32>"))
    assert types.read(Scanner("tensor< 2xf32 >")) is first
    assert types.read(Scanner("!v")) is first


def test_types_of_other_dialects_are_kept_and_counted() -> None:
    """Their meaning is unknown."""
    unknown: list[str] = []
    types = Types({}, unknown)
    assert types.read(Scanner("!foo.bar<3>")) == Tensor("!foo.bar<3>", (), SCALAR)
    assert types.read(Scanner("!foo.bar<3>")) == Tensor("!foo.bar<3>", (), SCALAR)
    assert unknown == ["type !foo.bar", "type !foo.bar"]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("", "the end"),
        ("f33x", "'f33x'"),
        ("tensor<8xf32", "the end"),
        ("tensor<8x>", "the end"),
        ("tensor<8xtensor<2xf32>>", "the end"),
        ("tensor<99999999999999999999xf32>", "'99999999999999999999'"),
        ("tensor<2xf32,>", "the end"),
        ("tensor<2xf32, #stablehlo.bounds<1, 2>>", "the end"),
        ("tuple<tensor<f32> tensor<f32>>", "'tensor'"),
        ("tuple<" * 100 + ">" * 100, "'tuple'"),
    ],
)
def test_a_malformed_mlir_type_is_refused(text: str, got: str) -> None:
    """The message names the token."""
    with pytest.raises(IrSyntaxError, match=rf"stablehlo line 1: got {got}, expected "):
        Types({}, []).read(Scanner(text))
