"""The state of a point of a search: good, bad, something else, or unknown. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PointKind(StrEnum):
    """How a point compares with both endpoints."""

    GOOD = "good"
    """It does what the good endpoint does."""
    BAD = "bad"
    """It does what the bad endpoint does."""
    OTHER = "other"
    """Neither: it fails for another reason."""
    UNKNOWN = "unknown"
    """Nothing can be compared: it cannot be installed, or the host was at fault."""


@dataclass(frozen=True, slots=True)
class PointState:
    """The state of a point, equal for points that do the same.

    Attributes:
        kind: How the point compares with both endpoints.
        about: Text that tells states of one kind apart, e.g. the signature of an error.
    """

    kind: PointKind
    about: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the point can be compared with others."""
        return self.kind is not PointKind.UNKNOWN


GOOD = PointState(PointKind.GOOD)
BAD = PointState(PointKind.BAD)
