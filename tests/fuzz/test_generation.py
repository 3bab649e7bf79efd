"""Generation and shrinking of programs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.fuzz.generation import generate
from conformance.fuzz.operation import select_operations
from conformance.fuzz.operations import COSTLY, OPERATIONS
from conformance.fuzz.strategies import ProgramSpace
from conformance.fuzz.transforms import TRANSFORMS

if TYPE_CHECKING:
    from conformance.fuzz.generation import GeneratedProgram

SPACE = ProgramSpace()


def test_a_seed_gives_the_same_programs(drawn: list[GeneratedProgram]) -> None:
    """Another one gives others."""
    again = generate(SPACE, 1, 30)
    assert again == drawn[: len(again)]
    other = {one.program.id for one in generate(SPACE, 2, 30)}
    # Hypothesis begins with the simplest programs.
    assert len(other & {one.program.id for one in again}) <= 3


def test_a_seed_means_the_same_in_another_process(drawn: list[GeneratedProgram]) -> None:
    """With other modules loaded."""
    script = (
        "from conformance.fuzz.generation import generate\n"
        "from conformance.fuzz.strategies import ProgramSpace\n"
        "print(*(one.program.id for one in generate(ProgramSpace(), 1, 60)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    ids = done.stdout.split()
    assert ids == [one.program.id for one in drawn[: len(ids)]]


def test_programs_differ_and_use_all_of_the_language(drawn: list[GeneratedProgram]) -> None:
    """Operations, transforms, meshes; with and without them."""
    programs = [one.program for one in drawn]
    assert len({program.id for program in programs}) == len(programs)
    operations = {name for program in programs for name in program.operations}
    around = {name for program in programs for name in program.around}
    assert len(operations) > 150
    assert len(around) > 15
    assert {"donate", "explicit mesh"} <= around
    assert {program.devices for program in programs} == {1, 4}


def test_every_program_is_python_that_defines_a_function_and_its_arguments(
    drawn: list[GeneratedProgram],
) -> None:
    """Every name in it is defined before it is used."""
    for program in (one.program for one in drawn):
        tree = ast.parse(program.render())
        defined = {
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        assert {"function", "args"} <= defined
        text = program.render()
        for step in program.body.steps:
            for name in step.operands:
                first = re.search(rf"\b{name}\b", text)
                assert first
                assert first.start() < text.index(step.code)


@pytest.mark.parametrize("patterns", [("jnp.cum*",), ("lax.scan", "jnp.sin")])
def test_operations_can_be_selected(patterns: tuple[str, ...]) -> None:
    """By name or pattern; programs have these alone, and those of functions within them."""
    chosen = select_operations(OPERATIONS, patterns)
    names = {one.name for one in chosen}
    space = ProgramSpace(operations=chosen)
    for program in (one.program for one in generate(space, 3, 20)):
        outer = {step.operation for step in program.body.steps}
        assert outer <= names | {".astype", "jnp.zeros"}


def test_shard_map_divides_two_dimensions_or_one_by_both_axes() -> None:
    """Over a mesh of two axes, in addition to one dimension by one axis."""
    space = ProgramSpace(transforms=tuple(t for t in TRANSFORMS if t.name == "shard_map"))
    text = "\n".join(one.program.render() for one in generate(space, 1, 150))
    for spec in ('P("x0")', 'P(("x0", "y0"))', 'P("x0", "y0")'):
        assert f"out_specs={spec}" in text


def test_the_table_is_large() -> None:
    """At least 350 operations; the costly ones are among them."""
    names = {operation.name for operation in OPERATIONS}
    assert len(names) >= 350
    assert names >= COSTLY
