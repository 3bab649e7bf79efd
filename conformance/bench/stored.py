"""The output of `conformance bench --json`, as reports read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from conformance.bench.series import Series
from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path


class StoredDifference(msgspec.Struct, frozen=True):
    """A case that differs between two cells.

    Attributes:
        case: Id of the case.
        size: Its size, None for a case without sizes.
        cells: Ids of both cells.
        releases: Their jax releases.
        text: The alarms, in a line.
        kinds: What differs, without figures; see `TimeComparison.kind`.
    """

    case: str
    size: int | None
    cells: tuple[str, str]
    releases: tuple[str, str]
    text: str
    kinds: tuple[str, ...] = ()


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


class KnownDifferences(NamedTuple):
    """Differences of a night, compared with those of the nights before.

    Attributes:
        new: Cases that differ in a way that they did not before.
        all: All that differ, with the cases that were not measured again.
    """

    new: tuple[StoredDifference, ...]
    all: tuple[StoredDifference, ...]


def compare_with_known(
    found: Sequence[StoredDifference], before: Sequence[StoredDifference], measured: Collection[str]
) -> KnownDifferences:
    """Return which differences are new, and which remain.

    Args:
        found: The differences of this night.
        before: Those of the nights before.
        measured: Ids of the cases that were measured this night: their old differences are over.
    """
    known: dict[str, set[str]] = {}
    for one in before:
        known.setdefault(one.case, set()).update(one.kinds)
    new = tuple(one for one in found if not known.get(one.case, set()).issuperset(one.kinds))
    return KnownDifferences(new, (*found, *(one for one in before if one.case not in measured)))


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
