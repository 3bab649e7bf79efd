"""Helpers for this family: a struct, an aligned buffer, refusals, and captured output."""

from __future__ import annotations

import contextlib
import io
import warnings

import jax
import numpy as np

ROW = np.arange(3, dtype=np.float32)
"""The small input of most cases in this family."""


def struct(shape):
    """Return the declared result of a callback that returns float32."""
    return jax.ShapeDtypeStruct(shape, np.float32)


def allocate_aligned(count, offset=0):
    """Return zeros at an address that is a multiple of 64, or `offset` elements after it."""
    room = np.zeros(count + 16 + offset, np.float32)
    first = -room.ctypes.data % 64 // room.itemsize + offset
    return room[first : first + count]


def refusal(call, words):
    """Return the outcome of a call that should be refused.

    Args:
        call: Function without arguments.
        words: Text that the message should contain.

    Returns:
        `{"error": CLASS, "told": WHETHER}`, where `told` is whether the message contains the text;
        the class is `none` if the call succeeded.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.block_until_ready(call())
            jax.effects_barrier()
    except Exception as error:  # noqa: BLE001 - the class is the observation
        return {"error": type(error).__name__, "told": words in str(error)}
    return {"error": "none", "told": False}


def expect_refusal(error):
    """Return the result of `refusal` for a call that is refused as it should be."""
    return {"error": error, "told": True}


def capture_lines(call, *args):
    """Return the lines that a call prints, sorted: devices and lanes have no order."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        jax.block_until_ready(call(*args))
        jax.effects_barrier()
    return sorted(text.getvalue().splitlines())
