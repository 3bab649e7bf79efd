"""Shrinking of programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from conformance.fuzz.generation import generate_each, replay
from conformance.fuzz.numpy_twin import evaluate_inputs
from conformance.fuzz.operation import select_operations
from conformance.fuzz.operations import OPERATIONS
from conformance.fuzz.shrinking import leave_out, shrink
from conformance.fuzz.strategies import ProgramSpace
from conformance.fuzz.sweep import USES, plan_sweep

if TYPE_CHECKING:
    from conformance.fuzz.generation import GeneratedProgram
    from conformance.fuzz.program import FuzzProgram

SPACE = ProgramSpace()


def test_a_program_is_shrunk_to_what_still_fails(drawn: list[GeneratedProgram]) -> None:
    """The other steps and transforms disappear."""
    wanted = next(
        one for one in drawn if len(one.program.body.steps) > 2 and one.program.transforms
    )
    name = wanted.program.body.steps[1].operation
    transform = wanted.program.transforms[0].name

    def fails(program: FuzzProgram) -> bool:
        around = {each.name for each in program.transforms}
        return name in program.operations and transform in around

    shrunk = shrink(wanted, fails, seconds=20)
    assert fails(shrunk.program)
    assert len(shrunk.program.body.steps) < len(wanted.program.body.steps)
    assert [each.name for each in shrunk.program.transforms] == [transform]
    assert replay(SPACE, shrunk.choices) == shrunk.program


@pytest.mark.parametrize("number", range(6))
def test_what_does_not_matter_is_cut(drawn: list[GeneratedProgram], number: int) -> None:
    """Within few trials, all steps but one and all transforms."""
    large = [one for one in drawn if len(one.program.body.steps) > 2 and one.program.transforms][
        number
    ]
    # A transform may add `.astype` to make the result a float.
    steps = large.program.body.steps
    name = [each.operation for each in steps if each.operation != ".astype"][-1]
    trials = []

    def fails(program: FuzzProgram) -> bool:
        trials.append(program.id)
        return name in program.operations

    shrunk = shrink(large, fails, seconds=60).program
    assert (name in shrunk.operations, shrunk.around) == (True, ())
    # A step of its own may make the operand, e.g. one of integers.
    assert len(shrunk.body.steps) <= 2
    assert len(trials) <= 150


def test_a_later_step_gets_the_operand_of_one_that_is_left_out(
    drawn: list[GeneratedProgram],
) -> None:
    """With its values: 8 of 20 programs with the last operation and a value have no other step."""
    large = [one for one in drawn if len(one.program.body.steps) > 1 and one.program.inputs]
    single = 0
    for one in large[:20]:
        name = one.program.body.steps[-1].operation
        value = one.program.inputs[-1]

        def fails(program: FuzzProgram, name: str = name, value: str = value) -> bool:
            return name in program.operations and value in program.inputs

        shrunk = leave_out(one, fails).program
        assert fails(shrunk)
        single += len(shrunk.body.steps) == 1
    assert single >= 6


def test_shrinking_ends_in_time(drawn: list[GeneratedProgram]) -> None:
    """With the program itself if nothing simpler was tried."""
    shrunk = shrink(drawn[5], lambda _: True, seconds=0)
    assert shrunk == drawn[5]


def test_a_long_input_is_shrunk_to_the_value_that_matters() -> None:
    """Each of the others is left out, and so is what surrounds the operation."""
    (operation,) = select_operations(OPERATIONS, ["jax.scipy.special.xlogy"])
    spaces = plan_sweep([operation], 1, 12, x64=False)
    wanted = next(one for one in generate_each(spaces, 1) if fails_at_zero_times_nan(one.program))
    assert evaluate_inputs(wanted.program)[0].shape == (900,)
    shrunk = shrink(wanted, fails_at_zero_times_nan, seconds=60).program
    x, y = evaluate_inputs(shrunk)
    assert (x.shape, y.shape, shrunk.around) == ((1,), (1,), ())
    assert x == 0
    assert np.isnan(y)


def test_the_values_of_a_wrong_element_are_tried_first() -> None:
    """Where its position is known, few trials are needed."""
    (operation,) = select_operations(OPERATIONS, ["jax.scipy.special.xlogy"])
    spaces = plan_sweep([operation], 1, 12, x64=False)
    wanted = next(one for one in generate_each(spaces, 1) if fails_at_zero_times_nan(one.program))
    x, y = evaluate_inputs(wanted.program)
    position = int(np.flatnonzero((x == 0) & np.isnan(y))[0])
    trials = []

    def fails(program: FuzzProgram) -> bool:
        trials.append(program.id)
        return fails_at_zero_times_nan(program)

    shrunk = shrink(wanted, fails, seconds=60, position=position).program
    assert [each.shape for each in evaluate_inputs(shrunk)] == [(1,), (1,)]
    assert len(trials) <= 20  # 30 without it


def fails_at_zero_times_nan(program: FuzzProgram) -> bool:
    """Return whether a program has a zero and NaN at the same place of two inputs."""
    inputs = evaluate_inputs(program)
    if len(inputs) < 2 or inputs[0].shape != inputs[1].shape:
        return False
    with np.errstate(invalid="ignore"):
        return bool(((inputs[0] == 0) & np.isnan(inputs[1])).any())


@pytest.mark.long
def test_a_launch_and_fixed_transforms_are_left_out() -> None:
    """Where they do not matter."""
    operations = select_operations(OPERATIONS, ["jnp.sin"])
    generated = generate_each(
        plan_sweep(operations, 0, 2 * len(operations) * len(USES), x64=False), 1
    )
    around = {one.program.around for one in generated}
    assert {("jvp", "grad"), ("explicit mesh",), ("shard_map",)} <= around
    for one in generated:
        shrunk = shrink(one, lambda program: "jnp.sin" in program.operations, seconds=20)
        assert (shrunk.program.around, len(shrunk.program.body.steps)) == ((), 1)
