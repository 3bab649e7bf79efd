"""Errors of `checkify`, and outcomes of calls under a debugging option, as values for goldens."""

from __future__ import annotations

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify


def positive_log(x):
    """Return the logarithm of a number, after a check that it is positive."""
    checkify.check(x > 0, "x is {x}", x=x)
    return jnp.log(x)


def message(error):
    """Return the message of a `checkify` error without the suffix `check` failed; or `none`."""
    return (error.get() or "none").replace(" (`check` failed)", "").strip()


def checked(f, *args, errors=checkify.user_checks):
    """Return the message of the error and the result of a function, checked under jit.

    Args:
        f: Function to check.
        args: Arguments of the function.
        errors: Set of checks to make.
    """
    error, result = jax.jit(checkify.checkify(f, errors=errors))(*args)
    return message(error), result


def call_outcome(call, words=()):
    """Return `ran`, or the class of the error and the words that its message contains.

    Args:
        call: Function without arguments; its result is awaited.
        words: Words to search in the message.
    """
    try:
        jax.block_until_ready(call())
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        found = [word for word in words if word in str(error)]
        return ": ".join([type(error).__name__, *found])
    return "ran"


def printed(f, *args):
    """Return the lines that a function prints, under jit.

    Args:
        f: Function to compile and call.
        args: Arguments of the function.
    """
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        jax.block_until_ready(jax.jit(f)(*args))
        jax.effects_barrier()  # callbacks run asynchronously
    return stream.getvalue().splitlines()


def floats(*values):
    """Return a float32 array; for one value without axes."""
    return np.float32(values) if len(values) > 1 else np.float32(values[0])
