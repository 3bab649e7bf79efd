"""The result of a bench: comparisons, series and the differences that are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.bench.comparison import CaseComparison, to_json
from conformance.bench.stored import StoredDifference
from conformance.report.bench.text import describe_alarm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.bench.series import Series


@dataclass(frozen=True, slots=True)
class BenchResult:
    """The result of a bench.

    Attributes:
        releases: The jax release of each cell, in their order.
        comparisons: The comparisons of neighbouring cells.
        series: The measurements over all cells.
        complete: Whether all cases were measured; not after an interrupt.
    """

    releases: dict[str, str]
    comparisons: list[CaseComparison]
    series: list[Series]
    complete: bool = True

    @property
    def differences(self) -> list[StoredDifference]:
        """The cases with alarms, as they are stored."""
        return [
            StoredDifference(
                case=one.case, size=one.size, cells=one.cells,
                releases=(self.releases[one.cells[0]], self.releases[one.cells[1]]),
                text="; ".join(map(describe_alarm, one.alarms)),
                kinds=tuple(alarm.kind for alarm in one.alarms),
            )
            for one in self.comparisons
            if one.alarms
        ]  # fmt: skip

    def to_json(self, host: str, differences: Sequence[StoredDifference]) -> dict[str, Any]:
        """Return the result as JSON data, which `conformance.bench.stored` reads.

        Args:
            host: The host before the first measurement, see `describe_host`.
            differences: The differences to store, also those of earlier nights.
        """
        return {
            "host": host,
            "releases": list(dict.fromkeys(self.releases.values())),
            "comparisons": [row for one in self.comparisons for row in to_json(one)],
            "differences": msgspec.to_builtins(list(differences)),
            "series": msgspec.to_builtins(self.series),
        }  # fmt: skip
