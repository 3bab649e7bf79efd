"""Actions on issues, and their execution."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from conformance.notify.tracker import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.notify.tracker import Tracker

    Link = Callable[[Sequence[str], int], None]


class ActionKind(StrEnum):
    """The kind of an action."""

    OPEN = "open"
    UPDATE = "update"
    """Edit its text, link regressions to it, or add a comment."""
    REOPEN = "reopen"
    CLOSE = "close"
    HOLD = "hold"
    """Not opened, because the night has opened as many as it may."""
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action on the issue of a root cause.

    Attributes:
        kind: The kind.
        cause: Id of the root cause.
        why: The reason, in a few words.
        issue: Number of the issue, None before it is opened.
        title: Title of an issue that is opened.
        body: New text of the issue, empty to keep its text.
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
        """Whether the action changes an issue."""
        return self.kind not in {ActionKind.HOLD, ActionKind.NOTHING}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """The result of an action.

    Attributes:
        action: The action.
        issue: Number of its issue, None if none was opened.
        problem: Why it was refused, empty if it was not.
    """

    action: Action
    issue: int | None
    problem: str = ""


def execute(actions: Iterable[Action], tracker: Tracker, link: Link) -> Iterator[ActionResult]:
    """Perform actions, and yield the result of each.

    Args:
        actions: The actions.
        tracker: The tracker of the issues.
        link: Links regressions to an issue in the store.

    Raises:
        ConformanceError: If no further action is possible; those that were yielded are done.
    """
    for action in actions:
        if not action.acts:
            yield ActionResult(action=action, issue=action.issue)
            continue
        try:
            yield ActionResult(action=action, issue=_perform(action, tracker, link))
        # A locked issue must not keep the others from being reported. Any other error ends the
        # command, and the next run continues from the links that are stored.
        except RefusedError as error:
            yield ActionResult(action=action, issue=action.issue, problem=str(error))


def _perform(action: Action, tracker: Tracker, link: Link) -> int:
    """Perform one action, and return the number of its issue."""
    number = action.issue
    if number is None:
        number = tracker.open(action.title, action.body)
    elif action.kind is ActionKind.CLOSE:
        tracker.close(number, action.body)
    elif action.kind is ActionKind.REOPEN:
        tracker.reopen(number, action.body)
    elif action.body:
        tracker.edit(number, action.body)
    # Without its link, an issue would be opened a second time: link before the comment, which may
    # fail.
    if action.regressions:
        link(action.regressions, number)
    if action.comment:
        tracker.comment(number, action.comment)
    return number
