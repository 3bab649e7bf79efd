"""Programs that are exported and loaded at once, and how calls of them are refused."""

from __future__ import annotations

import re

import jax
from jax import export

from ._loading import first_words


def reloaded(fn, *args, vjp_order=0, **keywords):
    """Return a function exported for arguments, as it comes back from its bytes."""
    exported = export.export(jax.jit(fn), **keywords)(*args)
    return export.deserialize(bytearray(exported.serialize(vjp_order=vjp_order)))


def refusal(call):
    """Return how a call is refused: type and first words; `works` if it is not."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - its type is what is asked
        return f"{type(error).__name__}: {first_words(error)}"
    return "works"


def refused(call, pattern):
    """Return the type of the error of a call, and whether its message names what does not fit."""
    said = refusal(call)
    return {"error": said.partition(":")[0], "named": re.search(pattern, said) is not None}
