"""The interface of an issue tracker; decisions do not depend on which one it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from conformance.errors import ConformanceError

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime


class RefusedError(ConformanceError):
    """One issue could not be changed; the others still can."""


class Closed(StrEnum):
    """Why an issue is closed."""

    COMPLETED = "completed"
    """What it tells of is done."""
    DECLINED = "declined"
    """People decided that nothing is to be done: intended, not planned, a duplicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue as it stands.

    Attributes:
        number: Its number.
        body: Its text.
        closed: Why it is closed; None while it is open.
        closed_at: When it was.
    """

    number: int
    body: str
    closed: Closed | None = None
    closed_at: datetime | None = None


class Tracker(Protocol):
    """A place where issues are kept."""

    def issues(self, numbers: Collection[int]) -> list[Issue]:
        """Return the issues that may be ours, open and closed.

        Args:
            numbers: Issues that are linked, and wanted though nothing else says they are ours.

        Raises:
            ConformanceError: If they cannot be read.
        """

    def open(self, title: str, body: str) -> int:
        """Open an issue, and return its number.

        Raises:
            RefusedError: If this one is refused.
            ConformanceError: If nothing can be done at all.
        """

    def edit(self, number: int, body: str) -> None:
        """Replace the text of an issue; raises as `open` does."""

    def close(self, number: int, body: str) -> None:
        """Close an issue as completed, with a text; raises as `open` does."""

    def reopen(self, number: int, body: str) -> None:
        """Open a closed issue again, with a text; raises as `open` does."""

    def comment(self, number: int, text: str) -> None:
        """Add a comment to an issue; raises as `open` does."""
