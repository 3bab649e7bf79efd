"""Helpers shared by the topics of this family."""

from __future__ import annotations

import jax
import numpy as np

nan, inf = np.nan, np.inf


def f32(*numbers):
    """Return numbers as a float32 array."""
    return np.array(numbers, np.float32)


def replace_nan(tree):
    """Return a pytree with -777 in place of NaN, because no case is about the sign of a NaN.

    Args:
        tree: Arrays and numbers of float types.
    """
    return jax.tree_util.tree_map(
        lambda x: np.nan_to_num(np.asarray(x), nan=-777, **KEEP_INFINITIES), tree
    )


KEEP_INFINITIES = {"posinf": inf, "neginf": -inf}
