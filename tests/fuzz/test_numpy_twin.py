"""The reference by NumPy, and its error bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conformance.fuzz.array_type import ArrayType
from conformance.fuzz.batches import ProgramResult
from conformance.fuzz.comparison import compare_with_reference
from conformance.fuzz.generation import generate
from conformance.fuzz.numpy_twin import compute_reference, evaluate_inputs
from conformance.fuzz.program import FuzzProgram, ProgramFunction, Step, Transform, Variable
from conformance.fuzz.strategies import ProgramSpace
from conformance.model.value import Leaf


def program(twin: str, value: str, dtype: str = "float32") -> FuzzProgram:
    """Return a program of one step, whose call in jax nobody runs."""
    type_ = ArrayType((2,), dtype)
    x, y = Variable("x0", type_), Variable("v1", type_)
    step = Step(operation="step", code="x0", twin=twin, operands=("x0",), results=(y,))
    body = ProgramFunction(name="body", parameters=(x,), steps=(step,), returns="v1", results=(y,))
    return FuzzProgram(body=body, inputs=(f'np.array({value}, "{dtype}")',))


def result(*numbers: float, dtype: str = "float32") -> ProgramResult:
    """Return a result in a cell."""
    data = np.array(numbers, dtype).tobytes()
    return ProgramResult(
        leaves=(Leaf(path="", kind="array", dtype=dtype, shape=(len(numbers),), data=data),)
    )


@pytest.mark.parametrize(
    ("twin", "value", "seen", "wrong"),
    [
        ("np.square(x0)", "[3.0, 0.5]", (9.0, 0.25), False),
        ("np.square(x0)", "[3.0, 0.5]", (9.001, 0.25), True),
        ("np.sin(x0)", "[1e7, 1.0]", (0.4, 0.841471), False),
        ("np.log(x0)", "[-1.0, 1.0]", (np.nan, 0.0), False),
        ("np.log(x0)", "[-1.0, 1.0]", (1.0, 0.0), True),
        # Close to overflow both a large number and infinity are right.
        ("x0 * 1.0", "[3e38, 1.0]", (np.inf, 1.0), False),
        ("x0 * 1.0", "[1e-40, 1.0]", (0.0, 1.0), False),
    ],
)
def test_a_result_is_judged_by_an_error_bound(
    twin: str, value: str, seen: tuple[float, ...], wrong: bool
) -> None:
    """That of its operations and inputs, not a flat tolerance."""
    observed = result(*seen)
    reference = compute_reference(program(twin, value), observed)
    assert reference is not None
    assert bool(compare_with_reference(observed, reference)) is wrong


@pytest.mark.parametrize(
    ("twins", "seen"),
    [
        (("{f}",), (1.0, 2.0)),
        (("vmap({f}, (0,), 0)",), (1.0, 2.0)),
        (("{f}", "vmap({f}, (-1,), -1)"), (1.0, 2.0)),
        (("vmap({f}, (None,), 0)",), None),
        (("",), None),
        (("{f}", ""), None),
    ],
)
def test_a_transform_may_have_a_twin(
    twins: tuple[str, ...], seen: tuple[float, ...] | None
) -> None:
    """`jit` keeps the function, `vmap` is a loop; nothing is mapped over no axis."""
    transforms = tuple(
        Transform(name="transform", code="{f}", twin=twin, types=(), results=()) for twin in twins
    )
    observed = result(1, 2)
    one = replace(program("np.square(x0) / x0", "[1.0, 2.0]"), transforms=transforms)
    reference = compute_reference(one, observed)
    assert (reference is None) is (seen is None)
    if reference is not None:
        assert compare_with_reference(observed, reference) is None
        assert compare_with_reference(result(1, 3), reference) is not None


def test_a_program_without_a_twin_has_no_reference() -> None:
    """Nor one that NumPy refuses, nor one with another shape."""
    observed = result(1, 2)
    for twin in ("", "np.no_such_function(x0)", "x0[:1]"):
        assert compute_reference(program(twin, "[1.0, 2.0]"), observed) is None


def test_a_shape_that_depends_on_roundings_has_no_reference() -> None:
    """Two numbers that are both rounded to 1 are one value or two."""
    observed = result(1)
    assert compute_reference(program("np.unique(x0)", "[1.0, 1.0]"), observed) is None


@pytest.mark.parametrize(
    ("value", "seen", "wrong"),
    [("1+1e-40j", 1.0, False), ("1e-40+1e-40j", 0.0, False), ("1+2j", 1.0, True)],
)
def test_denormal_parts_of_complex_numbers_may_be_flushed(
    value: str, seen: float, wrong: bool
) -> None:
    """The other part must still be equal."""
    observed = result(seen, seen, dtype="complex64")
    one = program("x0 * 1", f"[{value}, {value}]", dtype="complex64")
    reference = compute_reference(one, observed)
    assert reference is not None
    assert bool(compare_with_reference(observed, reference)) is wrong


@pytest.mark.parametrize("part", ["np.inf", "np.nan"])
def test_infinite_complex_numbers_have_no_reference(part: str) -> None:
    """NumPy is none for them."""
    one = program("np.square(x0)", f"[complex(0, {part})] * 2", dtype="complex64")
    assert compute_reference(one, result(0, 0, dtype="complex64")) is None


def test_numpy_does_not_warn() -> None:
    """Where the variance of nothing is asked for, it is NaN."""
    observed = result(np.nan, np.nan)
    reference = compute_reference(program("np.nanvar(x0 * np.nan) + x0", "[1.0, 2.0]"), observed)
    assert reference is not None
    assert not compare_with_reference(observed, reference)


def test_inputs_have_their_types() -> None:
    """Of every generated program, also dtypes that NumPy lacks."""
    for one in (each.program for each in generate(ProgramSpace(), 5, 40)):
        arrays = evaluate_inputs(one)
        if not one.transforms:
            assert [(array.shape, array.dtype.name) for array in arrays] == [
                (variable.type.shape, variable.type.dtype) for variable in one.body.parameters
            ]
