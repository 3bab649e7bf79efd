"""What the topics of this family share."""

from __future__ import annotations

import jax
import numpy as np

nan, inf = np.nan, np.inf


def f32(*numbers):
    """Return numbers as float32."""
    return np.array(numbers, np.float32)


def numbered(tree):
    """Return a pytree with -777 for NaN: the sign of a NaN is nothing that anyone asked for.

    Args:
        tree: Arrays and numbers of float types.
    """
    return jax.tree_util.tree_map(lambda x: np.nan_to_num(np.asarray(x), nan=-777, **AS_IS), tree)


AS_IS = {"posinf": inf, "neginf": -inf}
