"""The measurements of a case in several cells, round by round."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TYPE_CHECKING

from conformance.bench.comparison import compare_memory, compare_times
from conformance.bench.measured import PHASES, Clock, compare_taken

if TYPE_CHECKING:
    from conformance.bench.comparison import TimeComparison
    from conformance.bench.measured import Measured
    from conformance.model.case import Case


@dataclass(slots=True)
class CaseRounds:
    """The measurements of one case, in the order of rounds.

    Attributes:
        case: The case.
        in_turns: Whether these are the rounds of two cells whose jobs take turns.
        measured: Measurements of all sizes by index of the cell.
        problems: Why a cell cannot be measured, by index of the cell.
    """

    case: Case
    in_turns: bool = False
    measured: dict[int, list[tuple[Measured, ...]]] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)

    def select_largest(self, index: int) -> list[Measured]:
        """Return the measurements of a cell at the largest size."""
        return [sizes[-1] for sizes in self.measured.get(index, ())]

    def compare_times(self, pair: tuple[int, int]) -> tuple[TimeComparison, ...]:
        """Compare the phases of two cells over the rounds that both were measured in."""
        sides = [self.select_largest(index) for index in pair]
        common = min(map(len, sides))
        return compare_times(*(side[:common] for side in sides))

    def list_differences(self) -> dict[tuple[str, Clock], list[float]]:
        """Return the logarithms of ratios of neighbours in the first round, by phase and clock."""
        found: dict[tuple[str, Clock], list[float]] = {}
        first = [self.select_largest(index)[0].phases for index in sorted(self.measured)]
        for pair in pairwise(first):
            for key in product(PHASES, Clock):
                before, after = (phases.get(key[0]) for phases in pair)
                ratio = compare_taken(before, after, key[1])
                if ratio is not None:
                    found.setdefault(key, []).append(ratio)
        return found

    def group_sizes(self, index: int) -> dict[int, list[Measured]]:
        """Return the measurements of a cell by size, empty for a case without sizes."""
        found: dict[int, list[Measured]] = {}
        for one in (one for sizes in self.measured[index] for one in sizes):
            if one.size is not None:
                found.setdefault(one.size, []).append(one)
        return found

    def has_memory_alarm(self, pair: tuple[int, int]) -> bool:
        """Return whether a size of two cells differs by what is an alarm."""
        return any(one.alarm for one in compare_memory(*map(self.select_largest, pair)))
