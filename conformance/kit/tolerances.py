"""Default tolerances by dtype, of laws in cells and of judgements outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

DEFAULTS = {
    "float64": (1e-12, 1e-14),
    "float32": (2e-5, 2e-6),
    "float16": (8e-3, 2e-3),
    "bfloat16": (1.6e-2, 8e-3),
}
"""Relative tolerance, and absolute tolerance as a fraction of the largest magnitude of a leaf."""


def find_defaults(
    dtype: np.dtype[Any], finfo: Callable[[np.dtype[Any]], Any]
) -> tuple[float, float]:
    """Return the entry of `DEFAULTS` for a floating or complex dtype.

    Args:
        dtype: The dtype.
        finfo: Returns the limits of a dtype that has no entry: of 8 bits or fewer, of which new
            ones appear with releases of ml_dtypes.
    """
    name = f"float{4 * dtype.itemsize}" if dtype.kind == "c" else dtype.name
    if name in DEFAULTS:
        return DEFAULTS[name]
    eps = float(finfo(dtype).eps)
    return eps, eps / 2
