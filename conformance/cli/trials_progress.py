"""Live progress of a search: a line in a terminal, lines on stderr elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from conformance.cli.progress_lines import ProgressLines
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.status import Status

    from conformance.model.record import Record


class TrialsProgress(Protocol):
    """Shows the progress of a search, whose number of jobs depends on the results."""

    def begin(self, phase: str, total: int) -> None:
        """Show that a phase begins.

        Args:
            phase: Its name.
            total: Number of its jobs.
        """

    def take(self, record: Record) -> None:
        """Show a job that ended.

        Args:
            record: Its record.
        """


@dataclass(slots=True)
class _TrialsStatus:
    """A line that is replaced with each job."""

    status: Status
    phase: str = ""
    total: int = 0
    done: int = 0

    def begin(self, phase: str, total: int) -> None:
        self.phase, self.total, self.done = phase, total, 0
        self._update("")

    def take(self, record: Record) -> None:
        self.done += 1
        self._update(f": {record.case} on {record.cell}")

    def _update(self, last: str) -> None:
        jobs = f"{self.done:,} of {plural(self.total, 'job')}"
        self.status.update(f"{self.phase}: {jobs}{last}")


@contextmanager
def trials_progress(console: Console) -> Iterator[TrialsProgress]:
    """Show each job of a search that ended: in place in a terminal, as lines elsewhere.

    Args:
        console: Console that shows it.

    Yields:
        The progress, to be told of each phase and record.
    """
    if not console.is_terminal:
        with ProgressLines() as lines:
            yield lines
        return
    with console.status("preparing", spinner="line") as status:
        yield _TrialsStatus(status)
