"""The output of `conformance bench --json`, as reports read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from conformance.bench.series import Series
from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error

if TYPE_CHECKING:
    from pathlib import Path


class StoredDifference(msgspec.Struct, frozen=True):
    """A case that differs between two cells.

    Attributes:
        case: Id of the case.
        size: Its size, None for a case without sizes.
        cells: Ids of both cells.
        releases: Their jax releases.
        text: The alarms, in a line.
    """

    case: str
    size: int | None
    cells: tuple[str, str]
    releases: tuple[str, str]
    text: str


class StoredBench(msgspec.Struct, frozen=True):
    """Measurements over cells, and what differs between neighbours.

    Attributes:
        host: The host, in a line.
        releases: The releases of the cells, in their order.
        series: The measurements.
        differences: Cases that differ between neighbouring cells.
    """

    host: str
    releases: tuple[str, ...]
    series: tuple[Series, ...]
    differences: tuple[StoredDifference, ...]

    @property
    def by_release(self) -> list[tuple[str, list[StoredDifference]]]:
        """Differences by release, the newest first; releases without one are left out."""
        found = [
            (release, [one for one in self.differences if one.releases[1] == release])
            for release in reversed(self.releases)
        ]
        return [(release, differences) for release, differences in found if differences]


def load_stored_bench(file: Path) -> StoredBench:
    """Return the measurements in a file.

    Args:
        file: Output of `conformance bench --json`.

    Raises:
        UsageError: If it cannot be read, or is something else.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=StoredBench)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from error
    except MALFORMED as error:
        raise UsageError(
            f"{file}: {error}; expected what conformance bench --json writes"
        ) from error
