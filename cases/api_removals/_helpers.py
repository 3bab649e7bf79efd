"""What the topics of this family share: a name that may be gone, and how a call is refused."""

from __future__ import annotations

import contextlib
import importlib
import warnings

import numpy as np

ROWS = np.arange(6, dtype=np.float32)
"""The small input of most cases here."""


@contextlib.contextmanager
def quiet():
    """Hide warnings: what is looked at is what a call returns, or what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def named(path):
    """Return what a dotted name stands for.

    Args:
        path: `module:attribute.attribute`; the attribute may be left out.

    Raises:
        ImportError: If the module is gone.
        AttributeError: If the attribute is gone.
    """
    module, _, attributes = path.partition(":")
    value = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        value = getattr(value, attribute)
    return value


def found(path):
    """Return what a dotted name stands for as `named` does, without its deprecation warnings."""
    with quiet():
        return named(path)


def refusal(call, words):
    """Return how a call that should be refused ends.

    Args:
        call: Function of no arguments.
        words: What the message should hold.

    Returns:
        `{"error": CLASS, "told": WHETHER}`; the class is `none` if the call went through.
    """
    try:
        with quiet():
            call()
    except Exception as error:  # noqa: BLE001 - which one it is, is the question
        return {"error": type(error).__name__, "told": words in str(error)}
    return {"error": "none", "told": False}


def refused(error):
    """Return what `refusal` returns of a call that is refused as it should be."""
    return {"error": error, "told": True}
