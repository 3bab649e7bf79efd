"""The answer of a bisection: the main change, all others, and the timeline of its points. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.model.outcome import Outcome
from conformance.search.state import PointKind
from conformance.search.trials import SearchAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.search.bisection import ChangePoint, States
    from conformance.search.points import Points
    from conformance.search.state import PointState
    from conformance.search.trials import SearchStep
    from conformance.triage.bisect.resampling import Resampled


def last_good_before(states: States, change: ChangePoint, *, reverse: bool) -> int:
    """Return the good point nearest to a change, on the side of the good end.

    Args:
        states: State of each point that was tried.
        change: The change.
        reverse: Whether the good end is the last.
    """
    good = [number for number, state in states.items() if state.kind is PointKind.GOOD]
    if reverse:
        return min(number for number in good if number >= change.after)
    return max(number for number in good if number <= change.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """Neighbouring points in one state.

    Attributes:
        first: Number of the first point.
        last: Number of the last.
        state: Their state.
        summary: The same in words, as of the first of them that was tried.
        tried: How many of them were tried; the others lie between two that do the same.
    """

    first: int
    last: int
    state: PointState
    summary: str
    tried: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectAnswer(SearchAnswer[int]):
    """The answer of a bisection.

    Attributes:
        points: The points, in order.
        labels: Their names.
        reverse: Whether the good end is the newer one.
        states: State of each point that was tried.
        changes: All changes that were found, in order.
        also: Changes by which the ends differ, where a point in between is worse.
        main: The change to the state of the bad end that is nearest to the good end.
        resampled: How often the last good point was tried, if the first bad one is flaky.
        versions: Versions of all packages before and after the main change.
        turned: Whether the ends changed sides: the one called good fails.
    """

    points: Points
    labels: Sequence[str]
    reverse: bool
    states: States
    changes: Sequence[ChangePoint]
    also: Sequence[ChangePoint]
    main: ChangePoint
    versions: tuple[Mapping[str, str], Mapping[str, str]]
    resampled: Resampled | None = None
    turned: bool = False

    @property
    def good_end(self) -> int:
        """Number of the good end."""
        return len(self.points) - 1 if self.reverse else 0

    @property
    def last_good(self) -> int:
        """The good point nearest to the change: before it, or after it if a fix is looked for."""
        return last_good_before(self.states, self.main, reverse=self.reverse)

    @property
    def first_bad(self) -> int:
        """The bad point at the change."""
        return self.main.before if self.reverse else self.main.after

    @property
    def others(self) -> list[int]:
        """Points between the two that are neither."""
        first, last = sorted((self.last_good, self.first_bad))
        within = range(first + 1, last)
        return [n for n in within if n in self.states and self.states[n].kind is PointKind.OTHER]

    def fails(self, point: int) -> bool:
        """Say whether the target failed at a point."""
        return self._first_step(point).samples[0].outcome is not Outcome.OK

    def summary(self, point: int) -> str:
        """Return what the first trials of a point show, in words."""
        return self._first_step(point).summary

    def _first_step(self, point: int) -> SearchStep[int]:
        return next(step for step in self.steps if step.point == point and not step.again)

    @property
    def confirmed(self) -> bool:
        """Whether the two are neighbours, and did the same twice, or often enough."""
        if self.others:
            return False
        return not self.flaky or (self.resampled is not None and self.resampled.is_enough)

    @property
    def works_nowhere(self) -> bool:
        """Whether the target failed at each point that was tried."""
        tried = (record for step in self.steps for record in step.samples)
        return all(record.outcome is not Outcome.OK for record in tried)

    @property
    def timeline(self) -> list[TimelineEntry]:
        """Stretches of points in one state, in order."""
        entries: list[TimelineEntry] = []
        for point, state in sorted(self.states.items()):
            last = entries[-1] if entries else None
            # Points that cannot be tried are one stretch, for any reasons.
            if last is not None and (
                last.state == state or not (last.state.is_known or state.is_known)
            ):
                entries[-1] = replace(last, last=point, state=state, tried=last.tried + 1)
            else:
                entries.append(
                    TimelineEntry(
                        first=point, last=point, state=state, summary=self.summary(point), tried=1
                    )
                )
        return entries
