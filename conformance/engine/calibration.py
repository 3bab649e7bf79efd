"""The calibration of a host: its unstable jobs, found by `conformance calibrate`, used by runs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.engine.cache.results import collect_host_facts, hash_host
from conformance.engine.record_judge import execute_jobs, load_observation
from conformance.engine.runs.directory import get_current_time
from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error, readable_json, write_atomically
from conformance.judge.agreement import DISAGREE, find_disagreement
from conformance.judge.ir import find_changed_facts
from conformance.judge.tolerance import Tolerance
from conformance.locking import lock_folders
from conformance.model.case import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import Executor, Job
    from conformance.model.record import Record


FOLDER: Final = "calibration"
"""Folder below the cache folder, with a file for each host."""
_REMEDY: Final = "delete it, and write it again with: conformance calibrate"


class UnstableJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job with different results in several attempts.

    Attributes:
        case: Case id.
        cell: Cell id.
        case_hash: Hash of the case's content. The entry does not hold for another content.
        attempts: Number of attempts.
        differing: Number of attempts that differed from the first.
        example: The first difference, in a sentence.
        day: Day of the calibration, ISO 8601.
    """

    case: str
    cell: str
    case_hash: str
    attempts: int
    differing: int
    example: str
    day: str

    @property
    def sentence(self) -> str:
        """Reason for the verdict of a record of the job."""
        return (
            f"not stable on this host: {self.differing} of {self.attempts} attempts were unlike "
            f"the first when it was calibrated on {self.day}"
        )


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The calibration of a host.

    Attributes:
        host: Facts of the host.
        unstable: Unstable jobs, by case and cell.
    """

    host: dict[str, str] = {}
    unstable: tuple[UnstableJob, ...] = ()

    def find(self, job: Job) -> UnstableJob | None:
        """Return the entry of a job, None if it is stable or was never calibrated."""
        for entry in self.unstable:
            if (entry.case, entry.cell) == job.id and entry.case_hash == job.case.content_hash:
                return entry
        return None


def load_calibration(cache: Path) -> Calibration:
    """Return the calibration of this host, empty if it was never calibrated.

    Args:
        cache: Cache folder.

    Raises:
        UsageError: If the file cannot be read.
    """
    file = locate_calibration(cache)
    try:
        return msgspec.json.decode(file.read_bytes(), type=Calibration)
    except FileNotFoundError:
        return Calibration(host=dict(collect_host_facts()))
    except OSError as error:
        text = f"{file}: cannot be read: {describe_os_error(error)}; {_REMEDY}"
        raise UsageError(text) from error
    except MALFORMED as error:
        raise UsageError(f"{file}: {str(error).lower()}; {_REMEDY}") from error


def update_calibration(
    cache: Path,
    calibrated: Collection[tuple[str, str]],
    unstable: Iterable[UnstableJob],
    inform: Callable[[str], None],
) -> Calibration:
    """Replace the entries of some jobs in the calibration of this host, and return it.

    Args:
        cache: Cache folder.
        calibrated: Case and cell of each job that was calibrated.
        unstable: Entries of the unstable jobs among them.
        inform: Receives one line if another process updates it at the moment.

    Raises:
        UsageError: If the file cannot be read.
        InfrastructureError: If the disk refuses.
    """
    file = locate_calibration(cache)
    # Read under the lock: another process may have added entries while this process ran jobs.
    with lock_folders({file.parent}, inform):
        entries = load_calibration(cache).unstable
        others = [entry for entry in entries if (entry.case, entry.cell) not in calibrated]
        ordered = sorted((*others, *unstable), key=lambda entry: (entry.case, entry.cell))
        updated = Calibration(host=dict(collect_host_facts()), unstable=tuple(ordered))
        write_atomically(file, readable_json(updated))
    return updated


def locate_calibration(cache: Path) -> Path:
    """Return the file with the calibration of this host."""
    return cache / FOLDER / f"{hash_host()}.json"


@dataclass(slots=True)
class _Attempts:
    """The attempts of one job.

    Attributes:
        job: Job that is attempted.
        first: First attempt that was observed, None until there is one.
        count: Number of observed attempts.
        differences: Difference from the first attempt, for each attempt that has one.
    """

    job: Job
    first: Record | None = None
    count: int = 0
    differences: list[str] = field(default_factory=list)


class Calibrator:
    """Runs jobs several times, and finds those whose attempts differ from their first one.

    Args:
        jobs: Jobs to calibrate.
        executor: Runs them.
        blobs: Receives their artifacts.
    """

    def __init__(self, jobs: Iterable[Job], executor: Executor, blobs: BlobStore) -> None:
        self._attempts = {job.id: _Attempts(job) for job in jobs}
        self._executor = executor
        self._blobs = blobs
        self._rounds = 0

    def attempt(self) -> None:
        """Run every job once more.

        The order differs each time, and in every other round no jobs share a process: a job may
        depend on its neighbours, or on the absence of neighbours.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        alone = self._rounds % 2 == 1
        jobs = [replace(attempts.job, alone=alone) for attempts in self._attempts.values()]
        # Seeded, so that a calibration that finds a job can be repeated.
        random.Random(self._rounds).shuffle(jobs)  # noqa: S311 - an order, no secret
        self._rounds += 1
        for job, record, *_ in execute_jobs(self._executor, jobs, self._blobs):
            if not record.outcome.observed:  # the host kept it from running: no attempt
                continue
            attempts = self._attempts[job.id]
            attempts.count += 1
            if attempts.first is None:
                attempts.first = record
            elif difference := find_difference(attempts.job, attempts.first, record, self._blobs):
                attempts.differences.append(difference)

    @property
    def compared_jobs(self) -> frozenset[tuple[str, str]]:
        """Case and cell of the jobs with at least two attempts."""
        return frozenset(job for job, attempts in self._attempts.items() if attempts.count > 1)

    @property
    def unstable(self) -> tuple[UnstableJob, ...]:
        """The unstable jobs."""
        day = get_current_time()[: len("2026-05-01")]
        return tuple(
            UnstableJob(
                case=attempts.job.case.id,
                cell=attempts.job.planned.cell.id,
                case_hash=attempts.job.case.content_hash,
                attempts=attempts.count,
                differing=len(attempts.differences),
                example=attempts.differences[0],
                day=day,
            )
            for attempts in self._attempts.values()
            if attempts.differences
        )


def find_difference(job: Job, first: Record, other: Record, blobs: BlobStore) -> str:
    """Return how two attempts of a job differ, empty if they do not.

    Different outcomes and errors count, values beyond the tolerance, facts that gate, and IRs whose
    policy is not to inform.

    Args:
        job: Job of both attempts, for its tolerance and policies.
        first: Record of the first attempt.
        other: Record of another attempt.
        blobs: Artifacts of both.
    """
    case = job.case
    observations = load_observation(first, blobs), load_observation(other, blobs)
    difference = find_disagreement(*observations, Tolerance.of(case)).removeprefix(DISAGREE)
    if not difference and case.policy_of("facts") is Policy.GATE:
        changed = next(find_changed_facts(other.facts, first.facts), "")
        # The sentence is about a golden; here the first attempt takes its place.
        difference = changed.replace(", golden ", ", first ")
    if difference:
        return difference
    for ir in first.ir.keys() & other.ir.keys():
        differs = first.ir[ir].canonical != other.ir[ir].canonical
        if differs and case.policy_of(ir) is not Policy.INFORM:
            return f"{ir} differs"
    return ""
