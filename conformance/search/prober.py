"""Probers, which try a target in cells; each trial is recorded like any other job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from conformance.engine.input_files import has_same_inputs
from conformance.engine.job import Job
from conformance.engine.plan import find_exclusion_reason
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import PlannedCell
    from conformance.engine.job_runner import JobRunner
    from conformance.model.case import Case


class Prober(Protocol):
    """Tries one target in cells."""

    @property
    def hash(self) -> str:
        """Hash of the target, as in its records."""
        ...

    def versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages that the target has in a cell."""
        ...

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Try the target in each cell, several at a time.

        Args:
            cells: The cells.
            again: Whether cached results do not count.

        Yields:
            A record for each cell, in any order.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseProber:
    """A prober of a case.

    Attributes:
        case: The case that is tried.
        runner: Runs jobs.
        calls: How often a compiled program is called again, for the time of a warm call.
    """

    case: Case
    runner: JobRunner
    calls: int = 0

    @property
    def hash(self) -> str:
        """Hash of the target, as in its records."""
        return self.case.content_hash

    def versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages that the target has in a cell."""
        return planned.versions

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Try the case in each cell; see `Prober.probe`."""
        jobs = []
        for planned in cells:
            if reason := find_exclusion_reason(self.case, planned):
                yield make_unrun_record(self.case.id, self.case.content_hash, planned, reason)
            else:
                jobs.append(Job(case=self.case, planned=planned, alone=again, calls=self.calls))
        for _, record in self.runner.run(jobs, again=again):
            yield record


def select_known_records(
    prober: Prober, records: Iterable[Record], blobs: BlobStore
) -> list[Record]:
    """Return the records of a log that a target would repeat.

    Args:
        prober: Tries the target.
        records: The log.
        blobs: Where its artifacts are.

    Returns:
        Those of the current target: none of a program that has other options, or that read a file
        which has changed since.
    """
    own = (record for record in records if record.case_hash == prober.hash)
    return [record for record in own if has_same_inputs(record, blobs)]


def make_unrun_record(
    name: str, code: str, planned: PlannedCell, reason: str, outcome: Outcome = Outcome.UNSUPPORTED
) -> Record:
    """Return the record of a target that a cell cannot run, or could not.

    Args:
        name: The name of the target.
        code: Its hash.
        planned: The cell.
        reason: Why.
        outcome: `UNSUPPORTED` by nature, or `INFRA` for a fault of the host.
    """
    kind = str(outcome)
    error = ErrorInfo(type=kind, message=reason, signature=f"{kind}: {reason}", where="")
    return Record(
        case=name, cell=planned.cell.id, case_hash=code, cell_hash=planned.cell_hash,
        outcome=outcome, stage=Stage.PROVISION, error=error,
    )  # fmt: skip
