"""Regressions by root cause, told from the changes of jobs: pure, whatever the store."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from conformance.engine.digests import regression_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from conformance.engine.digests import State

    Numbers = NDArray[np.int64]

FINE: Final = 0
"""In the place of a cause: the job ran, and is not unexpected."""
SILENT: Final = -1
"""In the place of a cause: the job says nothing about JAX."""
CONFIRMED: Final = 2
"""Times that a regression is seen before it is confirmed."""


class Standing(StrEnum):
    """Where a regression stands, or what happened to it."""

    NEW = "new"
    """One run showed it, once."""
    CONFIRMED = "confirmed"
    """Two runs showed it, or one in which it was repeated."""
    KNOWN = "known"
    """An issue is linked, since it was opened last."""
    FIXED = "fixed"
    """Every job of it has run since, and shows it no more."""
    REOPENED = "reopened"
    """It was fixed, and is open again."""


@dataclass(frozen=True, slots=True)
class Link:
    """An issue of a regression, and the newest run when it was linked."""

    issue: str
    run: int


@dataclass(frozen=True, slots=True)
class Change:
    """A run showed of a job what was not known of it."""

    run: int
    job: int
    state: int
    repeated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something happened to a regression.

    Attributes:
        kind: What.
        regression: Id of the regression.
        run: Number of the run that showed it.
        places: Where: the places that came to show it, or ceased to; all of a confirmation.
    """

    kind: Standing
    regression: str
    run: int
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Jobs of a case that were unexpected for the same reason.

    Attributes:
        id: Stays the same as long as case, verdict and cause do.
        case: The case.
        state: What its first job showed.
        standing: Where it stands.
        issue: The linked issue, empty if there is none.
        first: Number of the first run that showed it, as far as runs are kept.
        last: Number of the last run that showed it.
        fixed_in: Number of the run that first showed it gone; None while it is open.
        reopened: How often it came back.
        places: Every place that ever showed it.
        open_places: The places that still do, as far as is known.
    """

    id: str
    case: str
    state: State
    standing: Standing
    issue: str
    first: int
    last: int
    fixed_in: int | None
    reopened: int
    places: tuple[str, ...]
    open_places: tuple[str, ...]


@dataclass(slots=True)
class _Followed:
    """A regression under way."""

    id: str
    case: str
    state: State
    first: int
    last: int = 0
    seen: int = 0
    open: set[int] = field(default_factory=set)
    ever: set[int] = field(default_factory=set)
    fixed_in: int | None = None
    opened_in: int = 0
    reopened: int = 0

    def standing(self, link: Link | None) -> Standing:
        if self.fixed_in is not None:
            return Standing.FIXED
        if link is not None and link.run >= self.opened_in:
            return Standing.KNOWN
        if self.reopened:
            return Standing.REOPENED
        if link is not None:
            return Standing.KNOWN
        return Standing.CONFIRMED if self.seen >= CONFIRMED else Standing.NEW


class Replay:
    """Follows regressions from run to run, the oldest first.

    Args:
        jobs: Case and place of every job.
        states: Every state.
        changes: What was not known of a job, by run.
    """

    def __init__(
        self,
        jobs: Mapping[int, tuple[str, str]],
        states: Mapping[int, State],
        changes: Iterable[Change],
    ) -> None:
        self._jobs, self._states = jobs, states
        self._known: dict[tuple[str, str, str], int] = {}
        self._followed: list[_Followed] = []
        self.events: list[Event] = []
        self._changes: dict[int, list[Change]] = defaultdict(list)
        telling = {n for n, state in states.items() if state.unexpected and state.telling}
        every = list(changes)
        # Most jobs are fine all the time.
        ever = {change.job for change in every if change.state in telling}
        for change in every:
            if change.job in ever:
                self._changes[change.run].append(change)
        size = max(ever, default=0) + 1
        self._ever = np.array(sorted(ever), np.int64)
        self._cause = np.full(size, FINE, np.int64)
        """What is known of each job; of a silent one what was known before."""
        self._shown = np.full(size, FINE, np.int64)
        """What the last run that ran it showed of each job."""

    def run(self, runs: Sequence[tuple[int, int]], plans: Mapping[int, Numbers]) -> None:
        """Take in all runs.

        Args:
            runs: Number and plan of every run that is kept, in order.
            plans: The jobs of every plan.
        """
        start = runs[0][0] if runs else 0
        for run in sorted(run for run in self._changes if run < start):
            self._move_all(run)
        for followed in self._followed:
            # What holds from before the beginning was judged then.
            followed.seen, followed.last = CONFIRMED, followed.first
        self.events.clear()
        within = {number: np.intersect1d(self._ever, jobs) for number, jobs in plans.items()}
        for run, plan in runs:
            self._move_all(run)
            self._see(run, within[plan])

    def _move_all(self, run: int) -> None:
        """Take in the changes of a run."""
        gone: dict[int, list[int]] = defaultdict(list)
        come: dict[int, list[int]] = defaultdict(list)
        repeated = set()
        for change in self._changes.get(run, ()):
            now = self._cause_of(run, change)
            before = int(self._cause[change.job])
            self._shown[change.job] = now
            if now > FINE and change.repeated:
                repeated.add(now)
            if now in (SILENT, before):
                continue
            self._cause[change.job] = now
            if before > FINE:
                gone[before].append(change.job)
            if now > FINE:
                come[now].append(change.job)
        for cause in sorted(gone.keys() | come.keys(), key=lambda c: self._followed[c - 1].id):
            self._move(run, self._followed[cause - 1], gone.get(cause, ()), come.get(cause, ()))
        for cause in sorted(repeated):
            self._seen(run, self._followed[cause - 1], CONFIRMED)

    def _cause_of(self, run: int, change: Change) -> int:
        state = self._states[change.state]
        if not state.telling:
            return SILENT
        if not state.unexpected:
            return FINE
        case = self._jobs[change.job][0]
        key = (case, str(state.verdict), state.cause)
        if key not in self._known:
            self._followed.append(_Followed(regression_id(*key), case, state, run))
            self._known[key] = len(self._followed)
        return self._known[key]

    def _move(
        self, run: int, followed: _Followed, gone: Sequence[int], come: Sequence[int]
    ) -> None:
        """Take in which jobs ceased to show a cause, and which came to."""
        was_open = bool(followed.open)
        followed.open.difference_update(gone)
        followed.open.update(come)
        followed.ever.update(come)
        if bool(followed.open) is was_open:
            return
        if was_open:
            followed.fixed_in = run
            kind = Standing.FIXED
        else:
            again = followed.fixed_in is not None
            followed.fixed_in, followed.opened_in = None, run
            followed.reopened += again
            kind = Standing.REOPENED if again else Standing.NEW
        self._tell(kind, followed, run, gone if was_open else come)

    def _see(self, run: int, jobs: Numbers) -> None:
        """Count the regressions that a run shows."""
        shown = self._shown[jobs]
        for cause in np.unique(shown[shown > FINE]).tolist():
            self._seen(run, self._followed[cause - 1], 1)

    def _seen(self, run: int, followed: _Followed, times: int) -> None:
        followed.last = run
        before, followed.seen = followed.seen, followed.seen + times
        if before < CONFIRMED <= followed.seen:
            self._tell(Standing.CONFIRMED, followed, run, followed.open)

    def _tell(self, kind: Standing, followed: _Followed, run: int, jobs: Iterable[int]) -> None:
        places = self._places(jobs)
        self.events.append(Event(kind=kind, regression=followed.id, run=run, places=places))

    def _places(self, jobs: Iterable[int]) -> tuple[str, ...]:
        return tuple(sorted({self._jobs[job][1] for job in jobs}))

    def regressions(self, links: Mapping[str, Link]) -> list[Regression]:
        """Return every regression: the open ones first, then those that ended last.

        Args:
            links: Issues by the id of the regression.
        """
        made = [self._regression(one, links.get(one.id)) for one in self._followed]
        return sorted(made, key=_urgency)

    def _regression(self, followed: _Followed, link: Link | None) -> Regression:
        return Regression(
            id=followed.id,
            case=followed.case,
            state=followed.state,
            standing=followed.standing(link),
            issue="" if link is None else link.issue,
            first=followed.first,
            last=followed.last,
            fixed_in=followed.fixed_in,
            reopened=followed.reopened,
            places=self._places(followed.ever),
            open_places=self._places(followed.open),
        )


def _urgency(regression: Regression) -> tuple[bool, int, str, str]:
    fixed = regression.fixed_in
    at = regression.first if fixed is None else fixed
    return fixed is not None, -at, regression.case, regression.id
