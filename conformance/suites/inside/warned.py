"""Warnings of tests, each told once with how often it was given."""

from __future__ import annotations

from typing import Any

from conformance.suites.inside.reports import clean
from conformance.worker.tracebacks import get_message

MOST = 100
"""Different warnings that are kept of one test."""
LONGEST = 2000
"""Characters that are kept of a message."""


class Warned:
    """Different warnings, in the order in which they were first given."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}

    def take(self, warning: Any) -> None:
        """Take a warning, as Python's `warnings` records it."""
        message = clean(get_message(warning.message))[:LONGEST]
        key = (warning.category.__name__, message, clean(f"{warning.filename}:{warning.lineno}"))
        if key in self._counts or len(self._counts) < MOST:
            self._counts[key] = self._counts.get(key, 0) + 1

    def add(self, other: Warned) -> None:
        """Take all of others, before its own."""
        own, self._counts = self._counts, dict(other._counts)
        for key, count in own.items():
            self._counts[key] = self._counts.get(key, 0) + count

    def told(self) -> list[dict[str, Any]]:
        """Return them as plain data."""
        names = ("category", "message", "where")
        return [
            {**dict(zip(names, key, strict=True)), "count": n} for key, n in self._counts.items()
        ]
