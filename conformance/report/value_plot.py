"""Plots of the differences of two arrays, in a few numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.judge.tolerance import compute_ulp_distance, is_float, split_complex
from conformance.model.value import to_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conformance.model.value import Leaf, Value

BINS: Final = 64
"""Columns of a plot: elements beyond share one."""
_NUMBERS: Final = "biufcV"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePlot:
    """How far the elements of one leaf lie apart, in flat order.

    Attributes:
        path: Path of the leaf.
        shape: Its shape.
        unit: `ulp`, or `absolute` where there are none.
        heights: The largest distance in each column; infinite where one side is no number.
        differing: Elements that differ.
        size: Elements there are.
    """

    path: str
    shape: tuple[int, ...]
    unit: str
    heights: tuple[float, ...]
    differing: int
    size: int

    @property
    def largest(self) -> float:
        """The largest distance, infinite where one side is no number."""
        return max(self.heights)

    @property
    def bars(self) -> tuple[float, ...]:
        """Heights between 0 and 1, on a logarithmic scale: one ULP is seen beside a million."""
        top = max((h for h in self.heights if math.isfinite(h)), default=0.0)
        scale = math.log1p(top) or 1.0
        return tuple(math.log1p(h) / scale if math.isfinite(h) else 1.0 for h in self.heights)


def make_value_plots(before: Value, after: Value) -> tuple[ValuePlot, ...]:
    """Return a plot of each leaf of numbers that differs and can be set against the other.

    Args:
        before: The one.
        after: The other; leaves are matched by path.
    """
    old = {leaf.path: leaf for leaf in before.leaves}
    pairs = ((old[leaf.path], leaf) for leaf in after.leaves if leaf.path in old)
    plots = (_plot(one, other) for one, other in pairs if one.data != other.data)
    return tuple(plot for plot in plots if plot is not None)


def _plot(before: Leaf, after: Leaf) -> ValuePlot | None:
    if (before.kind, before.shape, before.dtype) != (after.kind, after.shape, after.dtype):
        return None
    if before.kind == "python":
        return None
    one, other = to_array(before), to_array(after)
    if one.size < 2 or one.dtype.kind not in _NUMBERS:  # noqa: PLR2004 - one bar says nothing
        return None
    inexact = one.dtype.kind == "c" or is_float(one.dtype)
    far = _ulps(one, other) if inexact else np.abs(one.astype(float) - other.astype(float))
    flat = far.reshape(-1)
    return ValuePlot(
        path=after.path,
        shape=after.shape,
        unit="ulp" if inexact else "absolute",
        heights=tuple(float(np.max(part)) for part in np.array_split(flat, min(BINS, flat.size))),
        differing=int((flat > 0).sum()),
        size=int(flat.size),
    )


def _ulps(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """Return the distance of each element; of a complex one that of its worse part."""
    found = compute_ulp_distance(split_complex(one), split_complex(other)).astype(np.float64)
    return found.max(axis=-1) if found.ndim > one.ndim else found
