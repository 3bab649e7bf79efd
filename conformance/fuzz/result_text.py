"""Results of programs as short text, for tables of releases. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from conformance.fuzz.comparison import to_array
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from conformance.fuzz.batches import ProgramResult
    from conformance.model.value import Leaf

LONGEST: Final = 240
"""Characters of a result."""
SHOWN: Final = 16
"""Elements of an array up to which all are shown."""


def render_result(result: ProgramResult) -> str:
    """Return a result or an error in a line of at most `LONGEST` characters.

    Args:
        result: Result of a program in one mode.
    """
    if result.outcome is Outcome.OK:
        text = ", ".join(map(render_leaf, result.leaves)) or "no result"
    elif result.error and result.outcome is Outcome.RAISED:
        first, _, _ = result.message.partition("\n")
        text = f"{result.error}: {first}"
    else:
        text = str(result.outcome).replace("_", " ")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def render_leaf(leaf: Leaf) -> str:
    """Return a leaf of a result: dtype and shape, elements, and its sharding if there is one.

    Args:
        leaf: The leaf.
    """
    if leaf.kind in {"python", "key"}:
        return leaf.data.decode("utf-8", "replace") if leaf.kind == "python" else leaf.dtype
    array = to_array(leaf)
    # NumPy prints no element of the floats that it lacks.
    shown = array.astype(np.float32) if array.dtype.kind == "V" else array
    elements = np.array2string(
        shown, precision=7, threshold=SHOWN, edgeitems=3, separator=", ", max_line_width=10**6
    )
    weak = "weak " if leaf.weak_type else ""
    shape = f"[{','.join(map(str, leaf.shape))}]" if leaf.shape else ""
    placed = f" on {leaf.sharding}" if leaf.sharding not in {"", "single"} else ""
    return f"{weak}{leaf.dtype}{shape} {' '.join(elements.split())}{placed}"
