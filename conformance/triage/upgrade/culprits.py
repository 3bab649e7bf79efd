"""The packages that made a change of an upgrade, as far as a search told. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.search.packages import PackageMove


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprits:
    """The packages that made a change, as far as a search told.

    Attributes:
        case: Id of the case that was tried; it stands for all that changed in the same way.
        guilty: Each set of packages that is enough by itself; none where it could not be told.
        beside: Packages without which those of the first set cannot be moved.
        untold: What could not be told, and why; empty where all could.
    """

    case: str
    guilty: tuple[tuple[PackageMove, ...], ...] = ()
    beside: tuple[PackageMove, ...] = ()
    untold: str = ""
