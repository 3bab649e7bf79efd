"""What was unexpected over many runs, by root cause: since when, until when, where."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from conformance.engine.digests import regression_id
from conformance.engine.following import FINE, SILENT, Followed, Move
from conformance.report.tracks import release_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from conformance.engine.digests import Digest, JobState
    from conformance.model.outcome import Outcome, Verdict

    Jobs = NDArray[np.int64]
    Cause = tuple[str, str, str]


class Lifecycle(StrEnum):
    """Where a regression stands, or what happened to it."""

    OPEN = "open"
    """Some job of it shows it, as far as is known."""
    FIXED = "fixed"
    """Every job of it has run since, and shows it no more."""
    REOPENED = "reopened"
    """It was fixed, and is open again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A regression opened, was fixed, or was reopened.

    Attributes:
        kind: What happened.
        regression: Id of the regression.
        case: Its case.
        verdict: Its verdict.
        reason: Its reason, as it was first seen.
        run: Place of the run that showed it.
        cells: Where: the cells that came to show it, or ceased to.
    """

    kind: Lifecycle
    regression: str
    case: str
    verdict: Verdict
    reason: str
    run: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Jobs of a case that were unexpected for the same reason.

    Attributes:
        id: Stays the same as long as case, verdict and normalised reason do.
        case: The case.
        verdict: What it is unexpected as.
        outcome: How the first job that showed it ended.
        reason: The reason, as it was first seen.
        state: Where it stands.
        first: Place of the first run that showed it.
        last: Place of the last run that showed it.
        fixed_in: Place of the run that first showed it gone; None while it is open.
        reopened: How often it came back.
        cells: Every cell that ever showed it.
        open_cells: The cells that still do, as far as is known.
        releases: Releases of jax of the open cells, or of all of them once it is fixed.
    """

    id: str
    case: str
    verdict: Verdict
    outcome: Outcome
    reason: str
    state: Lifecycle
    first: int
    last: int
    fixed_in: int | None
    reopened: int
    cells: tuple[str, ...]
    open_cells: tuple[str, ...]
    releases: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether it is not fixed."""
        return self.state is not Lifecycle.FIXED


class Follower:
    """Follows what is unexpected from run to run, the oldest first.

    Args:
        cases: Place of every case.
        cells: Place of every cell.
    """

    def __init__(self, cases: Mapping[str, int], cells: Mapping[str, int]) -> None:
        self._cases, self._cells = cases, cells
        self._cell_names = tuple(cells)
        self._last = np.full((len(cases), len(cells)), FINE, np.int32)
        self._releases: dict[str, str] = {}
        self._known: dict[Cause, int] = {}
        self._followed: list[Followed] = []
        self.events: list[Event] = []

    def add(self, run: int, digest: Digest) -> None:
        """Take in the next run.

        Args:
            run: Its place.
            digest: What it says.
        """
        self._releases.update(zip(digest.cells, digest.releases, strict=True))
        now = self._causes(run, digest)
        rows = np.array([self._cases[name] for name in digest.cases], np.intp)
        columns = np.array([self._cells[name] for name in digest.cells], np.intp)
        place = np.ix_(rows, columns)
        before = self._last[place]
        changed = (now != SILENT) & (now != before)
        jobs = rows[:, None] * len(self._cells) + columns[None, :]
        gone = _by_cause(before[changed], jobs[changed])
        come = _by_cause(now[changed], jobs[changed])
        self._last[place] = np.where(now == SILENT, before, now)
        for cause in np.unique(now[now > FINE]):
            self._followed[cause - 1].last = run
        for cause in sorted(gone.keys() | come.keys(), key=lambda c: self._followed[c - 1].id):
            self._move(run, self._followed[cause - 1], gone.get(cause, ()), come.get(cause, ()))

    def _causes(self, run: int, digest: Digest) -> NDArray[np.int32]:
        """Return the cause of every job of a run, `FINE` or `SILENT`."""
        table = digest.table
        telling = np.array([False, *(state.telling for state in digest.states)])
        unexpected = np.array([False, *(state.unexpected for state in digest.states)])
        causes = np.where(telling[table], np.int32(FINE), np.int32(SILENT))
        at = np.nonzero((unexpected & telling)[table])
        many = len(digest.states) + 1
        pairs, which = np.unique(at[0] * many + table[at], return_inverse=True)
        numbers = [
            self._cause(run, digest.cases[pair // many], digest.states[pair % many - 1])
            for pair in pairs.tolist()
        ]
        causes[at] = np.array(numbers, np.int32)[which]
        return causes

    def _cause(self, run: int, case: str, state: JobState) -> int:
        key = (case, str(state.verdict), state.cause)
        if key not in self._known:
            self._known[key] = len(self._followed) + 1
            name = regression_id(*key)
            followed = Followed(id=name, case=case, state=state, first=run, last=run)
            self._followed.append(followed)
        return self._known[key]

    def _move(self, run: int, followed: Followed, gone: Sequence[int], come: Sequence[int]) -> None:
        """Take in which jobs ceased to show a cause, and which came to."""
        move = followed.move(run, gone, come)
        if move is None:
            return
        self.events.append(
            Event(
                kind=_lifecycle(followed),
                regression=followed.id,
                case=followed.case,
                verdict=followed.state.verdict,
                reason=followed.state.reason,
                run=run,
                cells=self._named(gone if move is Move.FIXED else come),
            )
        )

    def regressions(self) -> tuple[Regression, ...]:
        """Return every regression: the open ones first, then those that ended last."""
        made = [self._regression(followed) for followed in self._followed]
        return tuple(sorted(made, key=_urgency))

    def _regression(self, followed: Followed) -> Regression:
        cells, still = self._named(followed.ever), self._named(followed.open)
        releases = (self._releases[cell] for cell in still or cells)
        return Regression(
            id=followed.id,
            case=followed.case,
            verdict=followed.state.verdict,
            outcome=followed.state.outcome,
            reason=followed.state.reason,
            state=_lifecycle(followed),
            first=followed.first,
            last=followed.last,
            fixed_in=followed.fixed_in,
            reopened=followed.reopened,
            cells=cells,
            open_cells=still,
            releases=tuple(sorted(filter(None, set(releases)), key=release_order)),
        )

    def _named(self, jobs: Iterable[int]) -> tuple[str, ...]:
        places = sorted({job % len(self._cells) for job in jobs})
        return tuple(self._cell_names[place] for place in places)


def _lifecycle(followed: Followed) -> Lifecycle:
    if followed.fixed_in is not None:
        return Lifecycle.FIXED
    return Lifecycle.REOPENED if followed.reopened else Lifecycle.OPEN


def _urgency(regression: Regression) -> tuple[bool, int, str, str]:
    ended = regression.first if regression.fixed_in is None else regression.fixed_in
    return not regression.is_open, -ended, regression.case, regression.id


def _by_cause(causes: NDArray[np.int32], jobs: Jobs) -> dict[int, list[int]]:
    """Return jobs by their cause, those that have one."""
    found: dict[int, list[int]] = defaultdict(list)
    some = causes > FINE
    for cause, job in zip(causes[some].tolist(), jobs[some].tolist(), strict=True):
        found[cause].append(job)
    return found
