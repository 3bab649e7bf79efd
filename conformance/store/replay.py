"""Regressions by root cause, told from the changes of jobs: pure, whatever the store."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.engine.digests import regression_id
from conformance.engine.following import FINE, SILENT, Followed, Move
from conformance.store.standing import Event, Regression, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from conformance.engine.digests import JobState
    from conformance.store.standing import Link

    Numbers = NDArray[np.int64]

CONFIRMED: Final = 2
"""Times that a regression is seen before it is confirmed."""


_KINDS: Final = {
    Move.OPENED: Standing.NEW,
    Move.FIXED: Standing.FIXED,
    Move.REOPENED: Standing.REOPENED,
}


@dataclass(frozen=True, slots=True)
class Changes:
    """What runs showed of jobs that was not known of them, by job and run.

    Attributes:
        job: The job of each.
        run: The run.
        state: What it showed.
        repeated: Whether it was shown several times.
    """

    job: Numbers
    run: Numbers
    state: Numbers
    repeated: NDArray[np.bool_]

    def __getitem__(self, which: NDArray[Any]) -> Changes:
        """Return some of them."""
        columns = (self.job, self.run, self.state, self.repeated)
        return Changes(*(column[which] for column in columns))


@dataclass(slots=True, kw_only=True)
class _Followed(Followed):
    """A regression under way, and how often it was seen."""

    seen: int = 0

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
        changes: What was not known of a job.
    """

    def __init__(
        self, jobs: Mapping[int, tuple[str, str]], states: Mapping[int, JobState], changes: Changes
    ) -> None:
        self._jobs, self._states = jobs, states
        self._followed: list[_Followed] = []
        self.events: list[Event] = []
        bad = np.zeros(max(states, default=0) + 1, bool)
        bad[[n for n, state in states.items() if state.unexpected and state.telling]] = True
        self._ever = np.zeros(max(jobs, default=0) + 1, bool)
        """Which jobs were ever unexpected: most are fine all the time."""
        self._ever[changes.job[bad[changes.state]]] = True
        changes = changes[self._ever[changes.job]]
        causes = self._causes(changes, bad)
        before = _before(changes.job, causes)
        moves = (causes != SILENT) & (causes != before)
        again = changes.repeated & (causes > FINE)
        self._shows = _by_run(changes.run, changes.job, causes)
        self._moves = _by_run(changes.run[moves], changes.job[moves], before[moves], causes[moves])
        self._repeated = _by_run(changes.run[again], causes[again])
        self._shown = np.full(len(self._ever), FINE, np.int64)
        """What the last run that ran it showed of each job."""

    def _causes(self, changes: Changes, bad: NDArray[np.bool_]) -> Numbers:
        """Return the cause of every change, `FINE` or `SILENT`; each cause is followed."""
        silent = np.zeros(len(bad), bool)
        silent[[n for n, state in self._states.items() if not state.telling]] = True
        causes = np.where(silent[changes.state], SILENT, FINE)
        at = np.nonzero(bad[changes.state])[0]
        at = at[np.lexsort((changes.job[at], changes.run[at]))]
        known: dict[tuple[str, str, str], int] = {}
        pairs: dict[tuple[str, int], int] = {}
        found = []
        rows = (column[at].tolist() for column in (changes.job, changes.state, changes.run))
        for job, number, run in zip(*rows, strict=True):
            case = self._jobs[job][0]
            if (case, number) not in pairs:
                state = self._states[number]
                key = (case, str(state.verdict), state.cause)
                if key not in known:
                    self._followed.append(
                        _Followed(id=regression_id(*key), case=case, state=state, first=run)
                    )
                    known[key] = len(self._followed)
                pairs[case, number] = known[key]
            found.append(pairs[case, number])
        causes[at] = found
        return causes

    def run(self, runs: Sequence[tuple[int, int]], plans: Mapping[int, Numbers]) -> None:
        """Take in all runs.

        Args:
            runs: Number and plan of every run that is kept, in order.
            plans: The jobs of every plan.
        """
        start = runs[0][0] if runs else 0
        for run in sorted(run for run in self._shows if run < start):
            self._take(run)
        for followed in self._followed:
            if followed.ever:  # what holds from before the beginning was judged then
                followed.seen, followed.last = CONFIRMED, followed.first
        self.events.clear()
        within = {number: jobs[self._ever[jobs]] for number, jobs in plans.items()}
        for run, plan in runs:
            self._take(run)
            shown = self._shown[within[plan]]
            for cause in np.unique(shown[shown > FINE]).tolist():
                self._seen(run, self._followed[cause - 1], 1)

    def _take(self, run: int) -> None:
        """Take in the changes of a run."""
        for jobs, causes in self._shows.get(run, ()):
            self._shown[jobs] = causes
        gone: dict[int, list[int]] = defaultdict(list)
        come: dict[int, list[int]] = defaultdict(list)
        for moved in self._moves.get(run, ()):
            for job, before, now in zip(*(column.tolist() for column in moved), strict=True):
                gone[before].append(job)
                come[now].append(job)
        for cause in sorted((gone.keys() | come.keys()) - {FINE}, key=self._id_of):
            self._move(run, self._followed[cause - 1], gone.get(cause, ()), come.get(cause, ()))
        for (causes,) in self._repeated.get(run, ()):
            for cause in np.unique(causes).tolist():
                self._seen(run, self._followed[cause - 1], CONFIRMED)

    def _id_of(self, cause: int) -> str:
        return self._followed[cause - 1].id

    def _move(
        self, run: int, followed: _Followed, gone: Sequence[int], come: Sequence[int]
    ) -> None:
        """Take in which jobs ceased to show a cause, and which came to."""
        move = followed.move(run, gone, come)
        if move is not None:
            self._tell(_KINDS[move], followed, run, gone if move is Move.FIXED else come)

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


def _before(jobs: Numbers, causes: Numbers) -> Numbers:
    """Return what was known before each change, which are by job and run.

    Where a job was silent, what was known of it stays.
    """
    known = np.full(len(jobs), FINE, np.int64)
    at = np.nonzero(causes != SILENT)[0]
    follows = jobs[at][1:] == jobs[at][:-1]
    known[at[1:][follows]] = causes[at[:-1][follows]]
    return known


def _by_run(runs: Numbers, *columns: Numbers) -> dict[int, list[tuple[Numbers, ...]]]:
    """Return rows by their run."""
    order = np.argsort(runs, kind="stable")
    found, starts = np.unique(runs[order], return_index=True)
    parts = zip(*(np.split(column[order], starts[1:]) for column in columns), strict=True)
    return {run: [part] for run, part in zip(found.tolist(), parts, strict=False)}
