"""The circuit breaker of the shared cache: it bounds the time that a dead cache costs."""

from __future__ import annotations

import logging
import threading
from typing import Final

_LOG: Final = logging.getLogger("conformance.cache")
CONCURRENCY: Final = 48
"""Requests at the same time: a bucket answers each in 20 to 50 ms."""
PATIENCE: Final = 3.0
"""Seconds without a byte after which a request fails."""
WASTE: Final = 4.0
"""Seconds spent on failing requests after which the cache is not used any more. The requests that
exceed it take `PATIENCE` at most, which makes 7 s; an upload at the end may cost as much as one
request more."""
MOST_FAILURES: Final = 2 * CONCURRENCY
"""Consecutive failures after which the cache is not used any more, however fast they are. More than
the requests of one moment, in which a loaded server may answer none in time."""


class CircuitBreaker:
    """Opens after too many failures, and stays open for the life of the process.

    A run of a command is short: closing it again on trial, as services do, would make each trial
    cost as much as the first, and the sum has to be bounded.

    Args:
        name: Name of the cache, for the note.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self.reason = ""
        """Why it is open, empty while it is closed."""
        self._wasted = 0.0
        self._failures = 0
        self._last_success = self._last_time = 0.0
        self.last_failure = ""
        """Why the last failed request failed, empty if none has failed."""

    @property
    def is_open(self) -> bool:
        """Whether requests are skipped."""
        return bool(self.reason)

    def report_success(self, now: float) -> None:
        """Count a request that was answered, also by `not found`.

        Args:
            now: Time of the answer, in seconds of a monotonic clock.
        """
        with self._lock:
            self._failures = 0
            self._last_success = now

    def report_failure(self, reason: str, start: float, now: float) -> None:
        """Count a request that failed.

        Args:
            reason: The error, in a few words.
            start: Time at which the request began.
            now: Time at which it failed.
        """
        with self._lock:
            self._failures += 1
            self.last_failure = reason
            if self._last_success > start:
                # Others were answered meanwhile: the caller has not waited for this one alone.
                self._wasted += (now - start) / CONCURRENCY
            else:
                # Requests that failed at the same time have cost the caller this time once.
                self._wasted += max(0.0, now - max(start, self._last_time))
            self._last_time = max(now, self._last_time)
            is_dead = self._wasted >= WASTE or self._failures >= MOST_FAILURES
        if is_dead:
            self.open(reason)

    def open(self, reason: str) -> None:
        """Skip all further requests.

        Args:
            reason: The error, in a few words.
        """
        with self._lock:
            is_new = not self.reason
            self.reason = self.reason or reason
        if is_new:
            _LOG.warning("note: shared cache %s: not used any more: %s", self._name, reason)
