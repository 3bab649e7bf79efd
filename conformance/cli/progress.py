"""Live progress of a run: a bar with an estimate in a terminal, lines on stderr elsewhere."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

import click
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from conformance.model.outcome import ExitCode, Verdict
from conformance.report.terminal import COLOURS
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from rich.console import Console

    from conformance.model.record import Record

INTERVAL = 30.0
"""Seconds after which a line is printed without a terminal."""
LEAST = 10.0
"""Minimum of seconds between two lines; a shorter run prints none."""
TENTHS = 10
# Verdicts that need no attention; the others are printed above the bar at once.
QUIET = frozenset({Verdict.MATCH, Verdict.KNOWN, Verdict.DRIFTED, Verdict.EXCLUDED, Verdict.NEW})


@contextmanager
def explain_interrupt(remedy: str) -> Iterator[None]:
    """End an interrupted command with the status of an interrupt and a remedy.

    Args:
        remedy: Advice on how to continue, for the message.
    """
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"conformance: interrupted; {remedy}", err=True)
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None


@contextmanager
def live_progress(console: Console, jobs: int, cells: int) -> Iterator[Callable[[Record], None]]:
    """Show the progress of a run.

    Args:
        console: Console that shows it.
        jobs: Number of jobs.
        cells: Number of cells.

    Yields:
        A function to call with each final record.
    """
    console.print(f"{plural(jobs, 'job')} in {plural(cells, 'cell')}")
    if not console.is_terminal:
        with ProgressLines(jobs) as lines:
            yield lines.take
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("eta"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=jobs)

        def take(record: Record) -> None:
            if record.verdict not in QUIET:
                verdict = Text(record.verdict, COLOURS[record.verdict])
                progress.console.print(
                    verdict.append(f" {record.case} on {record.cell}", "default")
                )
            progress.update(task, advance=1, description=record.cell)

        yield take


@contextmanager
def trials_progress(console: Console) -> Iterator[Callable[[Record], None]]:
    """Show each job of a search that ended: in place in a terminal, as lines elsewhere.

    Args:
        console: Console that shows it.

    Yields:
        A function to call with each record.
    """
    with console.status("trying both ends", spinner="line") as status:
        if not console.is_terminal:
            # Without a total: how many releases in between are tried depends on the results.
            with ProgressLines() as lines:
                yield lines.take
            return
        jobs = count(1)
        yield lambda record: status.update(
            f"{plural(next(jobs), 'job')}: {record.case} on {record.cell}"
        )


class ProgressLines:
    """Progress for logs, on standard error: a line at each tenth, or after half a minute.

    In a `with` block, a line also appears after half a minute in which no job ends, e.g. while
    environments are created.

    Args:
        total: Number of jobs, 0 if it is unknown.
    """

    def __init__(self, total: int = 0) -> None:
        self._total = total
        self._counts: Counter[str] = Counter()
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

    def take(self, record: Record) -> None:
        """Count a job, and print a line if it is time for one.

        Args:
            record: The job.
        """
        with self._lock:
            self._counts[record.verdict] += 1
            done, since = self._counts.total(), time.monotonic() - self._last
            tenth = bool(self._total) and (done - self._printed) * TENTHS >= self._total
            if since >= INTERVAL or (tenth and since >= LEAST):
                self._print()

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
        click.echo(f"{jobs} done{': ' if counts else ''}{counts}", err=True)
