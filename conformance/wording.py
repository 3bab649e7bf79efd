"""Words of messages: counts (`1 job`, `1,204 jobs`), and hints at names that were meant."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def plural(count: int, noun: str, many: str = "") -> str:
    """Return a count with its noun, in the plural unless the count is one.

    Args:
        count: How many there are.
        noun: The noun in the singular.
        many: Its plural, where that is not the singular with an `s`.
    """
    return f"1 {noun}" if count == 1 else f"{count:,} {many or f'{noun}s'}"


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
