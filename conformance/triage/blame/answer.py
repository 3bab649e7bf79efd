"""The answer of a blame: the packages that make a difference. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.search.trials import SearchAnswer
from conformance.triage.blame.package_units import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.search.ddmin import MinimalSet, SetResult
    from conformance.search.packages import PackageMove
    from conformance.triage.blame.mixtures import Mixtures

MovedUnits = frozenset[Unit]
"""The units of a mixture that have the versions of the environment that is gone to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameAnswer(SearchAnswer[MovedUnits]):
    """The answer of a blame.

    The state of a mixture is good where it does what the environment does that is left.

    Attributes:
        mixtures: The mixtures of both environments.
        guilty: Minimal sets of units, each enough by itself.
        held: The result if everything is moved except the culprits and the units that need them.
        reverse: Whether the environment that is left is the bad one to the predicate.
    """

    mixtures: Mixtures
    guilty: Sequence[MinimalSet[Unit]]
    held: SetResult
    reverse: bool

    @property
    def culprits(self) -> tuple[PackageMove, ...]:
        """The packages of the first minimal set."""
        return self.packages_of(self.guilty[0].culprits)

    def packages_of(self, units: Iterable[Unit]) -> tuple[PackageMove, ...]:
        """Return the packages of units, in order."""
        ordered = self.mixtures.units.ordered(units)
        return tuple(self.mixtures.packages[name] for unit in ordered for name in unit)
