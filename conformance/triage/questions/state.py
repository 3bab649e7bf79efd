"""What a probe says of one point of an axis: good, bad, something else, or nothing. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a point shows."""

    GOOD = "good"
    """What the good end shows."""
    BAD = "bad"
    """What the bad end shows."""
    OTHER = "other"
    """Neither: it fails for another reason."""
    UNKNOWN = "unknown"
    """Nothing that could be compared: it cannot be installed, or the host was at fault."""


@dataclass(frozen=True, slots=True)
class State:
    """What a point shows, equal for points that show the same.

    Attributes:
        kind: What it is to the question.
        about: What tells one state of a kind from another, e.g. the signature of an error.
    """

    kind: Kind
    about: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it says anything."""
        return self.kind is not Kind.UNKNOWN


GOOD = State(Kind.GOOD)
BAD = State(Kind.BAD)
