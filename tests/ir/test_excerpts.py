"""Quoted lines."""

from __future__ import annotations

import pytest

from conformance.ir.excerpts import Excerpts
from tests.ir.texts import hlo, module

ADD = "%r = f32[4]{0} add(%x, %y)"


@pytest.mark.parametrize(
    "rest",
    [
        ', metadata={op_name="jit(f)/a{b}\\"c" source_file="f.py" source_line=1}',
        ', backend_config={"a":{"b":"c"}}',
        ", operand_layout_constraints={f32[4]{0}, f32[4]{0}}",
        ', metadata={op_name="f"}, backend_config={"a":["1"]}',
    ],
)
def test_noise_is_removed_from_quoted_lines(rest: str) -> None:
    """Metadata, configurations and locations."""
    text = hlo(ADD + rest)
    assert Excerpts(text, "hlo").quote_line(module(text).entry.instructions[-1]) == ADD


def test_long_lines_are_cut() -> None:
    """To fit a report."""
    text = hlo(f'%r = f32[4] custom-call(%x), custom_call_target="{"f" * 400}"')
    line = Excerpts(text, "hlo").quote_line(module(text).entry.instructions[-1])
    assert len(line) == 220
    assert line.endswith("...")


def test_a_jaxpr_is_quoted_from_the_graph() -> None:
    """Its lines are JSON."""
    one = module(hlo(ADD + ", dimensions={0}")).entry.instructions[-1]
    assert Excerpts("", "jaxpr").quote_line(one) == "%r = f32[4]{0} add(%x, %y), dimensions=(0,)"
    one.line = 0
    assert Excerpts(hlo(ADD), "hlo").quote_line(one).startswith("%r = ")
    one.line = 10_000
    assert Excerpts(hlo(ADD), "hlo").quote_line(one).startswith("%r = ")


def test_only_the_first_lines_are_quoted() -> None:
    """In the order of the text, each once."""
    text = hlo(*(f"%n{n} = f32[4] negate(%x)" for n in range(9)))
    ones = module(text).entry.instructions[2:]
    lines = Excerpts(text, "hlo").quote_lines([*reversed(ones), *ones])
    assert lines == (*(f"%n{n} = f32[4] negate(%x)" for n in range(6)), "... 3 more")
