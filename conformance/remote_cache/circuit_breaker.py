"""The circuit breaker of the shared cache: it bounds the time that a dead cache costs."""

from __future__ import annotations

import logging
from typing import Final

_LOG: Final = logging.getLogger("conformance.cache")
PATIENCE: Final = 3.0
"""Seconds without a byte after which a request fails."""
WASTE: Final = 4.0
"""Seconds spent on failing requests after which the cache is not asked any more. A last request
may take `PATIENCE` more, and the upload at the end as long again: 10 s at most."""
MOST_FAILURES: Final = 16
"""Consecutive failures after which the cache is not asked any more, however fast they fail."""


class CircuitBreaker:
    """Opens after too many failures, and stays open for the life of the process.

    A run of a command is short: closing it again on trial, as services do, would make each trial
    cost as much as the first, and the sum has to be bounded.

    Args:
        name: Name of the cache, for the note.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.reason = ""
        """Why it is open, empty while it is closed."""
        self._wasted = 0.0
        self._failures = 0

    @property
    def is_open(self) -> bool:
        """Whether requests are skipped."""
        return bool(self.reason)

    def report_success(self) -> None:
        """Count a request that was answered, also by `not found`."""
        self._failures = 0

    def report_failure(self, reason: str, seconds: float, running: int) -> None:
        """Count a request that failed.

        Args:
            reason: The error, in a few words.
            seconds: Seconds that it took.
            running: Requests at the same time, which waited together.
        """
        self._failures += 1
        # Of requests that waited at the same time, the caller has waited for one.
        self._wasted += seconds / max(running, 1)
        if self._wasted >= WASTE or self._failures >= MOST_FAILURES:
            self.open(reason)

    def open(self, reason: str) -> None:
        """Skip all further requests.

        Args:
            reason: The error, in a few words.
        """
        if not self.reason:
            self.reason = reason
            _LOG.warning("note: shared cache %s: not used any more: %s", self._name, reason)
