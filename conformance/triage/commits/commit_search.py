"""The search for the commit of a package that made the difference between two of its releases.

Four combinations of sources and environment lead it: the sources of the older and of the newer
release, each with the other packages of the older and of the newer release. Two of them are the
releases themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from conformance.search.bisection import choose_untried_points, find_change_points
from conformance.search.trials import CellTrials
from conformance.triage.commits.commit_cells import NEWER, OLDER

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping, Sequence

    from conformance.cells.source_commit import SourceCommit
    from conformance.engine.runs.stored_job import StoredJob
    from conformance.search.answers import SearchStep
    from conformance.search.bisection import ChangePoint, States
    from conformance.search.point_predicates import PointPredicate
    from conformance.search.predicates import PointState
    from conformance.triage.commits.commit_cells import CommitCells

    CrossPoint = tuple[int, int]
    """Number of a commit, and that of the environment in which it is tried."""

BOTH: Final = (OLDER, NEWER)
MIXED: Final = (
    "the commit, or other packages: the two sides ran with different packages, as those of no "
    "release import both of them"
)
PARTIAL: Final = (
    "with the older packages the newer sources behave like neither release: other packages take "
    "part in the difference"
)
UNPROVEN: Final = (
    "not proven: the sources of the older release do not fit the newer packages, and a commit that "
    "acts only with these may be the culprit, or none"
)


class CommitVerdict(StrEnum):
    """The kind of culprit between two releases of a package."""

    COMMIT = "commit"
    """A commit of the package makes the difference."""
    INTERACTION = "interaction"
    """A commit makes the difference, but only with the other packages of the newer release."""
    ENVIRONMENT = "environment"
    """No commit of the package explains it: the sources of both releases behave alike."""
    UNTESTABLE = "untestable"
    """No commit in question can be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFinding:
    """The result of a search for a commit.

    Attributes:
        verdict: Kind of the culprit.
        cells: The commits, and the environments in which they were tried.
        states: State of each commit that was tried, by its number.
        main: The change to the behaviour of the newer release that is nearest to it; None if no
            commit explains the difference.
        changes: All changes between commits that were tried.
        steps: Every trial of a commit, in order.
        checks: Trials of sources in the environment of the other release.
        flaky: Counts of the states of commits whose trials disagree.
        remarks: Limits of the answer, in words.
    """

    verdict: CommitVerdict
    cells: CommitCells
    states: States = field(default_factory=dict)
    main: ChangePoint | None = None
    changes: Sequence[ChangePoint] = ()
    steps: Sequence[SearchStep[int]] = ()
    checks: Sequence[SearchStep[CrossPoint]] = ()
    flaky: Mapping[int, Counter[PointState]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def candidates(self) -> list[SourceCommit]:
        """The commits that may have made the difference: one, unless some cannot be tried."""
        if self.main is None:
            return []
        return list(self.cells.commits[self.main.before + 1 : self.main.after + 1])

    @property
    def is_confirmed(self) -> bool:
        """Whether the answer is one commit, or no commit, with reproducible trials."""
        if self.verdict is CommitVerdict.UNTESTABLE or {MIXED, UNPROVEN} & {*self.remarks}:
            return False
        return not self.flaky and len(self.candidates) <= 1


@dataclass(slots=True, kw_only=True)
class CommitSearch:
    """A search for a commit between two releases that a predicate separates.

    Attributes:
        cells: The commits from the older release, which is the first, to the newer, the last.
        trials: Trials of the commits, by number.
        predicate: Predicate that separates the releases.
        releases: Samples of the older and of the newer release.
        twins: Numbers of commits that the branch of the older release has under another hash.
        is_branched: Whether the older release is on a branch that the newer one does not contain.
        width: Trials at the same time.
        report: Receives each trial of sources in the environment of the other release.
    """

    cells: CommitCells
    trials: CellTrials[int]
    predicate: PointPredicate
    releases: tuple[Sequence[StoredJob], Sequence[StoredJob]]
    twins: frozenset[int] = frozenset()
    is_branched: bool = False
    width: int = 2
    report: Callable[[SearchStep[CrossPoint]], None] = lambda _: None
    _checks: CellTrials[CrossPoint] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the trials of combinations, with the log of the trials of commits."""
        trials = self.trials
        self._checks = CellTrials(
            cell_of=lambda point: self.cells.prepare_on(*point),
            name_of=lambda point: self.cells.labels[point[0]],
            prober=trials.prober, blobs=trials.blobs, keep=trials.keep, known=trials.known,
            tolerance=trials.tolerance, metric=trials.metric, progress=self.report,
        )  # fmt: skip

    def run(self) -> CommitFinding:
        """Search for the commit.

        Raises:
            InfrastructureError: If git fails, an environment cannot be provided, or the disk
                refuses.
        """
        older, newer = self._classify_release(0, OLDER), self._classify_release(self._end, NEWER)
        # Later commits refuse the older packages: what they change shows with the newer ones.
        last = self.cells.find_last_admitted()
        changed = self._check(last, OLDER)
        if changed is None:
            return self._bisect(CommitVerdict.COMMIT, (0, self._end), {0: older}, BOTH)
        if not is_alike(changed, older):
            remark = () if is_alike(changed, newer) else (PARTIAL,)
            known = {0: older, last: changed}
            return self._bisect(CommitVerdict.COMMIT, (0, last), known, (OLDER,), remark)
        # With the older packages, newer sources behave as the older ones do.
        moved = newer if last == self._end else self._check(last, NEWER)
        if moved is None or is_alike(moved, older):
            known = {last: older, self._end: newer}
            if moved is None:
                self.cells.choose_base(last, OLDER)
            return self._bisect(CommitVerdict.COMMIT, (last, self._end), known, (NEWER,))
        swapped = self._check(0, NEWER)
        if is_alike(moved, newer) and swapped is None:
            return self._search_untestable(last, older, changed, newer)
        if is_alike(moved, newer) and is_alike(swapped, older):
            known = {0: older, last: newer}
            return self._bisect(CommitVerdict.INTERACTION, (0, last), known, (NEWER,))
        return self._find(CommitVerdict.ENVIRONMENT)

    def _search_untestable(
        self, last: int, older: PointState | None, changed: PointState, newer: PointState | None
    ) -> CommitFinding:
        """Search where the newer packages refuse the older sources, so that neither is cleared.

        Args:
            last: Number of the last commit that the older packages admit.
            older: State of the older release.
            changed: State of that commit with the older packages, as good or bad as `older`.
            newer: State of that commit with the newer packages, and of the newer release.
        """
        verdict, remarks = CommitVerdict.INTERACTION, (UNPROVEN,)
        if changed != older:
            # Another failure with the older packages is the trace of a commit.
            known = {0: older, last: changed}
            return self._bisect(verdict, (0, last), known, (OLDER,), remarks)
        refused, tried = 0, last
        while tried - refused > 1:
            middle = (refused + tried) // 2
            state = self._check(middle, NEWER)
            if state is not None and state == older:
                known = {middle: state, last: newer}
                return self._bisect(verdict, (middle, last), known, (NEWER,), remarks)
            # A failure of another kind is one of sources that do not fit the newer packages.
            if is_alike(state, newer):
                tried = middle
            else:
                refused = middle
        return self._find(CommitVerdict.ENVIRONMENT, remarks=remarks)

    @property
    def _end(self) -> int:
        """Number of the last commit."""
        return len(self.cells) - 1

    def _classify_release(self, number: int, base: int) -> PointState | None:
        """Return the state of a release: of its sources with its own packages."""
        state = self.predicate.classify(self.releases[base])
        return self._check(number, base) if state is None else state

    def _check(self, number: int, base: int) -> PointState | None:
        """Return the state of a commit in an environment, None if it cannot be tried there."""
        point = number, base
        state = self._checks.decide(self.predicate, [point])[point]
        return state if state.is_known else None

    def _bisect(
        self,
        verdict: CommitVerdict,
        ends: tuple[int, int],
        known: Mapping[int, PointState | None],
        bases: tuple[int, ...],
        remarks: tuple[str, ...] = (),
    ) -> CommitFinding:
        """Halve the history until each change is between neighbours.

        Args:
            verdict: Kind of the culprit, if it is a commit.
            ends: Numbers of the first and the last commit.
            known: States of commits that a release or a check has shown.
            bases: The environments in which a commit is tried, until one imports it.
            remarks: Limits of the answer.
        """
        trials, self.cells.order = self.trials, bases
        trials.states |= {number: state for number, state in known.items() if state is not None}
        trials.decide(self.predicate, [number for number in ends if number not in trials.states])
        if self.is_branched and ends[0] == 0 and ends[1] > 1:
            # A fix may be on the branch of the older release only: then the first commit of the
            # main line is worse, and the search would blame it.
            trials.decide(self.predicate, [1])
            if trials.states[1] != trials.states[0] and self.twins:
                trials.decide(self.predicate, sorted(self.twins))
        main = self._narrow()
        if main is None:
            return self._find(CommitVerdict.UNTESTABLE)
        # A change may have been reverted and made again: halving alone can miss that.
        while related := self._list_related(main):
            trials.decide(self.predicate, related)
            main = self._narrow() or main
        if self._is_of_environment(main):
            return self._find(CommitVerdict.ENVIRONMENT)
        flaky = trials.confirm(self.predicate, main.before, main.after)
        remarks = (*remarks, *self._list_remarks(main))
        return self._find(verdict, main=main, flaky=flaky, remarks=remarks)

    def _narrow(self) -> ChangePoint | None:
        """Try commits until every change is between neighbours; return the main change."""
        while points := choose_untried_points(self.trials.states, self.width, eager=True):
            self.trials.decide(self.predicate, points)
        return self._find_main_change()

    def _list_related(self, main: ChangePoint) -> list[int]:
        """Return the untried commits that the culprit's message names, or that name it.

        Each comes with the commit before it, so that its own effect shows.
        """
        commits, states = self.cells.commits, self.trials.states
        culprit = commits[main.after]
        known = range(min(states), max(states) + 1)
        related = {
            number
            for number in known
            if any(map(commits[number].hash.startswith, culprit.mentioned))
            or any(map(culprit.hash.startswith, commits[number].mentioned))
        }
        both = {n for number in related for n in (number - 1, number)}
        return sorted(number for number in both if number in known and number not in states)

    def _find_main_change(self) -> ChangePoint | None:
        """Return the last change to the behaviour of the newest commit that can be tried."""
        states = self.trials.states
        known = [number for number in sorted(states) if states[number].is_known]
        changes = find_change_points(states)
        end = states[known[-1]] if known else None
        found = [change for change in changes if is_alike(states[change.after], end)]
        # Another wording of the same failure is a change, but not the one in question.
        entering = [change for change in found if not is_alike(states[change.before], end)]
        return next(reversed(entering or found), None)

    def _is_of_environment(self, main: ChangePoint) -> bool:
        """Say whether both sides of a change behave alike in one environment."""
        before, after = self._get_base(main.before), self._get_base(main.after)
        if before == after:
            return False
        return is_alike(self._check(main.before, after), self.trials.states[main.after])

    def _get_base(self, number: int) -> int:
        """Return the environment of a commit's samples; those of a release have its own."""
        return self.cells.bases_used.get(number, self.cells.order[0])

    def _list_remarks(self, main: ChangePoint) -> tuple[str, ...]:
        remarks = []
        before, after = self._get_base(main.before), self._get_base(main.after)
        if before != after and self._check(main.before, after) is None:
            remarks.append(MIXED)
        if self.is_branched and main.before == 0:
            remarks.append(
                "the older release is on a branch: the difference may be a commit of that branch "
                "which the main line lacks"
            )
        return tuple(remarks)

    def _find(
        self,
        verdict: CommitVerdict,
        *,
        main: ChangePoint | None = None,
        flaky: Mapping[int, Counter[PointState]] | None = None,
        remarks: tuple[str, ...] = (),
    ) -> CommitFinding:
        states = self.trials.states
        return CommitFinding(
            verdict=verdict, cells=self.cells, states=states, main=main,
            changes=find_change_points(states), steps=self.trials.steps,
            checks=self._checks.steps, flaky=flaky or {}, remarks=remarks,
        )  # fmt: skip


def is_alike(state: PointState | None, other: PointState | None) -> bool:
    """Say whether two states are known and equally good or bad.

    Failures of one class may have several wordings, and values may be wrong in several ways.

    Args:
        state: A state, None for a point that cannot be tried.
        other: Another state.
    """
    return state is not None and other is not None and state.kind is other.kind
