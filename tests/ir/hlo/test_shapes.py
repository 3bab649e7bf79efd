"""Types, with layouts of all platforms."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Tensor
from conformance.ir.hlo.lexing import Unexpected
from conformance.ir.hlo.shapes import HloTypes
from tests.ir.hlo.spelling import spelled_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[]", Tensor("f32")),
        ("f32[2,3]{1,0}", Tensor("f32", (2, 3), "1,0")),
        ("bf16[8,128]{1,0:T(8,128)(2,1)}", Tensor("bf16", (8, 128), "1,0:T(8,128)(2,1)")),
        ("f32[8]{0:T(128)S(1)}", Tensor("f32", (8,), "0:T(128)", "1")),
        ("f32[8]{0:S(5)}", Tensor("f32", (8,), "0", "5")),
        ("s4[8]{0:T(128)E(4)S(2)}", Tensor("s4", (8,), "0:T(128)E(4)", "2")),
        ("u32[]{:S(5)}", Tensor("u32", (), "", "5")),
        ("u32[]{:T(128)}", Tensor("u32", (), ":T(128)")),
        ("f8e4m3b11fnuz[4]", Tensor("f8e4m3b11fnuz", (4,))),
        ("s32[<=8,?]", Tensor("s32", ("<=8", "?"))),
        ("token[]", Tensor("token")),
        ("opaque[]", Tensor("opaque")),
        ("b(f32[4]{0})", Tensor("b(f32)", (4,), "0")),
        ("()", ()),
        ("(f32[], (s32[2], pred[]))", (Tensor("f32"), (Tensor("s32", (2,)), Tensor("pred")))),
    ],
)
def test_a_type_is_read_and_spelled(text: str, expected: object) -> None:
    """The memory space stands apart from the layout."""
    found = HloTypes()[text]
    assert found == expected
    assert HloTypes()[spelled_type(found)] == expected


def test_comments_and_the_default_space_say_nothing() -> None:
    """`/*index=5*/` marks every fifth part of a tuple; `S(0)` is the default."""
    types = HloTypes()
    assert types["(f32[], /*index=5*/f32[2]{0:S(0)})"] == types["(f32[],f32[2]{0})"]


def test_equal_types_are_one_object() -> None:
    """So memory stays small, and comparing is quick."""
    types = HloTypes()
    assert types["(f32[2]{0})"][0] is types["f32[2]{0}"]
    assert types["(f32[2]{0}, s32[])"] is types["(f32[2]{0},s32[])"]


@pytest.mark.parametrize(
    ("text", "got", "expected"),
    [
        ("f32", "f32", "a type"),
        ("f32[2", "f32[2", "a type"),
        ("f32[x]", "x", "a size"),
        ("f32[2]{1,0:what?}", "1,0:what?", "a layout"),
        ("f32[2]{0:S(1)S(2)}", "0:S(1)S(2)", "one memory space"),
        ("(f32[]", "end of line", "',' or ')'"),
        ("(f32[],)", ")", "a type"),
        ("f32[] f32[]", " f32[]", "the end of the type"),
        ("(" * 1000, "(", "tuples nested at most 100 deep"),
    ],
)
def test_what_is_no_type_is_named(text: str, got: str, expected: str) -> None:
    """With what was found in its place."""
    with pytest.raises(Unexpected) as caught:
        HloTypes()[text]
    assert (caught.value.got, caught.value.expected) == (got, expected)
