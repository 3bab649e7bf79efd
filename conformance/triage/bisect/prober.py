"""Trying a target in cells: what came of it is a record, as of any job."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from conformance.engine.input_files import has_same_inputs
from conformance.engine.job import Job
from conformance.engine.plan import why_not
from conformance.triage.programs.running import not_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import PlannedCell
    from conformance.engine.job_runner import JobRunner
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.triage.programs.running import ProgramRunner


class Prober(Protocol):
    """Tries one target in cells."""

    @property
    def hash(self) -> str:
        """Hash of what is tried, as its records have it."""
        ...

    def versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages that it has in a cell."""
        ...

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Try it in each cell, several at a time.

        Args:
            cells: The cells.
            again: Whether what is known from before does not count.

        Yields:
            A record for each cell, in any order.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseProber:
    """Tries a case.

    Attributes:
        case: The case.
        trier: Tries jobs.
        calls: How often a compiled program is called once more, for the time of a warm call.
    """

    case: Case
    trier: JobRunner
    calls: int = 0

    @property
    def hash(self) -> str:
        """Hash of what is tried, as its records have it."""
        return self.case.content_hash

    def versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages that it has in a cell."""
        return planned.versions

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Try the case in each cell; see `Prober.probe`."""
        jobs = []
        for planned in cells:
            if reason := why_not(self.case, planned):
                yield not_run(self.case.id, self.case.content_hash, planned, reason)
            else:
                jobs.append(Job(case=self.case, planned=planned, alone=again, calls=self.calls))
        for _, record in self.trier.run(jobs, again=again):
            yield record


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramProber:
    """Tries a script, a test or a command, each time in a process of its own.

    Attributes:
        runner: Runs it.
        slots: How many run at the same time.
    """

    runner: ProgramRunner
    slots: int

    @property
    def hash(self) -> str:
        """Hash of what is tried, as its records have it."""
        return self.runner.hash

    def versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages that it has in a cell."""
        return self.runner.versions(planned)

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:  # noqa: ARG002 - nothing is known from before
        """Try the program in each cell; see `Prober.probe`."""
        with ThreadPoolExecutor(self.slots) as pool:
            try:
                yield from pool.map(self.runner.run, cells)
            except BaseException:
                self.runner.stopped.set()
                raise


def known_of(prober: Prober, records: Iterable[Record], blobs: BlobStore) -> list[Record]:
    """Return the records of a log that say what a target would do again.

    Args:
        prober: Tries the target.
        records: The log.
        blobs: Where its artifacts are.

    Returns:
        Those of what is tried now: none of a program that has other options, or that read a file
        which has changed since.
    """
    return [one for one in records if one.case_hash == prober.hash and has_same_inputs(one, blobs)]
