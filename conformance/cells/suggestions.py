"""The words "did you mean" in error messages."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known names nearest to an unknown one.

    Args:
        name: What was asked for.
        known: The names there are.

    Returns:
        ` (did you mean 'a' or 'b'?)` or, when nothing is near, an empty string.
    """
    near = difflib.get_close_matches(name, list(known), n=2, cutoff=0.5)
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
