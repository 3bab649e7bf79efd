"""Sweeps, and the tables of values of their inputs."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from conformance.fuzz.array_type import DTYPES, find_numpy_dtype, get_kind, get_limits
from conformance.fuzz.generation import generate_each
from conformance.fuzz.numpy_twin import evaluate_inputs
from conformance.fuzz.operation import select_operations
from conformance.fuzz.operations import OPERATIONS
from conformance.fuzz.sweep import USES, plan_sweep
from conformance.fuzz.value_tables import CYCLE, LENGTH, list_special_values


def test_a_sweep_has_each_operation_in_each_use() -> None:
    """One use of all of them after the other; a later sweep goes on where one ended."""
    some = select_operations(OPERATIONS, ["jnp.cum*", "lax.sort"])
    spaces = [*plan_sweep(some, 0, len(some) * len(USES), x64=False)]
    planned = [
        (space.operations, tuple(kind.name for kind in space.around or ())) for space in spaces
    ]
    assert planned == [((one,), use.transforms) for use in USES for one in some]
    assert [*plan_sweep(some, 7, 5, x64=False)] == spaces[7:12]


@pytest.mark.long
def test_each_program_of_a_sweep_has_its_operation() -> None:
    """All operations except collectives, which need an axis."""
    generated = generate_each(plan_sweep(OPERATIONS, 0, len(OPERATIONS), x64=False), 1)
    names = {name for one in generated for name in one.program.operations}
    missing = {one.name for one in OPERATIONS if not one.needs_axis} - names
    assert len(missing) <= 5


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_table_has_the_special_values_of_its_dtype(dtype: str) -> None:
    """Each is one of the dtype; the simplest comes first."""
    values = list_special_values(dtype)
    assert values[0] == 0
    assert len({*map(repr, values)}) == len(values) >= 2
    kind = get_kind(dtype)
    if kind in {"int", "uint"}:
        array = np.array([find_numpy_dtype(dtype).type(value) for value in values])
        assert [*array.astype(object)] == [*values]
        bits = int(dtype[-2:].lstrip("t"))
        numbers = [int(value.real) for value in values]
        assert max(numbers) - min(numbers) == 2**bits - 1
    elif kind == "float":
        limits = get_limits(dtype)
        sizes = [abs(value) for value in values if value and cmath.isfinite(value)]
        assert min(sizes) < limits.smallest_normal
        assert 0.5 * limits.largest < max(size for size in sizes if size <= limits.largest)
        assert {math.inf, -math.inf} <= {*values}


def test_other_operations_meet_equal_elements() -> None:
    """In some of their turns: a matrix of zeros, the spread of nothing."""
    operations = select_operations(OPERATIONS, ["jax.nn.standardize"])
    generated = generate_each(plan_sweep(operations, 0, 60, x64=False), 1)
    inputs = [np.asarray(evaluate_inputs(one.program)[0], "float64") for one in generated]
    assert any(array.size > 1 and not array.any() for array in inputs)
    assert any(array.size > 1 and array.any() and np.ptp(array) == 0 for array in inputs)


def test_two_long_inputs_hold_all_pairs_of_their_values() -> None:
    """Of the special ones, where both are made of them."""
    operations = select_operations(OPERATIONS, ["lax.atan2"])
    for one in generate_each(plan_sweep(operations, 0, 40, x64=False), 3):
        if one.program.around or "linspace" in str(one.program.inputs):
            continue
        x, y = evaluate_inputs(one.program)
        if (x.shape, y.shape) == ((LENGTH,), (LENGTH,)):
            pairs = {(str(a), str(b)) for a, b in zip(x, y, strict=True)}
            assert len(pairs) >= (CYCLE - 2) ** 2
            return
    pytest.fail("no program has two long inputs of special values")
