"""Probers: they try a target in cells, and record each trial like any other job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from conformance.engine.input_files import has_same_inputs
from conformance.engine.job import Job
from conformance.engine.plan import find_exclusion_reason
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import PlannedCell
    from conformance.engine.job_runner import JobRunner
    from conformance.model.case import Case


class Prober(Protocol):
    """A way to try a target in cells."""

    @property
    def hash(self) -> str:
        """Hash of the target, as in the records of its trials."""
        ...

    def get_versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages of the target in a cell."""
        ...

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Try the target in each cell, several at a time.

        Args:
            cells: The cells.
            again: Whether to ignore cached results.

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
        measure: How to measure it instead of observing it, None to observe it.
    """

    case: Case
    runner: JobRunner
    measure: Mapping[str, Any] | None = None

    @property
    def hash(self) -> str:
        """Hash of the target, as in the records of its trials."""
        return self.case.content_hash

    def get_versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages of the target in a cell."""
        return planned.versions

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Try the case in each cell; see `Prober.probe`."""
        jobs = []
        for planned in cells:
            if reason := find_exclusion_reason(self.case, planned):
                yield make_unrun_record(self.case.id, self.case.content_hash, planned, reason)
            else:
                # A second trial runs alone in its process: jobs of one process may influence each
                # other.
                jobs.append(Job(case=self.case, planned=planned, alone=again, measure=self.measure))
        for _, record in self.runner.run(jobs, again=again):
            yield record


def select_known_records(
    prober: Prober, records: Iterable[Record], blobs: BlobStore
) -> list[Record]:
    """Return the records of a log that a target would repeat.

    Args:
        prober: Prober of the target.
        records: Records of the log.
        blobs: Artifacts of the log.

    Returns:
        The records of the current target, without those of a program with other options, or of
        one that read a file which has changed.
    """
    own = (record for record in records if record.case_hash == prober.hash)
    return [record for record in own if has_same_inputs(record, blobs)]


def make_unrun_record(
    name: str, code: str, planned: PlannedCell, reason: str, outcome: Outcome = Outcome.UNSUPPORTED
) -> Record:
    """Return the record of a target that a cell cannot run, or failed to run.

    Args:
        name: Name of the target.
        code: Hash of the target.
        planned: The cell.
        reason: Reason in the error message.
        outcome: `UNSUPPORTED` for a property of the cell, `INFRA` for a fault of the host.
    """
    kind = str(outcome)
    error = ErrorInfo(type=kind, message=reason, signature=f"{kind}: {reason}", where="")
    return Record(
        case=name, cell=planned.cell.id, case_hash=code, cell_hash=planned.cell_hash,
        outcome=outcome, stage=Stage.PROVISION, error=error,
    )  # fmt: skip
