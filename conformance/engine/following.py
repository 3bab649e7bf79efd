"""A regression followed from run to run: the jobs that show it, and when none does. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from conformance.engine.digests import JobState


FINE: Final = 0
"""In the place of a cause: the job ran, and is not unexpected."""
SILENT: Final = -1
"""In the place of a cause: the job did not run, or says nothing about JAX."""


class Move(StrEnum):
    """What a run made of a regression."""

    OPENED = "opened"
    FIXED = "fixed"
    """No job shows it any more; one that did not run still does, as far as is known."""
    REOPENED = "reopened"


@dataclass(slots=True, kw_only=True)
class Followed:
    """A regression under way.

    Attributes:
        id: Its id.
        case: Its case.
        state: What its first job showed.
        first: The first run that showed it.
        last: The last run that did.
        open: The jobs that show it, as far as is known.
        ever: Those that ever did.
        fixed_in: The run that first showed it gone; None while it is open.
        opened_in: The run that opened it last.
        reopened: How often it came back.
    """

    id: str
    case: str
    state: JobState
    first: int
    last: int = 0
    open: set[int] = field(default_factory=set)
    ever: set[int] = field(default_factory=set)
    fixed_in: int | None = None
    opened_in: int = 0
    reopened: int = 0

    def move(self, run: int, gone: Collection[int], come: Collection[int]) -> Move | None:
        """Take in which jobs ceased to show it in a run, and which came to.

        Args:
            run: The run.
            gone: Jobs that ceased to.
            come: Jobs that came to.

        Returns:
            What became of it; None where it is open, or is not, as before.
        """
        was_open = bool(self.open)
        self.open.difference_update(gone)
        self.open.update(come)
        self.ever.update(come)
        if bool(self.open) is was_open:
            return None
        if was_open:
            self.fixed_in = run
            return Move.FIXED
        again = self.fixed_in is not None
        self.fixed_in, self.opened_in = None, run
        self.reopened += again
        return Move.REOPENED if again else Move.OPENED
