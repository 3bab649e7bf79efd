"""Helpers of the tests of HLO: a module around an instruction, and equality of graphs."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from conformance.ir.hlo import parse

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Computation, Instruction, Module


def module(*lines: str) -> Module:
    """Return a module whose entry has these instructions, after a parameter `x` and a callee."""
    text = "\n".join(
        [
            "HloModule m",
            "",
            "%add (a: f32[], b: f32[]) -> f32[] {",
            "  %a = f32[] parameter(0)",
            "  %b = f32[] parameter(1)",
            "  ROOT %sum = f32[] add(%a, %b)",
            "}",
            "",
            "ENTRY %main (x: f32[4]) -> f32[4] {",
            "  %x = f32[4]{0} parameter(0)",
            *[f"  {line}" for line in lines],
            "}",
        ]
    )
    return parse(text)


def instruction(*lines: str) -> Instruction:
    """Return the last of these instructions."""
    return module(*lines).entry.instructions[-1]


def attribute(text: str) -> Attribute:
    """Return the value of `name=value`, as an attribute of some instruction."""
    return instruction(f"%y = f32[4]{{0}} custom-call(%x), {text}").attributes[
        text.partition("=")[0]
    ]


def same_graph(a: Module, b: Module) -> bool:
    """Return whether two modules are equal in all but line numbers."""
    if list(a.computations) != list(b.computations) or a.entry.name != b.entry.name:
        return False
    pairs = zip(a.computations.values(), b.computations.values(), strict=True)
    return (
        (a.name, a.attributes, a.not_understood) == (b.name, b.attributes, b.not_understood)
        and list(a.attributes) == list(b.attributes)
        and all(_same_computation(*pair) for pair in pairs)
    )


def _same_computation(a: Computation, b: Computation) -> bool:
    return (a.attributes, _results(a)) == (b.attributes, _results(b)) and all(
        i is not None and j is not None and _fields(i) == _fields(j)
        for i, j in zip_longest(a.instructions, b.instructions)
    )


def _results(computation: Computation) -> list[Any]:
    return [(instruction.name, path) for instruction, path in computation.results]


def _fields(i: Instruction) -> tuple[Any, ...]:
    operands = [operand.name for operand in i.operands]
    bodies = [(role, computation.name) for role, computation in i.bodies]
    attributes = list(i.attributes.items())
    return i.name, i.op, i.type, operands, i.paths, attributes, bodies, i.origin
