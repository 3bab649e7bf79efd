"""Live progress of a run: a bar with an estimate in a terminal, a few lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from conformance.model.outcome import Verdict
from conformance.report.terminal import STYLES
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from conformance.model.record import Record

INTERVAL = 10.0
"""Seconds between two lines where there is no terminal."""
QUIET = frozenset({Verdict.MATCH, Verdict.KNOWN, Verdict.DRIFTED, Verdict.EXCLUDED, Verdict.NEW})


@contextmanager
def live_progress(console: Console, jobs: int, cells: int) -> Iterator[Callable[[Record], None]]:
    """Show how a run gets on.

    Args:
        console: Where to.
        jobs: Jobs of the run.
        cells: Cells of the run.

    Yields:
        A function to call with each record that is final.
    """
    console.print(f"{plural(jobs, 'job')} in {plural(cells, 'cell')}")
    if not console.is_terminal:
        yield _Lines(console, jobs).take
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
                verdict = Text(record.verdict, STYLES[record.verdict].colour)
                progress.console.print(
                    verdict.append(f" {record.case} on {record.cell}", "default")
                )
            progress.update(task, advance=1, description=record.cell)

        yield take


class _Lines:
    """Progress for logs: a line every now and then, no control codes."""

    def __init__(self, console: Console, jobs: int) -> None:
        self._console = console
        self._jobs = jobs
        self._counts: Counter[str] = Counter()
        self._last = time.monotonic()

    def take(self, record: Record) -> None:
        self._counts[record.verdict] += 1
        now = time.monotonic()
        if now - self._last < INTERVAL:
            return
        self._last = now
        done = sum(self._counts.values())
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(self._counts.items()))
        self._console.print(f"{done}/{self._jobs}: {counts}", soft_wrap=True)
