"""The trials of an upgrade: both ends first, then changed cases on the releases in between."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from conformance.engine.job import Job
from conformance.engine.plan import find_exclusion_reason
from conformance.engine.record_judge import load_observation
from conformance.engine.runner import describe_cases
from conformance.engine.runs.stored_job import StoredJob
from conformance.engine.runs.transitions import make_transition
from conformance.judge.agreement import DISAGREE, find_disagreement
from conformance.judge.ir import find_changed_facts
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import Conformance
from conformance.search.bisection import choose_points, find_changes
from conformance.search.equivalence import format_ending, shorten
from conformance.triage.upgrade.comparison import ComparedCase, UpgradeStep
from conformance.triage.upgrade.effect import BREAKING, Effect, classify_change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job_runner import JobRunner
    from conformance.engine.runs.transitions import Transition
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.model.run import RunCase
    from conformance.triage.upgrade.comparison import UpgradeAxis

    Jobs = dict[Job, tuple["CaseUpgrade", int]]
    Begin = Callable[[str, int], None]
    Take = Callable[[Record], None]

ATTEMPTS: Final = 3
"""Number of further attempts of a change without a reference."""


@dataclass(slots=True)
class CaseUpgrade:
    """The trials of a case on a platform.

    Attributes:
        case: The case.
        described: Its description in a run.
        axis: The cells.
        sides: The jobs that can be compared, by place.
        silent: Reasons why the others cannot, by place.
        flaky: Why two attempts disagree, empty if they agree.
        tried: Number of jobs.
        recorded: Places on both sides of each change of the golden or of the declared deviations;
            None without a golden, until both ends are tried, and if every place is tried anyway.
    """

    case: Case
    described: RunCase
    axis: UpgradeAxis
    sides: dict[int, StoredJob] = field(default_factory=dict)
    silent: dict[int, str] = field(default_factory=dict)
    flaky: str = ""
    tried: int = 0
    recorded: frozenset[int] | None = None
    _changes: dict[tuple[int, int], Transition] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, planned in enumerate(self.axis.cells):
            if reason := find_exclusion_reason(self.case, planned):
                # Known before any trial: such cells are no points of the bisection.
                self.silent[place] = reason

    @property
    def refusal(self) -> str:
        """Reason why both ends cannot be compared; empty if none is known."""
        ends = (0, len(self.axis.cells) - 1)
        reason = (f"{self.axis.labels[n]}: {self.silent[n]}" for n in ends if n in self.silent)
        return next(reason, "")

    @property
    def neighbours(self) -> tuple[str, Path]:
        """The platform and the file that other cases share with this one."""
        return self.axis.platform, self.case.file

    @property
    def points(self) -> tuple[int, ...]:
        """Places that can be compared, as far as known."""
        return tuple(n for n in range(len(self.axis.cells)) if n not in self.silent)

    @property
    def has_ends(self) -> bool:
        """Whether both ends were tried, and can be compared."""
        return {0, len(self.axis.cells) - 1} <= self.sides.keys()

    def compare(self, before: int, after: int) -> Transition:
        """Return the change between two places that were tried."""
        pair = before, after
        if pair not in self._changes:
            sides = self.sides[before], self.sides[after]
            self._changes[pair] = make_transition(*sides, self.described)
        return self._changes[pair]

    def differs(self, before: int, after: int) -> bool:
        """Say whether something changed between two places."""
        return classify_change(self.compare(before, after)) is not Effect.UNCHANGED

    def make_job(self, place: int, *, alone: bool = False) -> Job:
        """Return the case at a place.

        Args:
            place: The place.
            alone: Whether the job must have a separate process.
        """
        return Job(case=self.case, planned=self.axis.cells[place], alone=alone)

    def choose_places(self, *, every: bool) -> list[int]:
        """Return the places to try next."""
        if self.refusal:
            return []
        # Also if both ends are alike: a case may break between them.
        recorded = (self.recorded or frozenset()).intersection(self.points)
        if untried := recorded - self.sides.keys():
            return sorted(untried)
        coarse = () if recorded else self.axis.coarse
        return choose_points(self.points, self.sides, self.differs, coarse=coarse, every=every)

    def find_broken(self) -> Iterator[int]:
        """Yield the first and the last place of each stretch where the case is broken."""
        for before, after in self.find_changed():
            effect = classify_change(self.compare(before, after))
            if effect in BREAKING:
                yield after
            elif effect is Effect.FIXED:
                yield before

    def find_changed(self) -> list[tuple[int, int]]:
        """Return pairs of neighbouring tried places that differ."""
        return [] if self.refusal else find_changes(self.sides, self.differs)

    def is_unjudged(self, place: int) -> bool:
        """Say whether no reference judges the job at a place."""
        return self.sides[place].record.conformance is Conformance.UNKNOWN

    def take(self, place: int, side: StoredJob) -> None:
        """Add the job of a place."""
        self.tried += 1
        if side.record.outcome.observed:
            self.sides[place] = side
        else:
            self.silent[place] = shorten(format_ending(side.record))

    def confirm(self, place: int, again: StoredJob) -> None:
        """Compare the job of a place with a second attempt."""
        first = self.sides[place]
        tolerance = Tolerance.of(self.case)
        reason = find_disagreement(load_observation(*first), load_observation(*again), tolerance)
        facts = find_changed_facts(again.record.facts, first.record.facts)
        reason = reason or next((f"{DISAGREE}{fact}" for fact in facts), "")
        if reason and not self.flaky:
            self.flaky = f"{self.axis.labels[place]}: {reason}"

    def make_comparison(self) -> ComparedCase:
        """Return the comparison of both ends, after all trials."""
        known = ComparedCase(
            case=self.case, axis=self.axis, refusal=self.refusal, flaky=self.flaky,
            tried=self.tried,
        )  # fmt: skip
        if known.refusal or known.flaky:
            return known
        whole = self.compare(0, len(self.axis.cells) - 1)
        steps = [self._make_step(*pair) for pair in self.find_changed()]
        known = replace(known, untried=len(set(self.points) - self.sides.keys()))
        effect = classify_change(whole)
        if steps and effect not in {Effect.UNCHANGED, *(step.effect for step in steps)}:
            # The last step hides the effect, e.g. another value after an error.
            steps[-1] = replace(steps[-1], change=whole, effect=effect)
        return replace(known, whole=whole, steps=tuple(steps))

    def _make_step(self, before: int, after: int) -> UpgradeStep:
        change = self.compare(before, after)
        if (effect := classify_change(change)) is Effect.UNCHANGED:
            # A gradual change: the first place that differs from the beginning.
            change = self.compare(0, after)
            effect = classify_change(change)
        return UpgradeStep(change=change, effect=effect, before=before, after=after)


class Upgrade:
    """An upgrade of cases, on one platform or several.

    Args:
        cases: The cases.
        axes: The cells between both ends, by platform.
        root: Folder of the project.
        runner: Runs jobs.
        blobs: Artifacts of the jobs.
        thorough: Whether every case is tried at every point, also if both ends are alike.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        axes: Sequence[UpgradeAxis],
        *,
        root: Path,
        runner: JobRunner,
        blobs: BlobStore,
        thorough: bool = False,
    ) -> None:
        described = describe_cases(cases, root)
        self.cases = [
            CaseUpgrade(case, described[case.id], axis) for axis in axes for case in cases
        ]
        self._runner, self._blobs = runner, blobs
        self._thorough = thorough

    def run(self, begin: Begin = lambda *_: None, take: Take = lambda _: None) -> Iterator[Record]:
        """Try everything that must be tried, and yield the record of each new job.

        Both sides of each change are tried once more at the end: a flaky case has no other result.
        Without a reference, two attempts may agree by chance, so two more follow.

        Args:
            begin: Called with the name of each phase and the number of its jobs.
            take: Called with the record of each job, also of those that are tried again.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        first = "all releases" if self._thorough else "both ends"
        yield from self._try(first, self._plan_jobs(), begin, take)
        if not self._thorough:
            self._find_recorded()
        # A change may break similar cases for some releases, so the others of the file are tried
        # where a case breaks: of all cases, one breaks on nearly every release. Only after
        # bisection, since before it most of these jobs would show nothing.
        while jobs := self._plan_jobs() or self._plan_shared():
            yield from self._try("releases between", jobs, begin, take)
        for number in range(ATTEMPTS):
            attempts = number + 2  # the first one was not for confirmation
            if doubted := self._plan_confirmation(attempts, unjudged=number > 0):
                begin("changes again", len(doubted))
            for job, record in self._runner.run(doubted, again=True):
                line, place = doubted[job]
                take(record)
                if not record.outcome.observed:
                    continue
                line.confirm(place, self._store(record))
                if not line.flaky:
                    self._runner.cache_confirmed(job, record, attempts)

    def _try(self, phase: str, jobs: Jobs, begin: Begin, take: Take) -> Iterator[Record]:
        """Try the jobs of a phase, and yield their records."""
        begin(phase, len(jobs))
        for job, record in self._runner.run(jobs):
            line, place = jobs[job]
            line.take(place, self._store(record))
            take(record)
            yield record

    def list_jobs(self) -> Iterator[Job]:
        """Yield every job that was tried and observed, cell by cell."""
        tried = [(place, line) for line in self.cases for place in line.sides]
        tried.sort(key=lambda pair: pair[0])
        yield from (line.make_job(place) for place, line in tried)

    def list_comparisons(self) -> list[ComparedCase]:
        """Return the comparison of each case on each platform, after all trials."""
        return [line.make_comparison() for line in self.cases]

    def _store(self, record: Record) -> StoredJob:
        return StoredJob(record, self._blobs)

    def _find_recorded(self) -> None:
        """Find where the goldens change of the cases whose ends can be compared."""
        for line in self.cases:
            if line.has_ends:
                line.recorded = self._find_recorded_changes(line)

    def _find_recorded_changes(self, line: CaseUpgrade) -> frozenset[int] | None:
        """Return the places on both sides of each change of a case's golden, None without one.

        A deviation that begins or ends is a change, too: that of a variant is in no golden.
        """
        known = {}
        for place in line.points:
            job = line.make_job(place)
            if (golden := self._runner.find_golden_span(job)) is not None:
                cell = job.planned
                declared = [
                    number
                    for number, deviation in enumerate(line.case.deviations)
                    if deviation.covers(cell.release, cell.cell.platform, cell.versions)
                ]
                known[place] = (golden.span.content, declared)
        changes = find_changes(known, lambda before, after: known[before] != known[after])
        return frozenset(chain.from_iterable(changes)) if known else None

    def _plan_jobs(self) -> Jobs:
        """Return the jobs to try next."""
        return _order_jobs(
            (place, line)
            for line in self.cases
            for place in line.choose_places(every=self._thorough)
        )

    def _plan_shared(self) -> Jobs:
        """Return the untried cases at every place where another case of their file is broken.

        Only those without a golden, which would tell where they changed.
        """
        broken: dict[tuple[str, Path], set[int]] = {}
        for line in self.cases:
            broken.setdefault(line.neighbours, set()).update(line.find_broken())
        return _order_jobs(
            (place, line)
            for line in self.cases
            if not line.refusal and line.recorded is None
            for place in broken[line.neighbours].intersection(line.points) - line.sides.keys()
        )

    def _plan_confirmation(self, attempts: int, *, unjudged: bool) -> Jobs:
        """Return the jobs to confirm: both sides of every change, or those without a reference.

        Args:
            attempts: Total number of attempts of a job, including those of earlier runs.
            unjudged: Whether only jobs without a reference are tried.
        """
        return {
            # Alone: a job that fails only after another job of its process is flaky.
            line.make_job(place, alone=True): (line, place)
            for line in self.cases
            for place in dict.fromkeys(chain.from_iterable(line.find_changed()))
            if not unjudged or (line.is_unjudged(place) and not line.flaky)
            if line.sides[place].record.attempts < attempts
            # The golden is another attempt, of another day and process.
            if not self._runner.equals_golden(line.make_job(place), line.sides[place].record)
        }


def _order_jobs(wanted: Iterable[tuple[int, CaseUpgrade]]) -> Jobs:
    """Return jobs ordered by cell, so that jobs of a cell share a worker."""
    ordered = sorted(wanted, key=lambda pair: pair[0])
    return {line.make_job(place): (line, place) for place, line in ordered}
