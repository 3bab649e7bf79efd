"""The assertion at the end of a file of its own: a value against its reference, leaf by leaf.

It says what `conformance.judge.values.compare_reference` does, of the kinds of leaves at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from conformance.judge.tolerance import find_defaults, is_float
from conformance.model.value import CorruptValueError, dtype_of
from conformance.triage.repro.templates import render_piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.model.value import Leaf, Value

_PYTHON: Final = {"float": "float64", "complex": "complex128"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """What a case states of tolerance; None is the default by dtype.

    Attributes:
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        ulp: Units in the last place that take the place of both, by path of the leaf.
    """

    rtol: float | None = None
    atol: float | None = None
    ulp: Mapping[str, int] = field(default_factory=dict)


def check_code(values: Iterable[Value | None], stated: Tolerances) -> str:
    """Return functions that compare a value with its reference.

    Args:
        values: What was observed and what it should be, where there is a value.
        stated: What the case states of tolerance.

    Returns:
        `check(seen, expected)`, which raises AssertionError, and what it calls.
    """
    leaves = [leaf for value in values if value is not None for leaf in value.leaves]
    kinds = set(map(_kind, leaves))
    floats = {_PYTHON.get(leaf.dtype, leaf.dtype) for leaf in leaves if _kind(leaf) == "float"}
    wide = {"float32"} if floats & {"float64", "complex128"} else set()
    names = sorted(floats | wide) if stated.rtol is None else []
    return render_piece(
        "check", ulp=stated.ulp, rtol=stated.rtol, atol=stated.atol, has_text="text" in kinds,
        has_keys="key" in kinds, has_floats=bool(floats),
        tolerances=[(name, *find_defaults(dtype_of(name))) for name in names],
    )  # fmt: skip


def _kind(leaf: Leaf) -> str:
    if leaf.kind == "key":
        return "key"
    if leaf.kind == "python" and leaf.dtype not in {"bool", "int", "float", "complex"}:
        return "text"
    try:
        dtype = dtype_of(_PYTHON.get(leaf.dtype, leaf.dtype))
    except CorruptValueError:
        return "text"
    return "float" if dtype.kind == "c" or is_float(dtype) else "exact"


def shortened(value: Value, most: int = 3) -> Iterator[str]:
    """Yield a line for each of the first leaves of a value, in few characters.

    Args:
        value: Any value.
        most: Leaves to tell of.
    """
    for leaf in value.leaves[:most]:
        yield f"{leaf.path} = {_told(leaf)}"
    if len(value.leaves) > most:
        yield f"and {len(value.leaves) - most} leaves more"


def _told(leaf: Leaf) -> str:
    if leaf.kind == "python":
        return leaf.data.decode("utf-8", "replace")[:160]
    try:
        array = np.frombuffer(leaf.data, dtype_of(leaf.dtype)).reshape(leaf.shape)
    except (CorruptValueError, ValueError):
        return f"{leaf.dtype}{list(leaf.shape)}"
    text = np.array2string(array, precision=6, threshold=8, edgeitems=3, separator=", ")
    return f"{' '.join(text.split())[:160]} ({leaf.dtype}{list(leaf.shape)})"
