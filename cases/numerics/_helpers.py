"""What the topics of this family share."""

from __future__ import annotations

import warnings

import jax
import numpy as np

nan, inf = np.nan, np.inf


def f32(*numbers):
    """Return numbers as float32."""
    return np.array(numbers, np.float32)


def refusal(call, *words):
    """Return how a call that should be refused ends: error class and which words it says.

    Args:
        call: Function of no arguments.
        words: What the message may say.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        return f"{type(error).__name__}: {', '.join(w for w in words if w in str(error))}"
    return "ran"


def numbered(tree):
    """Return a pytree with -777 for NaN: the sign of a NaN is nothing that anyone asked for.

    Args:
        tree: Arrays and numbers of float types.
    """
    return jax.tree_util.tree_map(lambda x: np.nan_to_num(np.asarray(x), nan=-777, **AS_IS), tree)


AS_IS = {"posinf": inf, "neginf": -inf}
