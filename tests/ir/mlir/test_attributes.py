"""Attributes as plain values."""

from __future__ import annotations

import pytest

from conformance.ir.graph import IrSyntaxError, Opaque, Tensor
from conformance.ir.mlir import parse

from .same import attribute, attributes, operation, text


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("0 : i64", 0),
        ("-7 : i32", -7),
        ("3", 3),
        ("1 : ui8", 1),
        ("5 : index", 5),
        ("true", True),
        ("false", False),
        ("unit", True),
        ("1.000000e-05 : f32", 1e-05),
        ("2.5", 2.5),
        ("0x7FF0000000000000 : f64", "inf"),
        ('"text"', "text"),
        (r'"\22q\22 \\ \C3\A9\0A"', '"q" \\ é\n'),
        (r'"\FF\00"', "\xff\x00"),
        ('"tagged" : i32', "tagged"),
        ("@f", "@f"),
        ('@"a b"::@c', "@a b::@c"),
        ("[]", ()),
        ('[1, "a", [true]]', (1, "a", (True,))),
        ("{}", ()),
        ('{b = 1, a = "x", c}', (("a", "x"), ("b", 1), ("c", True))),
        ("array<i64>", ()),
        ("array<i64: 1, -2>", (1, -2)),
        ("array<f32: 1.0, 0.1>", (1.0, 0.1)),
        ("f32", Tensor("f32", (), "scalar")),
        ("tensor<2xi32>", Tensor("s32", (2,))),
        ("(tensor<f32>,  i1) -> ()", "(tensor<f32>, i1) -> ()"),
        ("#stablehlo<comparison_direction LT>", "LT"),
        ("#stablehlo.result_accuracy_mode<DEFAULT>", "DEFAULT"),
        ("#chlo<precision HIGHEST>", "HIGHEST"),
        ('#sdy<manual_axes{"x", "y"}>', ("x", "y")),
        ("#stablehlo.channel_handle<handle = 1, type = 0>", (("handle", 1), ("type", 0))),
        (
            "#stablehlo.dot<rhs_contracting_dimensions = [0], lhs_contracting_dimensions = [1]>",
            (("lhs_contracting_dimensions", (1,)), ("rhs_contracting_dimensions", (0,))),
        ),
        ("#stablehlo.conv<[b, f, 0, 1]x[o,  i, 0]->[b, f]>", "[b, f, 0, 1]x[o, i, 0]->[b, f]"),
        ("#sdy.op_sharding_rule<([i, j])->([i]) {i=4, j=4}>", "([i, j])->([i]) {i=4, j=4}"),
        (
            '#sdy.mesh<["x"=2], device_ids=[1, 0]>',
            (("axes", (("x", 2),)), ("device_ids", (1, 0))),
        ),
    ],
)
def test_an_attribute_is_a_plain_value(spelled: str, expected: object) -> None:
    """Types of numbers are dropped; dictionaries are pairs sorted by name."""
    found = attribute(spelled)
    assert found == expected
    assert type(found) is type(expected)


def test_properties_and_discardable_attributes_are_one_dictionary() -> None:
    """Discardable ones keep their names, also quoted names."""
    line = '"a.b"() <{one = 1 : i64, flag}> {a.two = 2 : i64, "a b" = 3 : i64} : () -> ()'
    assert operation(line).attributes == {"one": 1, "flag": True, "a.two": 2, "a b": 3}


@pytest.mark.parametrize(
    ("spelled", "named"),
    [
        ("#foo.bar<baz>", "#foo.bar"),
        ("#foo<bar baz>", "#foo"),
        ("#foo.bar", "#foo.bar"),
        ('#stablehlo.new<"what?">', "#stablehlo.new"),
        ("affine_map<(d0) -> (d0)>", "affine_map"),
        ("dense_resource<r> : tensor<2xf32>", "dense_resource"),
        ('loc("here")', "loc"),
    ],
)
def test_an_unknown_attribute_is_kept_and_counted_in_mlir(spelled: str, named: str) -> None:
    """For each operation, also when its text is cached."""
    line = f'"a.b"() <{{key = {spelled}}}> : () -> ()'
    module = parse(text(line, line))
    assert [one.attributes for one in module.walk()][1:] == [{"key": Opaque(spelled)}] * 2
    assert module.not_understood == {f"attribute {named} of a.b": 2}


def test_unknown_attributes_in_regions_are_counted_by_their_operation() -> None:
    """Not by the operation around them."""
    module = parse(
        text('"a.b"() <{key = #foo.bar<1>}> ({', '  "a.c"() : () -> ()', "}) : () -> ()")
    )
    assert module.not_understood == {"attribute #foo.bar of a.b": 1}


def test_attribute_aliases_are_resolved() -> None:
    """They are defined before or after the module."""
    body = text('"a.b"() <{key = #map, of = !t}> : () -> ()')
    module = parse(f"#map = [1, 2]\n{body}!t = tensor<2xi32>\n")
    assert module.entry.instructions[-1].attributes == {"key": (1, 2), "of": Tensor("s32", (2,))}


@pytest.mark.parametrize(
    ("spelled", "got"),
    [
        ("", "}"),
        ("[1", "}"),
        ("{a = 1, a = 2}", "="),
        ("array<i64: 1.5>", "1.5"),
        ("array<i64 1>", "1"),
        ("dense<1>", "}"),
        ("1.5 : i32", "}"),
        ('"open', '"'),
        ("#foo.bar<(>", ">"),
        ("#alias", "}"),
        ("@", "@"),
        ("what", "what"),
        ("[" * 5000, "["),
        ("#a.b<" * 5000, "}"),
    ],
)
def test_a_malformed_mlir_attribute_is_refused(spelled: str, got: str) -> None:
    """The message names line and token."""
    with pytest.raises(IrSyntaxError, match=r"^stablehlo line \d+: got ") as raised:
        attributes(spelled)
    assert got in str(raised.value)
