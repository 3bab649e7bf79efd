"""Progress of a run in lines on standard error, where there is no terminal."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import click

from conformance.wording import plural

if TYPE_CHECKING:
    from typing import Self

    from conformance.model.record import Record

INTERVAL = 30.0
"""Seconds after which a line is printed without a terminal."""
LEAST = 10.0
"""Minimum of seconds between two lines; a shorter run prints none."""
TENTHS = 10


class ProgressLines:
    """Progress for logs, on standard error: a line at each tenth, or after half a minute.

    In a `with` block, a line also appears after half a minute in which no job ends, e.g. while
    environments are created.

    Args:
        total: Number of jobs, 0 until a phase begins.
    """

    def __init__(self, total: int = 0) -> None:
        self._phase = ""
        self._total = total
        self._counts: Counter[str] = Counter()
        self._rerun: set[tuple[str, str]] = set()
        self._printed = 0
        self._last = time.monotonic()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._print_periodically, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def begin(self, phase: str, total: int) -> None:
        """Begin a phase, whose jobs are counted from zero.

        Args:
            phase: Its name.
            total: Number of its jobs.
        """
        with self._lock:
            self._phase, self._total, self._printed = f"{phase}: ", total, 0
            self._counts.clear()

    def take(self, record: Record) -> None:
        """Count a job, and print a line if it is time for one.

        Args:
            record: The job.
        """
        with self._lock:
            self._counts[record.verdict] += 1
            self._rerun.discard((record.case, record.cell))
            done, since = self._counts.total(), time.monotonic() - self._last
            tenth = bool(self._total) and (done - self._printed) * TENTHS >= self._total
            if since >= INTERVAL or (tenth and since >= LEAST):
                self._print()

    def rerun(self, record: Record) -> None:
        """Count a job that is not over: its result is unexpected, so that it runs again.

        Args:
            record: The job.
        """
        with self._lock:
            self._rerun.add((record.case, record.cell))

    def _print_periodically(self) -> None:
        # Polled each second, so that the end of the block does not wait for half a minute.
        while not self._over.wait(min(INTERVAL, 1.0)):
            with self._lock:
                if time.monotonic() - self._last >= INTERVAL:
                    self._print()

    def _print(self) -> None:
        done = self._counts.total()
        self._last, self._printed = time.monotonic(), done
        counts = ", ".join(
            f"{count:,} {verdict}" for verdict, count in sorted(self._counts.items())
        )
        jobs = f"{done:,} of {plural(self._total, 'job')}" if self._total else plural(done, "job")
        again = f"; {len(self._rerun):,} unexpected, to be rerun" if self._rerun else ""
        click.echo(f"{self._phase}{jobs} done{': ' if counts else ''}{counts}{again}", err=True)
