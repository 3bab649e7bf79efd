"""What the topics of this family share: a struct, an aligned buffer, and how a call is refused."""

from __future__ import annotations

import contextlib
import io
import warnings

import jax
import numpy as np

ROW = np.arange(3, dtype=np.float32)
"""The small input of most cases here."""


def struct(shape):
    """Return what a callback that returns float32 is declared to give."""
    return jax.ShapeDtypeStruct(shape, np.float32)


def aligned(count, offset=0):
    """Return zeros whose address is a multiple of 64, or that and `offset` elements."""
    room = np.zeros(count + 16 + offset, np.float32)
    first = -room.ctypes.data % 64 // room.itemsize + offset
    return room[first : first + count]


def refusal(call, words):
    """Return how a call that should be refused ends.

    Args:
        call: Function of no arguments.
        words: What the message should hold.

    Returns:
        `{"error": CLASS, "told": WHETHER}`; the class is `none` if the call went through.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.block_until_ready(call())
            jax.effects_barrier()
    except Exception as error:  # noqa: BLE001 - which one it is, is the question
        return {"error": type(error).__name__, "told": words in str(error)}
    return {"error": "none", "told": False}


def refused(error):
    """Return what `refusal` returns of a call that is refused as it should be."""
    return {"error": error, "told": True}


def printed(call, *args):
    """Return the lines that a call prints, sorted: devices and lanes have no order."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        jax.block_until_ready(call(*args))
        jax.effects_barrier()
    return sorted(text.getvalue().splitlines())
