"""The reference of a program by NumPy in float64, with an error bound from perturbed runs."""

from __future__ import annotations

import math
import types
import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.fuzz.array_type import find_numpy_dtype, get_kind, get_limits
from conformance.fuzz.comparison import Bound, bound_elements

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from conformance.fuzz.batches import ProgramResult
    from conformance.fuzz.program import FuzzProgram

RUNS: Final = 6
"""Runs with perturbed results of steps, in addition to the one without."""


def evaluate_inputs(program: FuzzProgram) -> list[NDArray[Any]]:
    """Return the inputs of a program, in its dtypes."""
    spelled = types.SimpleNamespace(dtype=find_numpy_dtype)
    with np.errstate(all="ignore"):
        return [eval(text, {"np": np, "jnp": spelled}) for text in program.inputs]  # noqa: S307


def compute_reference(program: FuzzProgram, like: ProgramResult) -> tuple[Bound, ...] | None:
    """Return the reference of each result with its error bound, None if there is none.

    Args:
        program: A program.
        like: Its result in a cell, for the dtypes.
    """
    source = program.render_twin()
    if not source:
        return None
    inputs = [_widen(array) for array in evaluate_inputs(program)]
    # NumPy itself does not agree with C99 on all complex numbers with infinite parts or NaN.
    if any(array.dtype.kind == "c" and not np.isfinite(array).all() for array in inputs):
        return None
    try:
        with warnings.catch_warnings():
            # NumPy warns of what programs do on purpose, e.g. the variance of nothing.
            warnings.simplefilter("ignore")
            runs = [_run(source, inputs, program.dtypes, seed) for seed in range(RUNS + 1)]
    except Exception:  # noqa: BLE001 - NumPy refuses what jax may accept
        return None
    if any(len(run) != len(like.leaves) for run in runs):
        return None
    bounds = []
    for number, leaf in enumerate(like.leaves):
        arrays = [np.asarray(run[number]) for run in runs]
        # How many different values there are can depend on roundings.
        if any(array.shape != leaf.shape for array in arrays):
            return None
        bounds.append(bound_elements(arrays, dtype=leaf.dtype))
    return tuple(bounds)


def _widen(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    kind = get_kind(array.dtype.name)
    return array.astype(np.float64) if kind == "float" else array


def _run(
    source: str, inputs: list[NDArray[Any]], dtypes: dict[str, str], seed: int
) -> list[NDArray[Any]]:
    names: dict[str, Any] = {"perturb": _make_perturbation(dtypes, seed)}
    with np.errstate(all="ignore"):
        exec(source, names)  # noqa: S102 - rendered from the tables of this package
        results = names["reference"](*inputs)
    return list(results) if isinstance(results, tuple) else [results]


def _flush(value: Any, smallest: float) -> Any:
    """Return a value with zeros in place of denormal numbers, also of denormal parts."""
    if np.iscomplexobj(value):
        flushed = np.array(value)
        flushed.real, flushed.imag = (
            _flush(np.real(value), smallest),
            _flush(flushed.imag, smallest),
        )
        return flushed
    return np.where(np.abs(value) < smallest, 0.0, value)


def _make_perturbation(dtypes: dict[str, str], seed: int) -> Callable[[Any, int, bool], Any]:
    def perturb(value: Any, number: int, normwise: bool) -> Any:
        dtype = dtypes[str(number)]
        if not seed or get_kind(dtype) not in {"float", "complex"}:
            return value
        limits = get_limits(dtype)
        noise = np.random.RandomState(1000 * seed + number).uniform(-1, 1, np.shape(value))
        error = limits.epsilon * noise
        if normwise:
            size = np.abs(value)
            error_of_all = error * np.max(size, where=np.isfinite(size), initial=0.0)
            value = value * (1 + error) + error_of_all
        else:
            value = value * (1 + error)
        if seed % 2:
            # What overflows when it is squared within an operation may be infinite, a denormal
            # number zero. Which part of a complex number is infinite is not known.
            large = np.nan if np.iscomplexobj(value) else np.inf
            value = np.where(np.abs(value) > math.sqrt(limits.largest), large, value)
            value = _flush(value, limits.smallest_normal)
        return value

    return perturb
