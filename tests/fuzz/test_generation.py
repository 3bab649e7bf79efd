"""Generation and shrinking of programs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.fuzz.generation import generate, replay, shrink
from conformance.fuzz.operation import select_operations
from conformance.fuzz.operations import COSTLY, OPERATIONS
from conformance.fuzz.strategies import ProgramSpace
from conformance.fuzz.transforms import TRANSFORMS

if TYPE_CHECKING:
    from conformance.fuzz.program import FuzzProgram

SPACE = ProgramSpace()
PROGRAMS = generate(SPACE, 1, 200)


def test_a_seed_gives_the_same_programs() -> None:
    """Another one gives others."""
    again = generate(SPACE, 1, 30)
    assert again == PROGRAMS[: len(again)]
    other = {one.program.id for one in generate(SPACE, 2, 30)}
    # Hypothesis begins with the simplest programs.
    assert len(other & {one.program.id for one in again}) <= 3


def test_a_seed_means_the_same_in_another_process() -> None:
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
    assert ids == [one.program.id for one in PROGRAMS[: len(ids)]]


def test_programs_differ_and_use_all_of_the_language() -> None:
    """Operations, transforms, meshes; with and without them."""
    programs = [one.program for one in PROGRAMS]
    assert len({program.id for program in programs}) == len(programs)
    operations = {name for program in programs for name in program.operations}
    around = {name for program in programs for name in program.around}
    assert len(operations) > 150
    assert len(around) > 15
    assert {"donate", "explicit mesh"} <= around
    assert {program.devices for program in programs} == {1, 4}


def test_every_program_is_python_that_defines_a_function_and_its_arguments() -> None:
    """Every name in it is defined before it is used."""
    for program in (one.program for one in PROGRAMS):
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


def test_a_program_is_shrunk_to_what_still_fails() -> None:
    """The other steps and transforms disappear."""
    wanted = next(
        one for one in PROGRAMS if len(one.program.body.steps) > 2 and one.program.transforms
    )
    name = wanted.program.body.steps[1].operation
    transform = wanted.program.transforms[0].name

    def fails(program: FuzzProgram) -> bool:
        around = {each.name for each in program.transforms}
        return name in program.operations and transform in around

    shrunk = shrink(SPACE, wanted, fails, seconds=20)
    assert fails(shrunk.program)
    assert len(shrunk.program.body.steps) < len(wanted.program.body.steps)
    assert [each.name for each in shrunk.program.transforms] == [transform]
    assert replay(SPACE, shrunk.choices) == shrunk.program


@pytest.mark.parametrize("number", range(6))
def test_what_does_not_matter_is_cut(number: int) -> None:
    """Within few trials, all steps but one and all transforms."""
    large = [one for one in PROGRAMS if len(one.program.body.steps) > 2 and one.program.transforms][
        number
    ]
    # A transform may add `.astype` to make the result a float.
    steps = large.program.body.steps
    name = [each.operation for each in steps if each.operation != ".astype"][-1]
    trials = []

    def fails(program: FuzzProgram) -> bool:
        trials.append(program.id)
        return name in program.operations

    shrunk = shrink(SPACE, large, fails, seconds=60).program
    assert (name in shrunk.operations, shrunk.around) == (True, ())
    # A step of its own may make the operand, e.g. one of integers.
    assert len(shrunk.body.steps) <= 2
    assert len(trials) <= 150


def test_shrinking_ends_in_time() -> None:
    """With the program itself if nothing simpler was tried."""
    shrunk = shrink(SPACE, PROGRAMS[5], lambda _: True, seconds=0)
    assert shrunk == PROGRAMS[5]


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
