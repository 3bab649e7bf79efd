"""Counts in sentences: `1 job`, `1,204 jobs`."""

from __future__ import annotations


def plural(count: int, noun: str, many: str = "") -> str:
    """Return a count with its noun, in the plural unless the count is one.

    Args:
        count: How many there are.
        noun: The noun in the singular.
        many: Its plural, where that is not the singular with an `s`.
    """
    return f"1 {noun}" if count == 1 else f"{count:,} {many or f'{noun}s'}"
