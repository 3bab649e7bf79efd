"""The assertions of a one-file reproduction: on the value, leaf by leaf, and on facts of the HLO.

The value is compared as `conformance.judge.values.compare_reference` does, for the kinds of leaves
that the case has. Facts are read from the text of the HLO by regular expressions; these functions
are copied into the file, so that they use the standard library alone.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.judge.tolerance import find_defaults, is_float
from conformance.model.value import CorruptValueError, dtype_of
from conformance.triage.repro.stand_ins import render_piece
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from conformance.model.value import Leaf, Value

_PYTHON_DTYPES: Final = {"float": "float64", "complex": "complex128"}
"""Dtypes that Python's own numbers are compared in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """The tolerances of a case; None is the default by dtype.

    Attributes:
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        ulp: Units in the last place by path of the leaf, instead of both.
    """

    rtol: float | None = None
    atol: float | None = None
    ulp: Mapping[str, int] = field(default_factory=dict)


def render_check(values: Iterable[Value | None], tolerances: Tolerances) -> str:
    """Return functions that compare a value with its reference.

    Args:
        values: The observed values, and the expected ones; None where there is none.
        tolerances: The tolerances of the case.

    Returns:
        `check(seen, expected)`, which raises AssertionError, and the functions it calls.
    """
    leaves = [leaf for value in values if value is not None for leaf in value.leaves]
    kinds = set(map(_classify, leaves))
    floats = {
        _PYTHON_DTYPES.get(leaf.dtype, leaf.dtype) for leaf in leaves if _classify(leaf) == "float"
    }
    # Values of float64 may be float32 when 64-bit types are off.
    wide = {"float32"} if floats & {"float64", "complex128"} else set()
    names = sorted(floats | wide) if tolerances.rtol is None else []
    return render_piece(
        "check", ulp=tolerances.ulp, rtol=tolerances.rtol, atol=tolerances.atol,
        has_text="text" in kinds,
        has_keys="key" in kinds, has_floats=bool(floats),
        tolerances=[(name, *find_defaults(dtype_of(name))) for name in names],
    )  # fmt: skip


def _classify(leaf: Leaf) -> str:
    if leaf.kind == "key":
        return "key"
    # None, strings and bytes are compared for equality.
    if leaf.kind == "python" and leaf.dtype not in {"bool", "int", "float", "complex"}:
        return "text"
    try:
        dtype = dtype_of(_PYTHON_DTYPES.get(leaf.dtype, leaf.dtype))
    except CorruptValueError:
        return "text"
    return "float" if dtype.kind == "c" or is_float(dtype) else "exact"


def summarize_value(value: Value, most: int = 3) -> Iterator[str]:
    """Yield a short line for each of the first leaves of a value.

    Args:
        value: Any value.
        most: The number of leaves shown.
    """
    for leaf in value.leaves[:most]:
        yield f"{leaf.path} = {_summarize_leaf(leaf)}"
    if len(value.leaves) > most:
        yield f"and {plural(len(value.leaves) - most, 'more leaf', 'more leaves')}"


def _summarize_leaf(leaf: Leaf) -> str:
    if leaf.kind == "python":
        return leaf.data.decode("utf-8", "replace")[:160]
    try:
        array = np.frombuffer(leaf.data, dtype_of(leaf.dtype)).reshape(leaf.shape)
    except (CorruptValueError, ValueError):
        # The header of a file is no place to fail: a damaged value is only described.
        return f"{leaf.dtype}{list(leaf.shape)}"
    text = np.array2string(array, precision=6, threshold=8, edgeitems=3, separator=", ")
    return f"{' '.join(text.split())[:160]} ({leaf.dtype}{list(leaf.shape)})"


def collectives(hlo: str) -> dict[str, int]:
    """Count collectives by kind; an asynchronous one counts once, by its start."""
    kinds = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter"
    return dict(Counter(re.findall(rf" ({kinds})(?:-start)?\(", hlo)))


def custom_calls(hlo: str) -> dict[str, int]:
    """Count custom calls by target."""
    return dict(Counter(re.findall(r'custom_call_target="([^"]*)"', hlo)))


def host_compute(hlo: str) -> bool:
    """Return whether any operation is marked to be computed on the host."""
    return '_xla_compute_type="host"' in hlo or 'execution_thread="host"' in hlo


def memory_spaces(hlo: str) -> dict[str, int]:
    """Count layouts in host memory."""
    # XLA's number for host memory.
    return dict(Counter(re.findall(r"\bS\(5\)", hlo)))


def donation(hlo: str) -> list[str]:
    """Return the outputs that may reuse the memory of a parameter."""
    alias = r"\{([\d, ]*)\}: \((\d+), \{\}, ([\w-]+)\)"
    # Only the part before the layout, which has braces and numbers of the same form.
    head = hlo.partition("\n")[0].partition("entry_computation_layout=")[0]
    found = re.findall(alias, head.partition("input_output_alias=")[2])
    return sorted(f"parameter {number} -> output [{out}] {kind}" for out, number, kind in found)


def dtypes(hlo: str) -> list[str]:
    """Return the element types."""
    return sorted(set(re.findall(r"\b(pred|bf16|[fsu]\d+|c64|c128)\[", hlo)))


READINGS: Final[Mapping[str, Callable[[str], Any]]] = {
    "collectives": collectives,
    "custom_calls": custom_calls,
    "host_compute": host_compute,
    "memory_spaces": memory_spaces,
    "donation": donation,
    "dtypes": dtypes,
}
"""Functions that read a fact from the text of an HLO, by the name of the fact."""


def normalize_claim(value: Any) -> Any:
    """Return a claim in the form of a reading: without counts of 0, and with lists for tuples."""
    if isinstance(value, dict):
        # A reading has no entry with a count of 0.
        return {name: count for name, count in value.items() if count != 0}
    return list(value) if isinstance(value, tuple) else value


def is_met(name: str, value: Any, hlo: str) -> bool:
    """Return whether an HLO text meets a claim, by the reading of its fact."""
    return bool(READINGS[name](hlo) == normalize_claim(value))


def render_reading(name: str) -> str:
    """Return the source code of a reading."""
    # The source of the function that decided `is_met`, so that the file asserts what was checked
    # here.
    return inspect.getsource(READINGS[name]).strip()
