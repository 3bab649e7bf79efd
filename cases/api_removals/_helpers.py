"""Helpers for this family: names that may be missing, and descriptions of refused calls."""

from __future__ import annotations

import contextlib
import importlib
import warnings

import numpy as np

ROWS = np.arange(6, dtype=np.float32)
"""A small input, which most cases use."""


@contextlib.contextmanager
def ignore_warnings():
    """Ignore warnings: the cases observe the result of a call, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def resolve_name(path):
    """Return the object with a dotted name.

    Args:
        path: `module:attribute.attribute`; without attributes the module itself.

    Raises:
        ImportError: If the module is missing.
        AttributeError: If the attribute is missing.
    """
    module, _, attributes = path.partition(":")
    value = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        value = getattr(value, attribute)
    return value


def resolve_without_warnings(path):
    """Return the object with a dotted name like `resolve_name`, and ignore its warnings."""
    with ignore_warnings():
        return resolve_name(path)


def describe_refusal(call, words):
    """Return the outcome of a call that should be refused.

    Args:
        call: Function without arguments.
        words: Words to search in the message.

    Returns:
        `{"error": CLASS, "told": WHETHER}`: the class of the error, or `none` if the call
        succeeded, and whether the message contains the words.
    """
    try:
        with ignore_warnings():
            call()
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        return {"error": type(error).__name__, "told": words in str(error)}
    return {"error": "none", "told": False}


def expect_refusal(error):
    """Return the value of `describe_refusal` for a call that is refused as expected."""
    return {"error": error, "told": True}
