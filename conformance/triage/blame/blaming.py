"""Which packages are to blame: both ends, what tells them apart, mixtures, and all once more."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.engine.job_comparison import StoredJob
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.model.outcome import ExitCode, Outcome
from conformance.triage.bisect.points import RESTART
from conformance.triage.blame.blamed import Blamed, Step
from conformance.triage.blame.mixture import differing, mixture, needs
from conformance.triage.blame.moves import moves_of
from conformance.triage.blame.search import NONE, Shows, search
from conformance.triage.blame.wants import users
from conformance.triage.questions.figures import MARGIN, between
from conformance.triage.questions.predicate import SILENT, Ends, EndsError
from conformance.triage.questions.question import Seen, chosen
from conformance.triage.questions.state import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from conformance.cells.lock import Lock
    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import PlannedCell
    from conformance.judge.tolerance import Tolerance
    from conformance.model.record import Record
    from conformance.triage.bisect.prober import Prober
    from conformance.triage.blame.ends import Original
    from conformance.triage.blame.mixture import End, Moved
    from conformance.triage.blame.moves import Moves
    from conformance.triage.blame.search import Found, Units
    from conformance.triage.questions.figures import Figure
    from conformance.triage.questions.predicate import Predicate
    from conformance.triage.questions.question import Question
    from conformance.triage.questions.state import State

RECOUNTS: Final = 3
"""Trials more of a mixture that does not show the same twice."""


class OtherwiseError(ConformanceError):
    """An environment that stands for another does not show what that shows."""

    exit_code = ExitCode.UNEXPECTED


@dataclass(slots=True, kw_only=True)
class Blame:
    """A search under way.

    Attributes:
        ends: The environment that is left, and the one that is gone to.
        originals: What one of them stands for, where it is not what was asked about.
        suspects: Packages that may well be at fault, empty if that is not known.
        prober: Tries the target.
        locks: Where the prober finds locks, by cell id; gets those of mixtures.
        provide: Makes the environment of a mixture, if it is not there, and returns the mixture
            with what is beside its packages.
        blobs: Where artifacts are.
        keep: Gets every record before it counts.
        tolerance: How far values may differ.
        known: Records of an earlier search.
        when: What `--when` says, empty for what tells the ends apart.
        fact: What `--fact` says, the name of one.
        figure: What is measured, if that is the question.
        progress: Called with each step, and the number of packages that differ.
    """

    ends: tuple[End, End]
    originals: tuple[Original | None, Original | None] = (None, None)
    suspects: Collection[str]
    prober: Prober
    locks: dict[str, Lock]
    provide: Callable[[PlannedCell, Lock], PlannedCell]
    blobs: BlobStore
    keep: Callable[[Record], object]
    tolerance: Tolerance
    known: Iterable[Record] = ()
    when: str = ""
    fact: str = ""
    figure: Figure | None = None
    progress: Callable[[Step, int], None] = lambda *_: None
    _reverse: bool = False
    _count: int = 0
    _steps: list[Step] = field(default_factory=list)
    _shown: dict[Units, Shows] = field(default_factory=dict)
    _samples: dict[Units, list[StoredJob]] = field(default_factory=dict)
    _cells: dict[Units, PlannedCell] = field(default_factory=dict)
    _past: dict[tuple[str, str], deque[Record]] = field(default_factory=dict)
    _from_log: set[Units] = field(default_factory=set)

    def run(self) -> Blamed:
        """Search.

        Returns:
            What was found.

        Raises:
            UsageError: If no package differs, or there is no such fact.
            EndsError: If nothing tells the ends apart, or an end says nothing.
            OtherwiseError: If an end does not show what it stands for does.
            InfrastructureError: If something cannot be tried now, or the disk refuses.
        """
        packages, reasons, moves = self._moves()
        self._count = len(packages)
        self._replay()
        self._cells = {NONE: self.ends[0].planned, frozenset(moves.units): self.ends[1].planned}
        self.locks |= {end.planned.cell.id: end.lock for end in self.ends}
        question = self._question(*self._cells)
        self._decide(question, list(self._cells))
        self._check_originals(question)
        found = search(moves, lambda units: self._decide(question, [units])[units])
        return Blamed(
            ends=self.ends, packages=packages, moves=moves, reasons=reasons, question=question,
            found=found, steps=self._steps, reverse=self._reverse,
            flaky=self._confirm(question, moves, found),
        )  # fmt: skip

    def _moves(self) -> tuple[dict[str, Moved], dict[str, dict[str, str]], Moves]:
        """Return the packages that differ, what they need of each other, and how they move."""
        before, after = self.ends
        packages = {one.package: one for one in differing(before.lock.pins, after.lock.pins)}
        if not packages:
            names = f"{before.planned.cell.id} and {after.planned.cell.id}"
            raise UsageError(f"{names}: no package differs, expected ends with other versions")
        reasons = needs(before, after)
        moves = moves_of(tuple(packages), reasons, suspects=self.suspects, users=users(after.wants))
        return packages, reasons, moves

    def _question(self, *ends: Units) -> Question:
        """Try both ends, and return what tells them apart."""
        names = (self._cells[ends[0]].cell.id, self._cells[ends[1]].cell.id)
        if self.figure is None:
            self._probe(ends)
            self._refuse_faults(*ends)
            return Seen(self._predicate(ends, names))
        question = None
        while question is None:
            # In turns: what else the machine does falls on both.
            self._probe(ends)
            self._refuse_faults(*ends)
            samples = (self._samples[ends[0]], self._samples[ends[1]])
            question = between(self.figure, *samples, names)
        return question

    def _predicate(self, ends: tuple[Units, ...], names: tuple[str, str]) -> Predicate:
        """Return the predicate; which end is the right one is not said, so both are tried."""
        one, other = (self._samples[end][0] for end in ends)
        forth = Ends(good=one, bad=other, names=names, tolerance=self.tolerance)
        back = Ends(good=other, bad=one, names=names[::-1], tolerance=self.tolerance)
        try:
            return chosen(forth, self.when, self.fact)
        except EndsError as error:
            try:
                predicate = chosen(back, self.when, self.fact)
            except EndsError:
                raise error from None
        self._reverse = True
        return predicate

    def _refuse_faults(self, *ends: Units) -> None:
        """Refuse an end that could not be tried: what stood in the way may be gone next time."""
        for end in ends:
            record = self._samples[end][-1].record
            if record.outcome is Outcome.INFRA:
                said = record.error.message if record.error else record.outcome
                raise InfrastructureError(f"{self._cells[end].cell.id}: {said}; {RESTART}")

    def _check_originals(self, question: Question) -> None:
        """Refuse an end that does not show what it stands for does."""
        for units, original in zip(tuple(self._cells), self.originals, strict=False):
            if original is None:
                continue
            (sample,) = self.prober.probe([original.planned])
            self.keep(sample)
            state = question.state([StoredJob(sample, self.blobs)])
            if state is not None and self._shows(state) is not self._shown[units]:
                seen = question.said([StoredJob(sample, self.blobs)])
                stands = question.said(self._samples[units])
                raise OtherwiseError(
                    f"{original.planned.cell.id} shows {seen}, {original.stand_in} shows {stands}: "
                    f"{original.other}"
                )

    def _confirm(
        self, question: Question, moves: Moves, found: Found
    ) -> dict[Units, Counter[Shows]]:
        """Ask both sides of the answer once more; count what does not show the same twice."""
        guilty = found.guilty[0]
        without = (guilty.units - moves.dependents([unit]) for unit in guilty.culprits)
        shy = (units for units in (*without, NONE) if self._shown.get(units) is Shows.BEFORE)
        pair = (next(shy), guilty.units)
        unsure: dict[Units, Counter[Shows]] = {}
        for units, shows in self._decide(question, pair, again=True).items():
            if shows is not self._shown[units]:
                unsure[units] = Counter([self._shown[units], shows])
        for _ in range(RECOUNTS if unsure else 0):
            for units, shows in self._decide(question, list(unsure), again=True).items():
                unsure[units][shows] += 1
        return unsure

    def _decide(
        self, question: Question, wanted: Sequence[Units], *, again: bool = False
    ) -> dict[Units, Shows]:
        """Ask some mixtures, as often as it takes; what was seen before counts unless `again`."""
        if again:
            for units in wanted:
                self._samples.pop(units, None)
        decided: dict[Units, Shows] = {}
        while True:
            for units in wanted:
                samples = self._samples.get(units, [])
                if units in decided or not samples:
                    continue
                if (state := question.state(samples)) is not None:
                    decided[units] = self._take(question, units, state, again=again)
            if not (undecided := [units for units in wanted if units not in decided]):
                return decided
            self._probe(undecided, again=again)

    def _take(self, question: Question, units: Units, state: State, *, again: bool) -> Shows:
        """Take in what is known of a mixture now."""
        samples = self._samples[units]
        shows = self._shows(state)
        if not again:
            self._shown[units] = shows
        step = Step(
            units=units, cell=self._cells[units].cell.id,
            samples=[side.record for side in samples], shows=shows, state=state,
            said=question.said(samples), again=again, replayed=units in self._from_log,
        )  # fmt: skip
        self._steps.append(step)
        self.progress(step, self._count)
        return shows

    def _shows(self, state: State) -> Shows:
        """Return which end a state is like."""
        like = {Kind.GOOD: Shows.BEFORE, Kind.BAD: Shows.AFTER}
        if self._reverse:
            like = {Kind.GOOD: Shows.AFTER, Kind.BAD: Shows.BEFORE}
        return like.get(state.kind, Shows.UNKNOWN)

    def _replay(self) -> None:
        """Take from the log what it says of cells that are what they were."""
        originals = [one.planned.cell for one in self.originals if one is not None]
        # An environment of the user's may have changed since.
        theirs = {cell.id for cell in originals if cell.interpreter is not None}
        for record in self.known:
            if record.outcome not in SILENT and record.cell_hash and record.cell not in theirs:
                self._past.setdefault((record.cell, record.cell_hash), deque()).append(record)

    def _probe(self, wanted: Sequence[Units], *, again: bool = False) -> None:
        """Try the target in some mixtures; each record is in the log before it counts."""
        cells = []
        for units in wanted:
            planned = self._planned(units)
            past = self._past.get((planned.cell.id, planned.cell_hash))
            for _ in range(1 if self.figure is None else MARGIN):
                if not again and past:
                    self._from_log.add(units)
                    self._add(units, past.popleft())
                else:
                    cells.append(planned)
        places = {self._cells[units].cell.id: units for units in wanted}
        # A figure is another one where the result is kept from before.
        for record in self.prober.probe(cells, again=again or self.figure is not None):
            self.keep(record)
            self._from_log.discard(places[record.cell])
            self._add(places[record.cell], record)

    def _planned(self, units: Units) -> PlannedCell:
        """Return a mixture as it is planned for; its environment is there then.

        What stands in the way of that may be gone next time. What does not work once it is there
        is the mixture's own.
        """
        if units not in self._cells:
            planned, lock = mixture(*self.ends, {name for unit in units for name in unit})
            self.locks[planned.cell.id] = lock
            try:
                self._cells[units] = self.provide(planned, lock)
            except InfrastructureError as error:
                raise InfrastructureError(f"{error}; {RESTART}") from error
        return self._cells[units]

    def _add(self, units: Units, record: Record) -> None:
        self._samples.setdefault(units, []).append(StoredJob(record, self.blobs))
