"""Arrays that the topics of this family share, and the donation of one."""

from __future__ import annotations

import jax
import numpy as np


def floats(*values: float) -> np.ndarray:
    """Return a fresh float32 array."""
    return np.array(values, np.float32)


def donate(array):
    """Give an array away to a jitted function."""
    jax.jit(lambda x: x + 1, donate_argnums=0)(array).block_until_ready()
