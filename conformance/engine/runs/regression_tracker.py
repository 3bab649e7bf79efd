"""Tracking of regressions from run to run. Pure.

Runs, jobs and states are numbers, so that reports can pass arrays and the store rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from conformance.engine.runs.digests import make_regression_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from conformance.engine.runs.digests import JobState

    Numbers = NDArray[np.int64]

FINE: Final = 0
"""In place of a cause: the job was observed and is expected."""
SILENT: Final = -1
"""In place of a cause: the job was not observed, or not judged."""
CONFIRMED: Final = 2
"""Observations of a regression until it is confirmed."""
_NONE: Final = np.zeros(0, np.int64)


class RegressionStatus(StrEnum):
    """The status of a regression, or the kind of an event."""

    NEW = "new"
    """Observed once."""
    CONFIRMED = "confirmed"
    """Observed in two runs, or in one that repeated it."""
    KNOWN = "known"
    """Linked to an issue after it was last opened."""
    FIXED = "fixed"
    """Gone in every job of it, all of which ran again."""
    REOPENED = "reopened"
    """Open again after it was fixed."""


@dataclass(frozen=True, slots=True)
class IssueLink:
    """The issue of a regression, and the number of the newest run when it was linked."""

    issue: str
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionEvent:
    """A change of the status of a regression.

    Attributes:
        kind: The new status.
        regression: Id of the regression.
        run: Number of the run with the change.
        places: Places that began or ceased to show it; all open places for a confirmation.
    """

    kind: RegressionStatus
    regression: str
    run: int
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Jobs of a case that were unexpected for the same reason.

    Attributes:
        id: Stable as long as case, verdict and cause are the same.
        case: Case id.
        state: State of its first job.
        status: Current status.
        issue: Linked issue, empty for none.
        first: Number of the first run that showed it, among the stored runs.
        last: Number of the last run that showed it.
        fixed_in: Number of the run that fixed it, None while it is open.
        reopened: Number of times that it was reopened.
        places: Every place that ever showed it.
        open_places: Places that showed it when they last ran.
    """

    id: str
    case: str
    state: JobState
    status: RegressionStatus
    issue: str
    first: int
    last: int
    fixed_in: int | None
    reopened: int
    places: tuple[str, ...]
    open_places: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether it is not fixed."""
        return self.fixed_in is None


@dataclass(slots=True, kw_only=True)
class _Tracked:
    """A regression while it is tracked.

    Attributes:
        seen: Number of observations; a repeated job counts twice.
        open: Jobs that showed it when they last ran.
        ever: Jobs that ever showed it.
        opened_in: Run that opened it last.
    """

    id: str
    case: str
    state: JobState
    first: int
    last: int = 0
    seen: int = 0
    # Sets of jobs, not of places: a place is open until its last job has recovered.
    open: set[int] = field(default_factory=set)
    ever: set[int] = field(default_factory=set)
    fixed_in: int | None = None
    opened_in: int = 0
    reopened: int = 0

    def update(
        self, run: int, gone: Iterable[int], come: Iterable[int]
    ) -> tuple[RegressionStatus, Iterable[int]] | None:
        """Record the jobs that ceased and those that began to show it.

        Returns:
            The new status and the jobs that caused it, None if it is as open as before. A job that
            did not run counts as unchanged.
        """
        was_open = bool(self.open)
        self.open.difference_update(gone)
        self.open.update(come)
        self.ever.update(come)
        if bool(self.open) is was_open:
            return None
        if was_open:
            self.fixed_in = run
            return RegressionStatus.FIXED, gone
        again = self.fixed_in is not None
        self.fixed_in, self.opened_in = None, run
        self.reopened += again
        return RegressionStatus.REOPENED if again else RegressionStatus.NEW, come

    def status(self, link: IssueLink | None) -> RegressionStatus:
        """Return the status. A link from before the last reopening does not count."""
        if self.fixed_in is not None:
            return RegressionStatus.FIXED
        if link is not None and (link.run >= self.opened_in or not self.reopened):
            return RegressionStatus.KNOWN
        if self.reopened:
            return RegressionStatus.REOPENED
        return RegressionStatus.CONFIRMED if self.seen >= CONFIRMED else RegressionStatus.NEW


class StateTable:
    """States by number.

    Args:
        states: The states by number; other numbers mean that a job did not run.
    """

    def __init__(self, states: Mapping[int, JobState]) -> None:
        self.states = states
        # An array indexed by state: NumPy looks up 50,000 jobs of a run at once.
        self.causes = np.full(max(states, default=0) + 1, SILENT, np.int64)
        """`FINE` or `SILENT` for each state."""
        self.unexpected = np.zeros(len(self.causes), bool)
        """Whether each state is a regression's."""
        for number, state in states.items():
            if state.is_conclusive:
                self.causes[number] = FINE
                self.unexpected[number] = state.unexpected


class RegressionTracker:
    """Tracks regressions from run to run, the oldest first.

    Args:
        cases: All cases.
        case_of: Number of the case of each job, `int64[jobs]`.
        places: All places, in the order in which regressions name them.
        place_of: Number of the place of each job, `int64[jobs]`.
    """

    def __init__(
        self, cases: Sequence[str], case_of: Numbers, places: Sequence[str], place_of: Numbers
    ) -> None:
        self._cases, self._case_of = cases, case_of
        self._places, self._place_of = places, place_of
        self._shown = np.full(len(case_of), FINE, np.int64)
        """Cause of each job in its last run."""
        # Kept apart from the last run: a job that could not run neither opens nor fixes anything.
        self._known = self._shown.copy()
        """Cause of each job in the last run that observed it."""
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._tracked: list[_Tracked] = []
        self.events: list[RegressionEvent] = []

    def add(
        self, run: int, jobs: Numbers, states: Numbers, table: StateTable,
        *, ran: Numbers, repeated: Numbers = _NONE,
    ) -> None:  # fmt: skip
        """Add the next run.

        Args:
            run: Number of the run.
            jobs: Jobs with a state; all others are unchanged.
            states: Number of the state of each of `jobs`.
            table: States by number.
            ran: Jobs that ran.
            repeated: Jobs of `jobs` whose repeated attempts agreed.
        """
        now = self._identify(run, jobs, states, table)
        before = self._known[jobs]
        changed = (now != SILENT) & (now != before)
        self._shown[jobs] = now
        self._known[jobs] = np.where(now == SILENT, before, now)
        gone, come = (_group_by_cause(causes[changed], jobs[changed]) for causes in (before, now))
        # By id, so that the order of events does not depend on the order of jobs.
        for number in sorted(gone.keys() | come.keys(), key=lambda n: self._tracked[n - 1].id):
            tracked = self._tracked[number - 1]
            moved = tracked.update(run, gone.get(number, ()), come.get(number, ()))
            if moved is not None:
                self._add_event(run, tracked, *moved)
        # Attempts that agree within a run confirm it as well as a second run does.
        self._count_observations(run, repeated, CONFIRMED)
        self._count_observations(run, ran, 1)

    def restart(self) -> None:
        """Start the history here: drop earlier events, and count open regressions as confirmed.

        The runs with those events are no longer stored.
        """
        self.events.clear()
        for tracked in self._tracked:
            tracked.seen, tracked.last = CONFIRMED, tracked.first

    def list_regressions(self, links: Mapping[str, IssueLink] | None = None) -> list[Regression]:
        """Return every regression: the open ones first, then those that ended last.

        Args:
            links: Issues by the id of the regression.
        """
        made = [
            self._make_regression(tracked, (links or {}).get(tracked.id))
            for tracked in self._tracked
        ]
        return sorted(made, key=_make_sort_key)

    def _identify(self, run: int, jobs: Numbers, states: Numbers, table: StateTable) -> Numbers:
        """Return the cause of each job, and begin to track new causes."""
        causes = table.causes[states]
        at = np.nonzero(table.unexpected[states])[0]
        # Many jobs share case and state: the loop is over distinct pairs, the rest is vectorised.
        pairs = self._case_of[jobs[at]] * len(table.causes) + states[at]
        distinct, firsts, which = np.unique(pairs, return_index=True, return_inverse=True)
        numbers = np.zeros(len(distinct), np.int64)
        for pair in np.argsort(firsts).tolist():  # the first job determines the state
            case, state = divmod(int(distinct[pair]), len(table.causes))
            numbers[pair] = self._assign_number(run, self._cases[case], table.states[state])
        causes[at] = numbers[which]
        return causes

    def _assign_number(self, run: int, case: str, state: JobState) -> int:
        key = (case, str(state.verdict), state.cause)
        if key not in self._numbers:
            self._tracked.append(
                _Tracked(id=make_regression_id(*key), case=case, state=state, first=run)
            )
            self._numbers[key] = len(self._tracked)
        return self._numbers[key]

    def _count_observations(self, run: int, jobs: Numbers, times: int) -> None:
        shown = self._shown[jobs]
        for number in np.unique(shown[shown > FINE]).tolist():
            tracked = self._tracked[number - 1]
            tracked.last = run
            before, tracked.seen = tracked.seen, tracked.seen + times
            if before < CONFIRMED <= tracked.seen:
                self._add_event(run, tracked, RegressionStatus.CONFIRMED, tracked.open)

    def _add_event(
        self, run: int, tracked: _Tracked, kind: RegressionStatus, jobs: Iterable[int]
    ) -> None:
        places = tuple(self._list_places(jobs))
        self.events.append(
            RegressionEvent(kind=kind, regression=tracked.id, run=run, places=places)
        )

    def _list_places(self, jobs: Iterable[int]) -> Iterator[str]:
        return (self._places[n] for n in sorted({int(self._place_of[job]) for job in jobs}))

    def _make_regression(self, tracked: _Tracked, link: IssueLink | None) -> Regression:
        return Regression(
            id=tracked.id,
            case=tracked.case,
            state=tracked.state,
            status=tracked.status(link),
            issue="" if link is None else link.issue,
            first=tracked.first,
            last=tracked.last,
            fixed_in=tracked.fixed_in,
            reopened=tracked.reopened,
            places=tuple(self._list_places(tracked.ever)),
            open_places=tuple(self._list_places(tracked.open)),
        )


def _make_sort_key(regression: Regression) -> tuple[bool, int, str, str]:
    at = regression.first if regression.fixed_in is None else regression.fixed_in
    return not regression.is_open, -at, regression.case, regression.id


def _group_by_cause(causes: Numbers, jobs: Numbers) -> dict[int, list[int]]:
    """Group jobs by cause, without those that have none."""
    found: dict[int, list[int]] = defaultdict(list)
    some = causes > FINE
    for cause, job in zip(causes[some].tolist(), jobs[some].tolist(), strict=True):
        found[cause].append(job)
    return found
