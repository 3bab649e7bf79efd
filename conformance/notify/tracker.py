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


class CloseReason(StrEnum):
    """Why an issue is closed."""

    COMPLETED = "completed"
    """Its root cause is fixed."""
    DECLINED = "declined"
    """People decided to do nothing: intended, not planned, a duplicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue in its current state.

    Attributes:
        number: Number of the issue.
        body: Text of the issue.
        closed: Why it is closed; None while it is open.
        closed_at: Time when it was closed.
    """

    number: int
    body: str
    closed: CloseReason | None = None
    closed_at: datetime | None = None


class Tracker(Protocol):
    """A tracker of issues."""

    def issues(self, numbers: Collection[int]) -> list[Issue]:
        """Return the issues that may be ours, open and closed.

        Args:
            numbers: Issues that are linked in the store, even if they lack our label.

        Raises:
            ConformanceError: If they cannot be read.
        """

    def open(self, title: str, body: str) -> int:
        """Open an issue, and return its number.

        Raises:
            RefusedError: If this issue is refused.
            ConformanceError: If the tracker refuses everything, e.g. for lack of access.
        """

    def edit(self, number: int, body: str) -> None:
        """Replace the text of an issue; it raises like `open`."""

    def close(self, number: int, body: str) -> None:
        """Close an issue as completed, with a text; it raises like `open`."""

    def reopen(self, number: int, body: str) -> None:
        """Open a closed issue again, with a text; it raises like `open`."""

    def comment(self, number: int, text: str) -> None:
        """Add a comment to an issue; it raises like `open`."""
