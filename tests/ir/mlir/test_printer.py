"""Printed modules read back to the same graph."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.ir.graph import Instruction, IrSyntaxError, Module, Tensor
from conformance.ir.mlir import parse
from tests.ir.mlir.printer import print_module

from .same import plain, text
from .test_parser import FUNCTIONS, LOOP

SAMPLES = sorted((Path(__file__).parents[1] / "samples").rglob("*.generic"))


def again(module: Module) -> Module:
    """Return a module after it was written and read."""
    return parse(print_module(module))


@pytest.mark.parametrize(
    "whole",
    [
        FUNCTIONS,
        text(*LOOP.splitlines()),
        text('%t = "a.b"() : () -> tuple<>', '%u = "a.b"() : () -> tuple<tensor<f32>>'),
        text('%t = "a.b"() : () -> tuple<f32, f32>', '"a.c"(%t) : (tuple<f32, f32>) -> ()'),
        text(
            '"a.b"() <{a = #foo.bar<">">, b = "\\22é", c = @f, "d e" = 1.0e-30 : f32}> : () -> ()'
        ),
        text('"a.b"() {mhlo.sharding = "{{maximal device=1}, {devices=[2]<=[2]}}"} : () -> ()'),
        text('"a.b"() {s = #sdy.sharding_per_value<[<@odd, [{"x", ?}p1, {}]>]>} : () -> ()'),
    ],
)
def test_a_printed_mlir_module_reads_back(whole: str) -> None:
    """Except locations and lines."""
    module = parse(whole)
    assert plain(again(module)) == plain(module)


@pytest.mark.parametrize(
    "spelled",
    [
        "dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>",
        "dense<[0x7FC00000, 0xFF800000, 0xFFC00001, -0.0, 1.0e-30]> : tensor<5xf32>",
        "dense<[(1.0, 0x7F800000), (0.0, 0.0)]> : tensor<2xcomplex<f32>>",
        "dense<> : tensor<2x0xi8>",
        f"dense<{list(range(1001))}> : tensor<1001xui16>",
        'dense<["a"]> : tensor<1x!t.s>',
        "dense<0.1> : tensor<f8E5M2>",
    ],
)
def test_printed_constants_read_back(spelled: str) -> None:
    """Also those of which only a hash is left."""
    of = spelled.rpartition(" : ")[2]
    line = f'%c = "stablehlo.constant"() <{{value = {spelled}}}> : () -> {of}'
    module = parse(text(line))
    assert plain(again(module)) == plain(module)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: "-".join(path.parts[-3:]))
def test_real_modules_are_understood_and_read_back_the_same(sample: Path) -> None:
    """Of several releases and platforms."""
    module = parse(sample.read_text())
    assert not module.not_understood
    assert plain(again(module)) == plain(module)


def test_taken_or_invalid_names_are_replaced() -> None:
    """A pass may have renamed or copied instructions."""
    module = parse(text('%a = "a.b"() : () -> f32', '%b = "a.b"() : () -> f32'))
    _, a, b = module.entry.instructions
    a.name, b.name = "x", "no name"
    names = [one.name for one in again(module).entry.instructions]
    assert names == ["x", "x.1", "value"]


def test_an_element_of_a_nested_tuple_cannot_be_printed() -> None:
    """MLIR has operations for that."""
    module = parse(text('%a:2 = "a.b"() : () -> (f32, tuple<f32>)'))
    made = module.entry.instructions[-1]
    module.entry.instructions.append(Instruction("c", "a.c", Tensor("f32"), (made,), ((1, 0),)))
    with pytest.raises(IrSyntaxError, match="nested tuple"):
        print_module(module)


TYPES = ["tensor<f32>", "tensor<2x?xi32>", "!stablehlo.token", "tensor<3xbf16>", "i1"]
NAMES = st.text(st.characters(categories=["L", "N"], max_codepoint=127), min_size=1, max_size=3)
LEAVES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.text(max_size=8),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """Draw a module of some operations in and around regions."""
    lines: list[str] = []
    seen: list[list[tuple[str, str]]] = [[("%x", "tensor<4xf32>")]]
    for number in range(draw(st.integers(0, 8))):
        known = [value for scope in seen for value in scope]
        taken = draw(st.lists(st.sampled_from(known), max_size=3))
        given_ = draw(st.lists(st.sampled_from(TYPES), max_size=3))
        operands = ", ".join([name for name, _ in taken])
        types = ", ".join([of for _, of in taken])
        results = given_[0] if len(given_) == 1 else f"({', '.join(given_)})"
        many = f":{len(given_)}" if len(given_) > 1 else ""
        head = f"%v{number}{many} = " if given_ else ""
        region = ""
        if draw(st.booleans()):
            inner = f'%r{number} = "c.d"(%p{number}) : (i1) -> i1'
            region = (
                f'({{\n^bb0(%p{number}: i1):\n{inner}\n"stablehlo.return"(%r{number}) : (i1) -> ()'
                "\n}) "
            )
        lines.append(f'{head}"a.b"({operands}) {region}: ({types}) -> {results}')
        seen[0] += [
            (f"%v{number}#{place}" if many else f"%v{number}", of)
            for place, of in enumerate(given_)
        ]
    module = parse(text(*lines))
    for one in module.entry.instructions[1:]:
        one.attributes.update(draw(st.dictionaries(NAMES, VALUES, max_size=3)))
    return module


@given(modules())
def test_any_printed_module_reads_back(module: Module) -> None:
    """With any operations, types and attributes."""
    assert plain(again(module)) == plain(module)
