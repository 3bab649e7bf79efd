"""How calls end that should be refused, as values that a golden can hold; for cases."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def refusal(call: Callable[[], Any], *words: str) -> str:
    """Return how a call ends: `ran`, or the class of its error and which words it says.

    Args:
        call: Function of no arguments; what it warns of is not told.
        words: What the message may say.

    Returns:
        For example `TypeError: axis, shape`.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        return f"{type(error).__name__}: {', '.join(w for w in words if w in str(error))}"
    return "ran"


def ending(f: Callable[..., Any], *args: Any, words: Sequence[str] = ()) -> str:
    """Return how a call ends: `accepted`, or the class of its error and the first word it says.

    Args:
        f: Function to call; its results are waited for.
        args: Its arguments.
        words: What the message may say, most telling first; the first that is there is kept.

    Returns:
        For example `ValueError: divisible`.
    """
    try:
        jax.block_until_ready(f(*args))
    except Exception as error:  # noqa: BLE001 - which one is the question
        said = next((word for word in words if word in str(error)), "")
        return f"{type(error).__name__}: {said}".removesuffix(": ")
    return "accepted"
