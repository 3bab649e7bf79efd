"""Arrays that the topics of this family share."""

from __future__ import annotations

import numpy as np


def floats(*values: float) -> np.ndarray:
    """Return a fresh float32 array."""
    return np.array(values, np.float32)
