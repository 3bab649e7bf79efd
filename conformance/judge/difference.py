"""Differences of two values, and how far the values agree."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Agreement(IntEnum):
    """How far two values agree; the larger, the worse."""

    EQUAL = 0
    """The same bits."""
    WITHIN = 1
    """Other bits, within the tolerance."""
    BEYOND = 2
    """Another structure, shape, dtype or placement, or numbers beyond the tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference between two values, of a leaf or of the whole value.

    Attributes:
        path: Path of the leaf, `out` for the whole value.
        aspect: `structure`, `leaves`, `kind`, `shape`, `dtype`, `weak type`, `sharding`,
            `memory kind` or `numbers`.
        agreement: `WITHIN` or `BEYOND`.
        message: Sentence with the place, the observed and the expected value.
        count: Number of elements beyond the tolerance; if none is, of those with other bits.
        size: Number of elements of the leaf.
        first: Index of the first counted element.
        worst: Index of the counted element farthest beyond the tolerance.
        max_ulp: Largest distance in units in the last place; 0 for exact types.
        max_abs: Largest absolute error.
        max_rel: Largest relative error; infinite against zero.
    """

    path: str
    aspect: str
    agreement: Agreement
    message: str
    count: int = 0
    size: int = 0
    first: tuple[int, ...] = ()
    worst: tuple[int, ...] = ()
    max_ulp: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All differences of two values, in leaf order; none when they are the same bits."""

    differences: tuple[Difference, ...] = ()

    @property
    def agreement(self) -> Agreement:
        """The worst agreement of all leaves."""
        return max((d.agreement for d in self.differences), default=Agreement.EQUAL)

    @property
    def agrees(self) -> bool:
        """Whether no difference is beyond the tolerance."""
        return self.agreement is not Agreement.BEYOND

    @property
    def messages(self) -> tuple[str, ...]:
        """One sentence for each difference of the worst agreement."""
        worst = self.agreement
        return tuple(d.message for d in self.differences if d.agreement is worst)


def make_violation(path: str, aspect: str, message: str) -> Difference:
    """Return a difference that no tolerance covers.

    Args:
        path: Path of the leaf.
        aspect: The aspect that differs.
        message: Sentence with the place, the observed and the expected value.

    Returns:
        The difference.
    """
    return Difference(path=path, aspect=aspect, agreement=Agreement.BEYOND, message=message)
