"""The text of the canonical form, intact and damaged."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Instruction, IrSyntaxError, Opaque, Sharding, Tensor
from conformance.ir.normal.forms import to_canonical, to_exact
from conformance.ir.normal.text import Head, dumps, loads, read_head, read_type
from tests.ir.texts import ADD, LOOP, STEPS, hlo, neutral, settled

TEXT = dumps(settled(hlo(*LOOP, before=STEPS)))

TAKEN = "%parameter.1, %constant.1, %parameter.2"
CALLED = "body=@computation.1, condition=@computation.2"


def test_the_text_lists_callees_before_callers() -> None:
    """An instruction a line."""
    assert TEXT.splitlines() == [
        f"conformance-ir 1 hlo {neutral(hlo(*LOOP, before=STEPS))}",
        "",
        "computation.1 {",
        "  %parameter.1 = f32[4] parameter(), index=0",
        "  %parameter.2 = s32[] parameter(), index=1",
        "  %parameter.3 = f32[4] parameter(), index=2",
        "  %multiply.1 = f32[4] multiply(%parameter.1, %parameter.3)",
        '  %constant.1 = s32[] constant(), value="1"',
        "  %add.1 = s32[] add(%parameter.2, %constant.1)",
        "  return %multiply.1, %add.1",
        "}",
        "",
        "computation.2 {",
        "  %parameter.1 = f32[4] parameter(), index=0",
        "  %parameter.2 = s32[] parameter(), index=1",
        "  %parameter.3 = f32[4] parameter(), index=2",
        '  %constant.1 = s32[] constant(), value="5"',
        '  %compare.1 = pred[] compare(%parameter.2, %constant.1), direction="LT"',
        "  return %compare.1",
        "}",
        "",
        "entry {",
        "  %parameter.1 = f32[4] parameter(), index=0",
        "  %parameter.2 = f32[4] parameter(), index=1",
        '  %constant.1 = s32[] constant(), value="0"',
        f"  %while.1 = (f32[4], s32[]) while({TAKEN}), captured=1, {CALLED}",
        "  return %while.1:0",
        "}",
    ]


def test_a_reducer_is_named_by_its_operation() -> None:
    """And printed once for all its callers."""
    lines = [f"%r{n} = f32[4] all-reduce(%x), replica_groups={{}}, to_apply=%add" for n in range(2)]
    text = dumps(settled(hlo(*lines, before=ADD)))
    assert text.count("add_f32 {") == 1
    assert text.count("to_apply=@add_f32") == 2


def test_the_text_round_trips() -> None:
    """Byte for byte."""
    found = loads(TEXT)
    to_exact(found)
    assert to_canonical(found) == read_head(TEXT).fingerprint
    assert dumps(found) == TEXT


@pytest.mark.parametrize(
    "value",
    [
        "text with = and , and @f and %x",
        1,
        True,
        -0.0,
        float("inf"),
        None,
        (1, (2, "three")),
        (),
        Opaque("#odd<text>"),
        Tensor("f32", (2, "?"), "", "5"),
        Sharding("tiled", (2, 1), (0, 1), ("replicated",)),
        Sharding("tuple", parts=(Sharding("replicated"), Sharding("maximal", devices=(1,)))),
    ],
    ids=repr,
)
def test_every_attribute_round_trips(value: object) -> None:
    """With its type."""
    found = settled(hlo("%r = f32[4] negate(%x)"))
    one = next(i for i in found.walk() if i.op == "negate")
    one.attributes = {"about": value, "name with space": 1}  # type: ignore[dict-item]
    found.entry.attributes = {"result 0": value}  # type: ignore[dict-item]
    again = loads(dumps(found))
    kept = again.entry.instructions[-1].attributes
    assert repr(kept["about"]) == repr(value)
    assert repr(again.entry.attributes["result 0"]) == repr(value)


@pytest.mark.parametrize(
    "type_",
    [
        "f32[]",
        "key<fry>[2]",
        "(f32[2,?], (s32[], token[]))",
        "()",
        "bf16[<=8,4]S(pinned_host)",
        "!llvm.struct<(ptr<3>, i64, array<1 x i64>)>[]",
        "memref<f32, strided<[8, 1]>>[8,8]",
        "(!llvm.func<void (ptr) -> i32>[], f32[2])",
    ],
)
def test_types_round_trip(type_: str) -> None:
    """Also nested and empty ones."""
    text = f"conformance-ir 1 hlo 00\n\nentry {{\n  %a.1 = {type_} a()\n  return %a.1\n}}\n"
    again = dumps(loads(text)).splitlines()
    assert again[3] == f"  %a.1 = {type_} a()"


@pytest.mark.parametrize("text", ["", "f32", "(f32[]", "[2]", "(f32[], "])
def test_a_malformed_type_of_a_text_is_refused(text: str) -> None:
    """With the text found."""
    with pytest.raises(ValueError, match="is no type"):
        read_type(text, 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("conformance-ir 1", "conformance 1", "line 1: got 'conformance 1"),
        ("1 hlo", "1 llvm", "line 1: got kind 'llvm', expected one of hlo, stablehlo, jaxpr"),
        ("multiply(%parameter.1", "multiply(%parameter.9", "line 7: .*parameter.9"),
        ("= f32[4] multiply", "= f32[4 multiply", "line 7"),
        ("index=1\n", "\n", "line 5: .*without its number"),
        ('"LT"', '"LT', "line 18"),
        ("@computation.2", "@computation.3", "line 26: .*computation.3"),
        ("  return %compare.1\n", "", "line 19: .*without `return`"),
        ("computation.2 {", "computation.1 {", "line 20: .*second computation"),
        ("entry {", "entrance {", "line 29: the text ends early"),
        ("captured=1", "captured={}", "line 26: .*no attribute"),
        ("captured=1", "captured", "line 26"),
        ("\n}\n\nentry", "\n\nentry", "line 20"),
    ],
)
def test_a_damaged_text_is_refused(old: str, new: str, message: str) -> None:
    """With the line and the expected text."""
    assert old in TEXT
    with pytest.raises(IrSyntaxError, match=message):
        loads(TEXT.replace(old, new, 1))


@pytest.mark.parametrize("count", range(1, 28, 3))
def test_a_truncated_text_is_refused(count: int) -> None:
    """At any line."""
    with pytest.raises(IrSyntaxError, match=r"line \d+"):
        loads("\n".join(TEXT.splitlines()[:count]))


def test_the_head_is_read_alone() -> None:
    """Version, kind and fingerprint."""
    assert read_head("conformance-ir 3 jaxpr 0a1b\nanything") == Head(3, "jaxpr", "0a1b")
    with pytest.raises(IrSyntaxError, match="expected `conformance-ir VERSION KIND HASH`"):
        read_head("")


def test_unread_instructions_are_printed() -> None:
    """After the others, in an order that depends on the graph alone."""
    call = 'custom-call({}), custom_call_target="f", custom_call_has_side_effect=true'
    one, other = (
        [f"%a = () {call.format('%x')}", f"%b = () {call.format('%y')}"][::step] for step in (1, -1)
    )
    texts = [dumps(settled(hlo(*lines, "%r = f32[4] negate(%x)"))) for lines in (one, other)]
    assert texts[0] == texts[1]
    assert texts[0].count("custom-call(") == 2


def test_equal_unread_instructions_are_told_apart_by_their_readers() -> None:
    """Whichever of two equal effects comes first, the one that another effect reads is the same."""
    call = 'custom-call({}), custom_call_target="f", custom_call_has_side_effect=true'
    equal = [f"%{name} = f32[4] {call.format('%x')}" for name in "ab"]
    texts = {
        dumps(settled(hlo(*equal, f"%c = f32[4] {call.format(read)}", "%r = f32[4] negate(%x)")))
        for read in ("%a", "%b")
    }
    assert len(texts) == 1


def test_a_module_without_results_round_trips() -> None:
    """A module may return no value."""
    found = settled(hlo("%r = () tuple()"))
    assert "  return\n" in dumps(found)
    assert loads(dumps(found)).entry.results == []


def test_unused_instructions_of_any_kind_have_names() -> None:
    """The names count by operation."""
    found = settled(hlo("%r = f32[4] negate(%x)"))
    found.entry.instructions += [Instruction(name="", op="send", type=())] * 1
    assert "%send.1 = () send()" in dumps(found)
