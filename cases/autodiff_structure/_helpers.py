"""Helpers for this family: derivatives of functions, and descriptions of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


def floats(*values: float) -> np.ndarray:
    """Return a fresh float32 array."""
    return np.array(values, np.float32)


def slopes(fn: Callable[..., Any], *points: float) -> np.ndarray:
    """Return the derivatives of a scalar function at some points, compiled once."""
    return np.asarray(jax.jit(jax.vmap(jax.grad(fn)))(floats(*points)))


def describe_error(call: Callable[[], Any], *words: str) -> list[str]:
    """Return the type of the error that a call raises, and the given words in its message.

    Args:
        call: Function without arguments.
        words: Words to look for in the message.
    """
    try:
        call()
    except Exception as error:  # noqa: BLE001 - any error is described
        return [type(error).__name__, *[word for word in words if word in str(error)]]
    return ["ok"]


def product() -> Any:
    """Return a `custom_vjp` product whose derivatives are deliberately ten times too large."""
    f = jax.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, (x, y)), lambda c, g: (10 * g * c[1], 10 * g * c[0]))
    return f
