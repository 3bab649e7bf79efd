"""Helpers for this family: export and load in one step, and descriptions of refused calls."""

from __future__ import annotations

import re

import jax
from jax import export

from ._loading import get_first_words


def export_and_load(fn, *args, vjp_order=0, **keywords):
    """Export a function for arguments, and return the export that is read back from its bytes."""
    exported = export.export(jax.jit(fn), **keywords)(*args)
    return export.deserialize(bytearray(exported.serialize(vjp_order=vjp_order)))


def describe_refusal(call):
    """Return the outcome of a call: the type and first words of its error, or `works`."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        return f"{type(error).__name__}: {get_first_words(error)}"
    return "works"


def check_refusal(call, pattern):
    """Return the type of the error of a call, and whether its message matches a pattern."""
    outcome = describe_refusal(call)
    return {"error": outcome.partition(":")[0], "named": re.search(pattern, outcome) is not None}
