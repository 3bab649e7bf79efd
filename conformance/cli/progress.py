"""Live progress of a run: a bar with an estimate in a terminal, lines on stderr elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import click
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from conformance.cli.progress_lines import ProgressLines
from conformance.model.outcome import ExitCode, Verdict
from conformance.report.terminal import COLOURS
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from conformance.model.record import Record

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


class RunProgress(Protocol):
    """Shows the progress of a run."""

    def take(self, record: Record) -> None:
        """Show a job that ended.

        Args:
            record: Its final record.
        """

    def rerun(self, record: Record) -> None:
        """Show a job whose result is unexpected, so that it runs again.

        Args:
            record: Its record so far.
        """


@dataclass(frozen=True, slots=True)
class _ProgressBar:
    """A bar, below the results that need attention."""

    progress: Progress
    task: TaskID

    def take(self, record: Record) -> None:
        if record.verdict not in QUIET:
            self._print(record, "")
        self.progress.update(self.task, advance=1, description=record.cell)

    def rerun(self, record: Record) -> None:
        self._print(record, ", to be rerun")

    def _print(self, record: Record, more: str) -> None:
        verdict = Text(record.verdict, COLOURS[record.verdict])
        place = f" {record.case} on {record.cell}{more}"
        self.progress.console.print(verdict.append(place, "default"))


@contextmanager
def live_progress(console: Console, jobs: int, cells: int) -> Iterator[RunProgress]:
    """Show the progress of a run.

    Args:
        console: Console that shows it.
        jobs: Number of jobs.
        cells: Number of cells.

    Yields:
        The progress, to be told of each record.
    """
    console.print(f"{plural(jobs, 'job')} in {plural(cells, 'cell')}")
    if not console.is_terminal:
        with ProgressLines(jobs) as lines:
            yield lines
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
        yield _ProgressBar(progress, progress.add_task("", total=jobs))
