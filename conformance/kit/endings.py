"""Outcomes of calls that should fail, as values for goldens; for cases."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def refusal(call: Callable[[], Any], *words: str) -> str:
    """Return the outcome of a call: `ran`, or the class of its error and the words in its message.

    Args:
        call: Function without arguments; its warnings are ignored.
        words: Words to search in the message.

    Returns:
        For example `TypeError: axis, shape`.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except Exception as error:  # any error is an outcome
        return f"{type(error).__name__}: {', '.join(w for w in words if w in str(error))}"
    return "ran"


def ending(f: Callable[..., Any], *args: Any, words: Sequence[str] = ()) -> str:
    """Return the outcome of a call: `accepted`, or its error and a word of the message.

    Args:
        f: Function to call; its results are awaited.
        args: Arguments of the function.
        words: Words to search in the message, the most specific first.

    Returns:
        For example `ValueError: divisible`.
    """
    try:
        jax.block_until_ready(f(*args))
    except Exception as error:  # any error is an outcome
        found = next((word for word in words if word in str(error)), "")
        return f"{type(error).__name__}: {found}".removesuffix(": ")
    return "accepted"
