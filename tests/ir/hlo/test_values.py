"""Types and constants of HLO."""

from __future__ import annotations

import re

import pytest

from conformance.ir.graph import Attribute, Opaque, Tensor, Type
from conformance.ir.hlo.lexing import HloTextError
from conformance.ir.hlo.values import LONGEST, HloTypes, read_literal
from tests.ir.hlo.same import instruction, module
from tests.ir.hlo.spelling import spelled_literal, spelled_type


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
    """The memory space is separate from the layout."""
    found = HloTypes()[text]
    assert found == expected
    assert HloTypes()[spelled_type(found)] == expected


def test_comments_and_the_default_space_are_dropped() -> None:
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
def test_an_error_names_the_malformed_type(text: str, got: str, expected: str) -> None:
    """With the text found in its place."""
    with pytest.raises(HloTextError) as caught:
        HloTypes()[text]
    assert (caught.value.got, caught.value.expected) == (got, expected)


F32, S32, PRED, C64 = Tensor("f32"), Tensor("s32"), Tensor("pred"), Tensor("c64")


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("1e+06", F32, "1000000.0"),
        ("1000000", F32, "1000000.0"),
        ("0", F32, "0.0"),
        ("-0", F32, "-0.0"),
        ("inf", F32, "inf"),
        ("-inf", F32, "-inf"),
        ("nan", F32, "nan"),
        ("-nan(0x7fc00001)", F32, "-nan(0x7fc00001)"),
        ("3.14159274", Tensor("bf16"), "3.14159274"),
        ("-42", S32, "-42"),
        ("18446744073709551615", Tensor("u64"), "18446744073709551615"),
        ("true", PRED, "true"),
        ("(1, -2)", C64, "(1.0,-2.0)"),
        ("(nan(0x7f), inf)", C64, "(nan(0x7f),inf)"),
        ("{1, 0, 1}", Tensor("pred", (3,)), "{true,false,true}"),
        ("{ { 1, 2 }, { 3, 4 } }", Tensor("f32", (2, 2)), "{{1.0,2.0},{3.0,4.0}}"),
        ("{ { /*i0=0*/ {-1} }, { /*i0=1*/ {4} } }", Tensor("s32", (2, 1, 1)), "{{{-1}},{{4}}}"),
        ("{ (1, 2), (3, 4) }", Tensor("c64", (2,)), "{(1.0,2.0),(3.0,4.0)}"),
        ("{}", Tensor("f32", (0,)), "{}"),
        ("{ { /*i0=0*/ }, { /*i0=1*/ } }", Tensor("f32", (2, 0, 4)), "{{},{}}"),
        ("( 1, { {1}, {2} } )", (S32, Tensor("s32", (2, 1))), ("1", "{{1},{2}}")),
        ("()", (), ()),
    ],
)
def test_equal_values_have_equal_texts(text: str, type_: Type, expected: Attribute) -> None:
    """And the printed text reads back."""
    assert read_literal(text, type_) == expected
    assert read_literal(spelled_literal(expected), type_) == expected


def test_a_long_array_becomes_a_digest() -> None:
    """Blanks do not change it, and it can be printed and read back."""
    count = LONGEST + 1
    type_ = Tensor("s32", (count,))
    numbers = [str(n) for n in range(count)]
    value = read_literal(f"{{{','.join(numbers)}}}", type_)
    assert re.fullmatch("sha256:[0-9a-f]{16} of 1001 elements", str(value))
    assert value == read_literal(f"{{ {', '.join(numbers)} }}", type_)
    assert value != read_literal(f"{{{','.join(['7', *numbers[1:]])}}}", type_)
    assert read_literal(spelled_literal(value), type_) == value


def test_elements_of_long_complex_arrays_are_counted() -> None:
    """The parts of each element are separated by a comma, too."""
    value = read_literal(f"{{{', '.join(['(1, 2)'] * 2000)}}}", Tensor("c64", (2000,)))
    assert str(value).endswith("of 2000 elements")


def test_elided_constants_are_counted() -> None:
    """`as_text()` prints long constants as `{...}`, which hides a change of value."""
    found = module("%c = f32[4]{0} constant({...})", "%d = (f32[4]{0}, f32[]) constant(({...}, 1))")
    assert found.entry.instructions[1].attributes == {"value": Opaque("{...}")}
    assert found.entry.instructions[2].attributes == {"value": (Opaque("{...}"), "1.0")}
    assert found.not_understood == {"elided constant": 2}


def test_the_value_precedes_other_attributes() -> None:
    """Independent of the text after it."""
    found = instruction('%c = f32[] constant(1), frontend_attributes={a="b"}')
    assert list(found.attributes) == ["value", "frontend_attributes"]


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("", F32),
        ("one", F32),
        ("1.5.2", F32),
        ("1 2", F32),
        ("2", PRED),
        ("{1}", F32),
        ("1", Tensor("f32", (1,))),
        ("{1, 2}", Tensor("f32", (3,))),
        ("{1 2}", Tensor("f32", (2,))),
        ("{1, 2, 3, 4}", Tensor("f32", (2, 2))),
        ("{ { 1, 2 }, { 3, 4 }", Tensor("f32", (2, 2))),
        ("(1, 2, 3)", (S32, S32)),
        (f"{{{'1,' * 5000}}}", Tensor("f32", (5000,))),
        (f"{{{'<,' * 4999}1}}", Tensor("f32", (5000,))),
    ],
)
def test_a_constant_that_does_not_fit_its_type_is_refused(text: str, type_: Type) -> None:
    """Number of elements and nesting follow from the shape."""
    with pytest.raises(HloTextError):
        read_literal(text, type_)
