"""Evidence about a root cause: the contract of `evidence.json` in a run directory."""

from __future__ import annotations

from typing import Final

import msgspec

EVIDENCE: Final = "evidence.json"
"""Its name in a run directory."""
REPRODUCTIONS: Final = "repro"
"""Folder of the reproductions in a run directory."""


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    """A package that makes the difference.

    Attributes:
        package: Its name.
        before: Its version where all was well.
        after: Its version where it is not.
        files: Its files that are not as they were installed there.
    """

    package: str
    before: str
    after: str
    files: tuple[str, ...] = ()


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence about one root cause, from one representative job.

    Attributes:
        cause: Id of the root cause.
        case: The case that was looked into.
        cell: Id of the cell.
        good: Where it was known to be right: what the search began at, empty if nothing is.
        last_good: The last release, night or environment that was right.
        first_bad: The first that was not.
        asked: What the first one does that the last does not, in words.
        confirmed: Whether both showed the same once more.
        culprits: The packages that make the difference between these two.
        repro: Path of the reproduction, relative to the run directory; empty if there is none.
        command: The command that runs it.
        untold: What could not be found out, and why, one sentence each.
        unfinished: Whether that may be found out another time: the host stood in the way.
    """

    cause: str
    case: str
    cell: str
    good: str = ""
    last_good: str = ""
    first_bad: str = ""
    asked: str = ""
    confirmed: bool = False
    culprits: tuple[Culprit, ...] = ()
    repro: str = ""
    command: str = ""
    untold: tuple[str, ...] = ()
    unfinished: bool = False
