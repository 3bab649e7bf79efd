"""Actions on issues."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ActionKind(StrEnum):
    """The kind of an action."""

    OPEN = "open"
    UPDATE = "update"
    """Its text, what it is linked to, or a comment."""
    REOPEN = "reopen"
    CLOSE = "close"
    HOLD = "hold"
    """It would be opened, but for the most that one night may open."""
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action on the issue of a root cause.

    Attributes:
        kind: What.
        cause: Id of the root cause.
        why: In a few words.
        issue: Number of the issue, None while there is none.
        title: Title of an issue that is opened.
        body: Its text then, empty if that stays as it is.
        comment: A comment to add, empty for none.
        regressions: Ids of the regressions to link to it.
    """

    kind: ActionKind
    cause: str
    why: str
    issue: int | None = None
    title: str = ""
    body: str = ""
    comment: str = ""
    regressions: tuple[str, ...] = ()

    @property
    def acts(self) -> bool:
        """Whether anything is done."""
        return self.kind not in {ActionKind.HOLD, ActionKind.NOTHING}
