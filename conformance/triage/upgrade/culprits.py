"""The packages that made a change of an upgrade, as far as they are known. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.search.packages import PackageMove


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprits:
    """The packages that made a change, as far as they are known.

    Attributes:
        case: Id of the case that was tried; it stands for all that changed in the same way.
        guilty: Each set of packages that is enough by itself; none where the search has no answer.
        beside: The packages without which those of the first set cannot be moved.
        untold: Why the answer is incomplete; empty if it is not.
    """

    case: str
    guilty: tuple[tuple[PackageMove, ...], ...] = ()
    beside: tuple[PackageMove, ...] = ()
    untold: str = ""
