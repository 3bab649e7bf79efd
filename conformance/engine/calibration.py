"""The unstable jobs of this host: found by `conformance calibrate`, used by runs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.engine.record_judge import execute_jobs, load_observation
from conformance.engine.result_cache import collect_host_facts, hash_host
from conformance.engine.run_directory import get_current_time
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

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import Executor, Job
    from conformance.model.record import Record


FOLDER: Final = "calibration"
"""Folder below the cache folder, with a file for each host."""


class Unstable(msgspec.Struct, frozen=True, kw_only=True):
    """A job that does not do the same each time.

    Attributes:
        case: Its case.
        cell: Its cell.
        case_hash: Hash of the case's content: of another content nothing is known.
        attempts: How often it was tried.
        differing: How many attempts were unlike the first.
        example: How the first of them was, in a sentence.
        day: When that was, ISO 8601.
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
        """The sentence about it in the reasons of a record."""
        return (
            f"not stable on this host: {self.differing} of {self.attempts} attempts were unlike "
            f"the first when it was calibrated on {self.day}"
        )


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The calibration of a host.

    Attributes:
        host: Its facts.
        unstable: The jobs that are not stable, by case and cell.
    """

    host: dict[str, str] = {}
    unstable: tuple[Unstable, ...] = ()

    def of(self, job: Job) -> Unstable | None:
        """Return what is known of a job; None where it is stable, or was never looked at."""
        for one in self.unstable:
            if (one.case, one.cell) == job.id and one.case_hash == job.case.content_hash:
                return one
        return None

    def with_new(
        self, looked_at: Collection[tuple[str, str]], found: Iterable[Unstable]
    ) -> Calibration:
        """Return the calibration after some jobs were looked at again.

        Args:
            looked_at: Case and cell of each.
            found: Those of them that are not stable.
        """
        kept = [one for one in self.unstable if (one.case, one.cell) not in looked_at]
        ordered = sorted((*kept, *found), key=lambda one: (one.case, one.cell))
        return Calibration(host=dict(collect_host_facts()), unstable=tuple(ordered))


def load_calibration(cache: Path) -> Calibration:
    """Return what is known of this host.

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
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}; {_ANEW}") from error
    except MALFORMED as error:
        raise UsageError(f"{file}: {str(error).lower()}; {_ANEW}") from error


_ANEW: Final = "remove it, and make it anew with: conformance calibrate"


def store_calibration(cache: Path, calibration: Calibration) -> Path:
    """Keep what is known of this host, and return where.

    Args:
        cache: Cache folder.
        calibration: What is known.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    file = locate_calibration(cache)
    write_atomically(file, readable_json(calibration))
    return file


def update_calibration(
    cache: Path,
    looked_at: Collection[tuple[str, str]],
    found: Iterable[Unstable],
    inform: Callable[[str], None],
) -> Calibration:
    """Add what was learned to what is known of this host by then, keep it, and return it.

    Args:
        cache: Cache folder.
        looked_at: Case and cell of each job that was looked at.
        found: Those of them that are not stable.
        inform: Receives one line if another process updates it at the moment.

    Raises:
        UsageError: If the file cannot be read.
        InfrastructureError: If the disk refuses.
    """
    with lock_folders({locate_calibration(cache).parent}, inform):
        known = load_calibration(cache).with_new(looked_at, found)
        store_calibration(cache, known)
    return known


def locate_calibration(cache: Path) -> Path:
    """Return where it is kept what is known of this host."""
    return cache / FOLDER / f"{hash_host()}.json"


@dataclass(slots=True)
class _Attempts:
    """The attempts of one job.

    Attributes:
        job: The job.
        first: The first attempt that was observed, None until there is one.
        count: Number of observed attempts.
        differences: How attempts differed from the first, for each that did.
    """

    job: Job
    first: Record | None = None
    count: int = 0
    differences: list[str] = field(default_factory=list)


class Calibrator:
    """Runs jobs several times, and finds those whose attempts differ from their first one.

    Args:
        jobs: The jobs.
        executor: Runs them.
        blobs: Receives their artifacts.
    """

    def __init__(self, jobs: Iterable[Job], executor: Executor, blobs: BlobStore) -> None:
        self._attempts = {job.id: _Attempts(job) for job in jobs}
        self._executor = executor
        self._blobs = blobs
        self._rounds = 0

    def attempt(self) -> None:
        """Run every job once more: in another order each time, every other time all alone.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        alone = self._rounds % 2 == 1
        jobs = [replace(one.job, alone=alone) for one in self._attempts.values()]
        random.Random(self._rounds).shuffle(jobs)  # noqa: S311 - an order, no secret
        self._rounds += 1
        for job, record, _ in execute_jobs(self._executor, jobs, self._blobs):
            if not record.outcome.observed:
                continue
            attempts = self._attempts[job.id]
            attempts.count += 1
            if attempts.first is None:
                attempts.first = record
            elif difference := find_difference(attempts.job, attempts.first, record, self._blobs):
                attempts.differences.append(difference)

    @property
    def compared(self) -> frozenset[tuple[str, str]]:
        """Case and cell of the jobs with at least two attempts."""
        return frozenset(job for job, one in self._attempts.items() if one.count > 1)

    @property
    def unstable(self) -> tuple[Unstable, ...]:
        """The jobs that are not stable."""
        day = get_current_time()[: len("2026-05-01")]
        return tuple(
            Unstable(
                case=one.job.case.id,
                cell=one.job.planned.cell.id,
                case_hash=one.job.case.content_hash,
                attempts=one.count,
                differing=len(one.differences),
                example=one.differences[0],
                day=day,
            )
            for one in self._attempts.values()
            if one.differences
        )


def find_difference(job: Job, first: Record, other: Record, blobs: BlobStore) -> str:
    """Return how two attempts of a job differ, empty if they do not.

    Endings, values beyond the tolerance, facts that gate and IRs count, the latter as far as the
    case's policy says more of them than that they inform.

    Args:
        job: The job.
        first: An attempt.
        other: Another.
        blobs: Their artifacts.
    """
    case = job.case
    seen, again = load_observation(first, blobs), load_observation(other, blobs)
    said = find_disagreement(seen, again, Tolerance.of(case)).removeprefix(DISAGREE)
    if said:
        return said
    if case.policy_of("facts") is Policy.GATE:
        said = next(find_changed_facts(other.facts, first.facts), "").replace(
            ", golden ", ", first "
        )
    if said:
        return said
    for ir in first.ir.keys() & other.ir.keys():
        if case.policy_of(ir) is not Policy.INFORM and first.ir[ir].neutral != other.ir[ir].neutral:
            return f"{ir} differs"
    return ""
