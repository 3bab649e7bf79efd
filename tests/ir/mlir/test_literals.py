"""Constants: one text for every spelling of the same content."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.ir.graph import IrSyntaxError, Opaque

from .same import attribute, constant, operation

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def blob(values: ArrayLike, kind: str = "<f4") -> str:
    """Return the bytes of some values, as MLIR prints long constants."""
    return f'"0x{np.array(values, kind).tobytes().hex().upper()}"'


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("dense<1.000000e+00> : tensor<f32>", "1.0"),
        ("dense<1.0> : tensor<4x4xf32>", "1.0"),
        ("dense<[1.0, 1.0]> : tensor<2xf32>", "1.0"),
        ("dense<0.1> : tensor<f64>", "0.1"),
        ("dense<1.41421354> : tensor<f32>", "1.4142135"),
        ("dense<-0.000000e+00> : tensor<f32>", "-0.0"),
        ("dense<0x7FC00000> : tensor<f32>", "nan"),
        ("dense<0xFFC00000> : tensor<f32>", "nan(0xffc00000)"),
        ("dense<0x7FC00001> : tensor<f32>", "nan(0x7fc00001)"),
        ("dense<0xFF800000> : tensor<f32>", "-inf"),
        ("dense<0x7FC0> : tensor<bf16>", "nan"),
        ("dense<1.101560e+00> : tensor<bf16>", "1.1015625"),
        ("dense<2.0> : tensor<f8E4M3FN>", "2.0"),
        ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>", "[1, 2, 3, 4]"),
        ("dense<4294967295> : tensor<ui32>", "4294967295"),
        ("dense<-8> : tensor<i4>", "-8"),
        ("dense<> : tensor<0x3xf32>", "[]"),
        ("dense<[true, false]> : tensor<2xi1>", "[true, false]"),
        ("dense<(1.0,-2.0)> : tensor<complex<f32>>", "(1.0, -2.0)"),
        ("dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f64>>", "[(1.0, 2.0), (3.0, 4.0)]"),
        (f"dense<{blob([1, 2.5])}> : tensor<2xf32>", "[1.0, 2.5]"),
        (f"dense<{blob([7, 7], '<i8')}> : tensor<2xi64>", "7"),
        (f"dense<{blob([1, 2, 3, 4])}> : tensor<2xcomplex<f32>>", "[(1.0, 2.0), (3.0, 4.0)]"),
        ('dense<"0x05"> : tensor<3xi1>', "[true, false, true]"),
        ('dense<"0x010001"> : tensor<3xi1>', "[true, false, true]"),
        ('dense<"0x0000803F"> : tensor<500xf32>', "1.0"),
    ],
)
def test_equal_constants_have_equal_texts(spelled: str, expected: str) -> None:
    """Lists, splats, bytes; -0 is not 0; a NaN other than the default shows its bits."""
    assert constant(spelled) == expected


@pytest.mark.parametrize("kind", ["float32", "float64", "int8", "uint32"])
def test_long_constants_become_a_hash_of_their_bytes(kind: str) -> None:
    """The same for a list and for bytes."""
    spelled = {"float32": "f32", "float64": "f64", "int8": "i8", "uint32": "ui32"}[kind]
    values = (np.arange(1500) % 100).astype(kind)
    listed = constant(f"dense<{values.tolist()}> : tensor<1500x{spelled}>")
    assert listed == constant(f"dense<{blob(values, kind)}> : tensor<1500x{spelled}>")
    assert str(listed).startswith("sha256:")
    assert str(listed).endswith(" of 1500 elements")


def test_the_hash_of_a_constant_depends_on_every_element() -> None:
    """A single element changes it."""
    values = np.arange(2000, dtype=np.float32)
    one = constant(f"dense<{blob(values)}> : tensor<2000xf32>")
    values[1999] = -1
    assert one != constant(f"dense<{blob(values)}> : tensor<2000xf32>")


@given(st.floats(width=32))
def test_a_float_reads_the_same_in_every_spelling(value: float) -> None:
    """Nine digits, the shortest digits, or its bits."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    expected = constant(f"dense<0x{bits:08X}> : tensor<f32>")
    assert constant(f"dense<{blob([value])}> : tensor<1xf32>") == expected
    if np.isfinite(value):
        assert constant(f"dense<{value:.8e}> : tensor<f32>") == expected


@given(st.integers(0, 0xFFFF))
def test_every_bfloat16_round_trips(bits: int) -> None:
    """Its text reads back to the same bits."""
    spelled = str(constant(f"dense<0x{bits:04X}> : tensor<bf16>"))
    if "(" not in spelled:
        again = np.array([float(spelled)], ml_dtypes.bfloat16).view(np.uint16)[0]
        assert again == bits


def test_integer_attributes_are_tuples() -> None:
    """The old and the new spelling of a list, and bytes."""
    assert attribute("dense<[0, 1]> : tensor<2xi64>") == attribute("array<i64: 0, 1>") == (0, 1)
    assert attribute("dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>") == ((0, 1), (2, 3))
    assert attribute("dense<0> : tensor<1x2xi64>") == ((0, 0),)
    assert attribute("dense<false> : tensor<2xi1>") == attribute("array<i1: false, false>")
    assert attribute(f"dense<{blob([3, 4], '<i8')}> : tensor<1x2xi64>") == ((3, 4),)
    assert attribute("dense<> : tensor<0xindex>") == ()
    assert attribute("dense<7> : tensor<i64>") == 7


def test_elements_of_unknown_types_are_kept_as_text() -> None:
    """Also references to resources."""
    for spelled in ('dense<["a>", "b"]> : tensor<2x!t.s>', "dense_resource<blob> : tensor<2xf32>"):
        assert constant(spelled) == Opaque(spelled)


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("dense<[1, 2, 3]> : tensor<2xi32>", "1 or 2 elements"),
        ("dense<300> : tensor<i8>", "8 bits"),
        ("dense<-1> : tensor<ui32>", "32 bits"),
        ("dense<1.5> : tensor<i32>", "whole numbers"),
        ("dense<one> : tensor<f32>", "a number"),
        ("dense<0x1FFFFFFFF> : tensor<f32>", "at most 32 bits"),
        ("dense<[[1, 2]> : tensor<2xi32>", "a matching bracket"),
        ("dense<2> : tensor<i1>", "type pred"),
        ("dense<1.0> : tensor<complex<f32>>", "imaginary"),
        ("dense<1.0> : tensor<?xf32>", "static shape"),
        ('dense<"0x00"> : tensor<2xf32>', "2 elements"),
        ('dense<"0x0G"> : tensor<2xi8>', "hexadecimal"),
        ('dense<"0x0000"> : tensor<20xi1>', "20 truth values"),
    ],
)
def test_a_constant_of_another_type_is_refused(spelled: str, expected: str) -> None:
    """The message names the expected text."""
    with pytest.raises(IrSyntaxError, match=expected):
        constant(spelled)


def test_huge_integer_lists_are_refused() -> None:
    """Constants are not expanded, integers of attributes are."""
    with pytest.raises(IrSyntaxError, match="at most"):
        attribute("dense<0> : tensor<1000000000xi64>")
    with pytest.raises(IrSyntaxError, match="at most"):
        attribute("dense<> : tensor<1000000000x0xi64>")
    line = '%c = "stablehlo.constant"() <{value = dense<0> : tensor<1000000000xi64>}>'
    assert operation(f"{line} : () -> tensor<1000000000xi64>").attributes == {"value": "0"}
