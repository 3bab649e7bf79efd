"""Default tolerances by dtype, of laws in cells and of judgements outside."""

from __future__ import annotations

DEFAULTS = {
    "float64": (1e-12, 1e-14),
    "float32": (2e-5, 2e-6),
    "float16": (8e-3, 2e-3),
    "bfloat16": (1.6e-2, 8e-3),
}
"""Relative tolerance, and absolute tolerance as a fraction of the largest magnitude of a leaf."""
