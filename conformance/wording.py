"""Parts of messages: counts (`1 job`, `1,204 jobs`) and suggestions for misspelled names."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def plural(count: int, noun: str, many: str = "") -> str:
    """Return a count with its noun, in the plural unless the count is 1.

    Args:
        count: Number of items.
        noun: The noun in the singular.
        many: Plural of the noun, where it is not the singular with an `s`.
    """
    return f"1 {noun}" if count == 1 else f"{count:,} {many or f'{noun}s'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a suggestion of the known names nearest to an unknown name.

    Args:
        name: Unknown name.
        known: Known names.

    Returns:
        ` (did you mean 'a' or 'b'?)`, empty if no name is near.
    """
    near = difflib.get_close_matches(name, list(known), n=2, cutoff=0.5)
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
