"""Actions done, one after another; what was done is linked in the store at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.notify.actions import Action, ActionKind
from conformance.notify.tracker import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.notify.tracker import Tracker

    Link = Callable[[Sequence[str], int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """An action that was done, or refused.

    Attributes:
        action: The action.
        issue: Number of its issue, None if none was opened.
        problem: Why it was refused, empty if it was done.
    """

    action: Action
    issue: int | None
    problem: str = ""


def execute(actions: Iterable[Action], tracker: Tracker, link: Link) -> Iterator[ActionResult]:
    """Do actions, and yield each that was done.

    Args:
        actions: The actions.
        tracker: Where the issues are.
        link: Links regressions to an issue in the store.

    Raises:
        ConformanceError: If nothing more can be done; those that were yielded are done.
    """
    for action in actions:
        if not action.acts:
            yield ActionResult(action=action, issue=action.issue)
            continue
        try:
            yield ActionResult(action=action, issue=_one(action, tracker, link))
        except RefusedError as error:
            yield ActionResult(action=action, issue=action.issue, problem=str(error))


def _one(action: Action, tracker: Tracker, link: Link) -> int:
    """Do one action, and return the number of its issue."""
    number = action.issue
    if number is None:
        number = tracker.open(action.title, action.body)
    elif action.kind is ActionKind.CLOSE:
        tracker.close(number, action.body)
    elif action.kind is ActionKind.REOPEN:
        tracker.reopen(number, action.body)
    elif action.body:
        tracker.edit(number, action.body)
    # What is not linked would be told again: before what may yet fail.
    if action.regressions:
        link(action.regressions, number)
    if action.comment:
        tracker.comment(number, action.comment)
    return number
