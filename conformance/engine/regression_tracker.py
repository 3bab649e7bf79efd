"""Regressions by root cause, tracked from run to run: over a report's arrays, or a store's rows.

Pure: runs, jobs and states are numbers here, wherever they come from.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from conformance.engine.digests import make_regression_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from conformance.engine.digests import JobState

    Numbers = NDArray[np.int64]

FINE: Final = 0
"""In the place of a cause: the job ran, and is not unexpected."""
SILENT: Final = -1
"""In the place of a cause: the job did not run, or says nothing about JAX."""
CONFIRMED: Final = 2
"""Times that a regression is seen before it is confirmed."""
_NONE: Final = np.zeros(0, np.int64)


class RegressionStatus(StrEnum):
    """The status of a regression, or what happened to it."""

    NEW = "new"
    """One run showed it, once."""
    CONFIRMED = "confirmed"
    """Two runs showed it, or one in which it was repeated."""
    KNOWN = "known"
    """An issue was linked after it was last opened."""
    FIXED = "fixed"
    """Every job of it has run again, and no longer shows it."""
    REOPENED = "reopened"
    """It was fixed, and is open again."""


@dataclass(frozen=True, slots=True)
class IssueLink:
    """An issue of a regression, and the newest run when it was linked."""

    issue: str
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionEvent:
    """Something happened to a regression.

    Attributes:
        kind: What.
        regression: Id of the regression.
        run: Number of the run that showed it.
        places: The places that came to show it, or ceased to; all of them for a confirmation.
    """

    kind: RegressionStatus
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
        status: Its status.
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
        seen: How often it was seen, a repeated job counting twice.
        open: The jobs that show it, as far as is known.
        ever: Those that ever did.
        opened_in: The run that opened it last.
    """

    id: str
    case: str
    state: JobState
    first: int
    last: int = 0
    seen: int = 0
    open: set[int] = field(default_factory=set)
    ever: set[int] = field(default_factory=set)
    fixed_in: int | None = None
    opened_in: int = 0
    reopened: int = 0

    def move(
        self, run: int, gone: Iterable[int], come: Iterable[int]
    ) -> tuple[RegressionStatus, Iterable[int]] | None:
        """Record the jobs that ceased to show it and those that came to.

        Returns:
            What happened to it and the jobs that made it so; None if it is as open as before. A job
            that did not run still shows it, as far as is known.
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
        """Return its status; a link counts for one that was reopened only if it was made after."""
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
        states: The states; any other number means that a job did not run.
    """

    def __init__(self, states: Mapping[int, JobState]) -> None:
        self.states = states
        self.causes = np.full(max(states, default=0) + 1, SILENT, np.int64)
        """`FINE` or `SILENT` for each state."""
        self.unexpected = np.zeros(len(self.causes), bool)
        """Whether each state is a regression's."""
        for number, state in states.items():
            if state.telling:
                self.causes[number] = FINE
                self.unexpected[number] = state.unexpected


class RegressionTracker:
    """Tracks regressions from run to run, the oldest first.

    Args:
        cases: Every case.
        case_of: For each job the number of its case.
        places: Every place, in the order in which regressions name them.
        place_of: For each job the number of its place.
    """

    def __init__(
        self, cases: Sequence[str], case_of: Numbers, places: Sequence[str], place_of: Numbers
    ) -> None:
        self._cases, self._case_of = cases, case_of
        self._places, self._place_of = places, place_of
        self._shown = np.full(len(case_of), FINE, np.int64)
        """The cause that each job showed when it last ran."""
        self._known = self._shown.copy()
        """The same, without the runs in which it was silent."""
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._tracked: list[_Tracked] = []
        self.events: list[RegressionEvent] = []

    def add(
        self, run: int, jobs: Numbers, states: Numbers, table: StateTable,
        *, ran: Numbers, repeated: Numbers = _NONE,
    ) -> None:  # fmt: skip
        """Add the next run.

        Args:
            run: Its number.
            jobs: The jobs whose state is given; each other job is as before.
            states: The number of each one's state.
            table: The states.
            ran: The jobs that ran.
            repeated: Those of `jobs` that were run several times, and showed the same.
        """
        now = self._identify(run, jobs, states, table)
        before = self._known[jobs]
        changed = (now != SILENT) & (now != before)
        self._shown[jobs] = now
        self._known[jobs] = np.where(now == SILENT, before, now)
        gone, come = (_by_cause(causes[changed], jobs[changed]) for causes in (before, now))
        for number in sorted(gone.keys() | come.keys(), key=lambda n: self._tracked[n - 1].id):
            one = self._tracked[number - 1]
            moved = one.move(run, gone.get(number, ()), come.get(number, ()))
            if moved is not None:
                self._add_event(run, one, *moved)
        self._see(run, repeated, CONFIRMED)
        self._see(run, ran, 1)

    def start(self) -> None:
        """Start the history here: earlier events are dropped, and all that is open was confirmed.

        For states whose own runs are no longer kept.
        """
        self.events.clear()
        for one in self._tracked:
            one.seen, one.last = CONFIRMED, one.first

    def regressions(self, links: Mapping[str, IssueLink] | None = None) -> list[Regression]:
        """Return every regression: the open ones first, then those that ended last.

        Args:
            links: Issues by the id of the regression.
        """
        made = [self._regression(one, (links or {}).get(one.id)) for one in self._tracked]
        return sorted(made, key=_order)

    def _identify(self, run: int, jobs: Numbers, states: Numbers, table: StateTable) -> Numbers:
        """Return the cause of each job; a new one is tracked from now on."""
        causes = table.causes[states]
        at = np.nonzero(table.unexpected[states])[0]
        # Many jobs share a case and a state: only the distinct pairs are looked at one by one.
        pairs = self._case_of[jobs[at]] * len(table.causes) + states[at]
        distinct, firsts, which = np.unique(pairs, return_index=True, return_inverse=True)
        numbers = np.zeros(len(distinct), np.int64)
        for pair in np.argsort(firsts).tolist():  # so that the first job gives the state
            case, state = divmod(int(distinct[pair]), len(table.causes))
            numbers[pair] = self._number(run, self._cases[case], table.states[state])
        causes[at] = numbers[which]
        return causes

    def _number(self, run: int, case: str, state: JobState) -> int:
        key = (case, str(state.verdict), state.cause)
        if key not in self._numbers:
            self._tracked.append(
                _Tracked(id=make_regression_id(*key), case=case, state=state, first=run)
            )
            self._numbers[key] = len(self._tracked)
        return self._numbers[key]

    def _see(self, run: int, jobs: Numbers, times: int) -> None:
        shown = self._shown[jobs]
        for number in np.unique(shown[shown > FINE]).tolist():
            one = self._tracked[number - 1]
            one.last = run
            before, one.seen = one.seen, one.seen + times
            if before < CONFIRMED <= one.seen:
                self._add_event(run, one, RegressionStatus.CONFIRMED, one.open)

    def _add_event(
        self, run: int, one: _Tracked, kind: RegressionStatus, jobs: Iterable[int]
    ) -> None:
        places = tuple(self._named(jobs))
        self.events.append(RegressionEvent(kind=kind, regression=one.id, run=run, places=places))

    def _named(self, jobs: Iterable[int]) -> Iterator[str]:
        return (self._places[n] for n in sorted({int(self._place_of[job]) for job in jobs}))

    def _regression(self, one: _Tracked, link: IssueLink | None) -> Regression:
        return Regression(
            id=one.id,
            case=one.case,
            state=one.state,
            status=one.status(link),
            issue="" if link is None else link.issue,
            first=one.first,
            last=one.last,
            fixed_in=one.fixed_in,
            reopened=one.reopened,
            places=tuple(self._named(one.ever)),
            open_places=tuple(self._named(one.open)),
        )


def _order(regression: Regression) -> tuple[bool, int, str, str]:
    at = regression.first if regression.fixed_in is None else regression.fixed_in
    return not regression.is_open, -at, regression.case, regression.id


def _by_cause(causes: Numbers, jobs: Numbers) -> dict[int, list[int]]:
    """Return jobs by their cause, those that have one."""
    found: dict[int, list[int]] = defaultdict(list)
    some = causes > FINE
    for cause, job in zip(causes[some].tolist(), jobs[some].tolist(), strict=True):
        found[cause].append(job)
    return found
