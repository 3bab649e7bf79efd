"""The timeline of a bisection: stretches of points that show the same. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.triage.bisect.answer import Answer
    from conformance.triage.questions.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Neighbouring points that show the same.

    Attributes:
        first: Number of the first point.
        last: Number of the last.
        state: What they show.
        said: The same in words, as the first of them that was tried showed it.
        tried: How many of them were tried; the others lie between two that show the same.
    """

    first: int
    last: int
    state: State
    said: str
    tried: int


def timeline(answer: Answer) -> list[Stretch]:
    """Return the stretches of a bisection, in the order of its points.

    Args:
        answer: What was found.
    """
    stretches: list[Stretch] = []
    for point, state in sorted(answer.states.items()):
        last = stretches[-1] if stretches else None
        if last is not None and _is_alike(last.state, state):
            stretches[-1] = Stretch(
                first=last.first, last=point, state=state, said=last.said, tried=last.tried + 1
            )
        else:
            one = Stretch(first=point, last=point, state=state, said=answer.said(point), tried=1)
            stretches.append(one)
    return stretches


def _is_alike(one: State, other: State) -> bool:
    """Say whether two states are one stretch; why a point cannot be tried is no matter."""
    return one == other if one.is_known or other.is_known else True
