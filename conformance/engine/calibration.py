"""The unstable jobs of this host: found by `conformance calibrate`, used by runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from conformance.engine.result_cache import host_facts, host_hash
from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error, readable_json, write_atomically
from conformance.locking import lock_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from conformance.engine.job import Job

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
        return Calibration(host=dict(host_facts()), unstable=tuple(ordered))


def load_calibration(cache: Path) -> Calibration:
    """Return what is known of this host.

    Args:
        cache: Cache folder.

    Raises:
        UsageError: If the file cannot be read.
    """
    file = calibration_file(cache)
    try:
        return msgspec.json.decode(file.read_bytes(), type=Calibration)
    except FileNotFoundError:
        return Calibration(host=dict(host_facts()))
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
    file = calibration_file(cache)
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
    with lock_folders({calibration_file(cache).parent}, inform):
        known = load_calibration(cache).with_new(looked_at, found)
        store_calibration(cache, known)
    return known


def calibration_file(cache: Path) -> Path:
    """Return where it is kept what is known of this host."""
    return cache / FOLDER / f"{host_hash()}.json"
