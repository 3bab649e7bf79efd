"""Bisection: both ends, what tells them apart, where that changes, and all once more."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.model.outcome import Conformance, Outcome
from conformance.triage.bisect.answer import Answer, Step
from conformance.triage.bisect.flakiness import Resampled, runs_needed
from conformance.triage.bisect.samples import Samples
from conformance.triage.bisect.search import changes, last_good, wanted
from conformance.triage.bisect.severity import SAME, severity
from conformance.triage.questions.failure import same_failure
from conformance.triage.questions.figures import between
from conformance.triage.questions.output import unstable_lines
from conformance.triage.questions.predicate import (
    SILENT,
    AlikeError,
    ByOutput,
    DifferentFailuresError,
    EndsError,
    ending,
    quoted,
)
from conformance.triage.questions.question import Seen, chosen
from conformance.triage.questions.state import Kind
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.triage.bisect.search import Change
    from conformance.triage.questions.figures import Figure
    from conformance.triage.questions.question import Question
    from conformance.triage.questions.state import State

SLOW: Final = 5.0
"""Seconds from which a probe is worth being made before it is known that it is needed."""
RECOUNTS: Final = 3
"""Probes more of a point that does not show the same twice."""
_LACKS: Final = re.compile(
    r"^AttributeError: module '[\w.]+' has no attribute|^ImportError: cannot import name"
    r"|^ModuleNotFoundError: "
)
"""Endings of a program that uses an interface which a release does not have."""
MOST_SCANNED: Final = 64
"""Points of an axis that is scanned unasked: all releases, but not the nightlies of a year."""


@dataclass(slots=True, kw_only=True)
class Bisection(Samples):
    """A bisection under way.

    Attributes:
        reverse: Whether the good end is the last.
        when: What `--when` says, empty for what tells the ends apart.
        fact: What `--fact` says, the name of one.
        width: Probes at the same time.
        scan: Whether all points are tried where the ends alone do not tell what changed.
        every: Whether all points are tried in any case.
        repeat: How often a point must be good to be so.
        seen_on: Number of the point where a report saw what it reports, None if that is not known.
    """

    reverse: bool
    when: str = ""
    fact: str = ""
    width: int
    scan: bool = False
    every: bool = False
    repeat: int = 1
    seen_on: int | None = None
    _turned: bool = False
    _steps: list[Step] = field(default_factory=list)
    _states: dict[int, State] = field(default_factory=dict)
    _also: list[Change] = field(default_factory=list)

    def run(self) -> Answer:
        """Search.

        Returns:
            The answer.

        Raises:
            EndsError: If nothing tells the ends apart, or an end says nothing.
            UsageError: If there is no such fact.
            InfrastructureError: If an end cannot be tried now, or the disk refuses.
        """
        last = len(self.points) - 1
        good, bad = (last, 0) if self.reverse else (0, last)
        self._replay()
        question: Question
        if self.figure is not None:
            question = self._measured(self.figure, good, bad)
        else:
            question = self._seen(good, bad)
        self._decide(question, sorted(self._samples))
        if isinstance(question, Seen):
            question = self._worse_than_asked(question)
        main: Change | None = None
        unsure: dict[int, Counter[State]] = {}
        # A point that another look shows to be bad moves the change.
        while (found := self._searched(question)) != main:
            main, unsure = found, self._confirm(question, found)
        resampled = None
        if isinstance(question, Seen) and unsure:
            resampled = self._resample(question, unsure)
        main = self._main()
        return Answer(
            points=self.points, labels=self.points.labels,
            ends=(last, 0) if self.reverse else (0, last), question=question,
            steps=self._steps, states=self._states, changes=changes(self._states),
            also=self._also, main=main, flaky=unsure, resampled=resampled, turned=self._turned,
            versions=(self._versions(main.before), self._versions(main.after)),
        )  # fmt: skip

    def _worse_than_asked(self, question: Seen) -> Seen:
        """Return the question of a point that failed on the way between ends that do not.

        That two outputs differ is nothing beside an error in between.
        """
        first = self._searched(question)
        good = last_good(self._states, first, reverse=self.reverse)
        if self.when or self.fact or self._record(good).outcome is not Outcome.OK:
            return question
        bad = first.before if self.reverse else first.after
        worst = self._worst(good)
        if worst is None or self._severity(worst, good) <= self._severity(bad, good):
            return question
        self._also.append(first)
        again = self._chosen(good, worst)
        self._announced.update(self._samples)  # each was shown
        self._states.clear()
        self._decide(again, sorted(self._samples))
        return again

    def _searched(self, question: Question) -> Change:
        """Ask points until every change lies between neighbours; return the one that matters."""
        slow = max(s.record.seconds.get("job", 0.0) for one in self._samples.values() for s in one)
        while points := wanted(self._states, self.width, eager=slow >= SLOW):
            self._decide(question, points)
        return self._main()

    def _measured(self, figure: Figure, good: int, bad: int) -> Question:
        """Measure both ends until their figures differ."""
        names = (self._label(good), self._label(bad))
        question = None
        while question is None:
            # In turns: what else the machine does falls on both.
            self._probe((good, bad))
            self._refuse_faults(good, bad)
            question = between(figure, self._samples[good], self._samples[bad], names)
        return question

    def _seen(self, good: int, bad: int) -> Seen:
        """Try both ends, or all points, and return what tells the good from the bad."""
        self._probe(sorted((good, bad)))
        self._refuse_faults(good, bad)
        good, bad = self._testable(good, bad)
        if (reported := self._reported(good, bad)) is not None:
            return reported
        if self._is_fix(self._record(good), self._record(bad)):
            if (since := self._since_it_exists(good, bad)) is not None:
                return since
            self.reverse, self._turned = not self.reverse, True
            good, bad = bad, good
        try:
            question = self._chosen(good, bad)
        except (AlikeError, DifferentFailuresError) as error:
            if not (self.every or (self.scan and self._is_short)):
                raise
            self._try_all()
            if self._never_works(bad) and isinstance(error, DifferentFailuresError):
                return Seen(chosen(self._ends(good, bad), "ending"), self.repeat)
            return self._chosen(*self._ends_within(good, bad, error))
        if self.every:
            self._try_all()
            worst = self._worst(good)
            if worst is not None and self._severity(worst, good) > self._severity(bad, good):
                return self._chosen(good, worst)
        return question

    def _testable(self, good: int, bad: int) -> tuple[int, int]:
        """Return the outermost points that can be tried, where no packages agree at an end."""
        if not self.scan:
            return good, bad
        ends = [good, bad]
        for this, that in ((0, 1), (1, 0)):
            known, refused = ends[that], ends[this]
            if not self._is_refused(refused) or self._is_refused(known):
                continue
            ends[this] = self._nearest(known, refused, self._is_refused)
        if ends[0] == ends[1]:
            return good, bad
        return ends[0], ends[1]

    def _nearest(self, known: int, far: int, refused: Callable[[int], bool]) -> int:
        """Return the point nearest to a far one, seen from a known one, that is not refused."""
        while abs(known - far) > 1:
            middle = (known + far) // 2
            if middle not in self._samples:
                self._probe([middle])
            if refused(middle):
                far = middle
            else:
                known = middle
        return known

    def _reported(self, good: int, bad: int) -> Seen | None:
        """Return what tells a good point from where a report was made, None if nothing does.

        The bad end may do something else by now, and the good end may do the same already: then
        what the report saw was mended.
        """
        if self.seen_on is None:
            return None
        if self.seen_on not in self._samples:
            self._probe([self.seen_on])
        if self._record(good).outcome is not Outcome.OK:
            return self._reported_failure(bad)
        with suppress(EndsError):
            try:
                return self._chosen(good, self.seen_on)
            except AlikeError:
                if not (self.when or self.fact or self._fails(bad)):
                    question = self._chosen(bad, self.seen_on)
                    self.reverse, self._turned = not self.reverse, True
                    return question
        return None

    def _reported_failure(self, bad: int) -> Seen | None:
        """Return what tells a point that works from a reported failure; the good end fails, too.

        Returns:
            None where the bad end fails alike, which is then searched, or nothing works.
        """
        seen = self.seen_on
        assert seen is not None  # noqa: S101 - see _reported
        endings = ending(self._record(seen)), ending(self._record(bad))
        if not (self._fails(seen) and self.scan and self._is_short) or same_failure(*endings):
            return None
        self._try_all()
        works = [n for n in self._samples if self._record(n).outcome is Outcome.OK]
        if not works:
            return None
        before = [n for n in works if (n < seen) is not self.reverse]
        good = min(before or works, key=lambda n: abs(n - seen))
        if not before:
            self.reverse, self._turned = not self.reverse, True
        return Seen(chosen(self._ends(good, seen), "ending"), self.repeat)

    def _since_it_exists(self, good: int, bad: int) -> Seen | None:
        """Return what tells the bad end from the first point that has what the good end lacks.

        An interface that does not exist yet says nothing of what the bad end does. Where that first
        point and the bad end do the same, all points are tried, as between ends that are alike.

        Returns:
            None if the good end fails for another reason, or all points that have it do the same.
        """
        if not (self.scan and _LACKS.search(ending(self._record(good)))):
            return None
        exists = self._nearest(bad, good, lambda n: bool(_LACKS.search(ending(self._record(n)))))
        if exists == bad or self._record(exists).outcome is not Outcome.OK:
            return None
        try:
            return self._chosen(exists, bad)
        except AlikeError as error:
            if not self._is_short:
                return None
            self._try_all()
            with suppress(AlikeError):
                return self._chosen(*self._ends_within(exists, bad, error))
        return None

    def _is_refused(self, point: int) -> bool:
        """Say whether no environment of a point has what is wanted."""
        record = self._record(point)
        error = record.error
        return (
            record.outcome is Outcome.UNSUPPORTED
            and error is not None
            and (error.type == str(Outcome.UNSUPPORTED))
        )

    @staticmethod
    def _is_fix(good: Record, bad: Record) -> bool:
        """Say whether the end called good fails and the one called bad does not."""
        if SILENT & {good.outcome, bad.outcome}:
            return False
        if bad.outcome is not Outcome.OK:
            return False
        deviates, conforms = Conformance.DEVIATES, Conformance.CONFORMS
        turned = good.conformance is deviates and bad.conformance is conforms
        return good.outcome is not Outcome.OK or turned

    def _chosen(self, good: int, bad: int) -> Seen:
        """Return the question that tells two points apart."""
        # What a fix mends may fail in one way before it and in another long before.
        fails = self._turned and self._record(bad).outcome is not Outcome.OK
        when = self.when or ("exit" if fails else "")
        predicate = chosen(self._ends(good, bad), when, self.fact)
        if isinstance(predicate, ByOutput):
            # Lines that one cell prints differently from run to run say nothing.
            for point in (good, bad):
                if len(self._samples[point]) == 1:
                    self._probe([point])
                one, other = (predicate.text(side) for side in self._samples[point][:2])
                self._unstable |= unstable_lines(one, other)
            predicate = chosen(self._ends(good, bad), self.when, self.fact)
        return Seen(predicate, self.repeat)

    @property
    def _is_short(self) -> bool:
        """Whether all points may be tried unasked."""
        return len(self.points) <= MOST_SCANNED

    def _never_works(self, bad: int) -> bool:
        outcomes = {self._record(n).outcome for n in self._samples}
        return self._record(bad).outcome is not Outcome.OK and Outcome.OK not in outcomes

    def _ends_within(self, good: int, bad: int, error: EndsError) -> tuple[int, int]:
        """Return the good and the bad point of a scan whose own ends are not.

        Raises:
            EndsError: If all points are alike, or it works nowhere.
        """
        if self._record(bad).outcome is not Outcome.OK:
            works = [n for n in self._samples if self._record(n).outcome is Outcome.OK]
            if works:
                return min(works, key=lambda n: abs(n - bad)), bad
        elif (worst := self._worst(good)) is not None:
            return good, worst
        seen = Counter(quoted(ending(self._record(n))) for n in sorted(self._samples))
        told = "; ".join(f"{text} ({count})" for text, count in seen.items())
        count = plural(len(self.points), "point")
        raise type(error)(f"{error}; all {count} were tried, and none differs more: {told}")

    def _worst(self, good: int) -> int | None:
        """Return the worst point, the nearest of these to the good end; None if all are alike.

        What lacks an interface on the far side of the good point is no worse than that.
        """
        beyond = range(good + 1, len(self.points)) if self.reverse else range(good)
        ranks = {n: self._severity(n, good) for n in self._samples if n not in beyond}
        top = max(ranks.values())
        if top == SAME:
            return None
        return min((n for n in ranks if ranks[n] == top), key=lambda n: abs(n - good))

    def _severity(self, point: int, good: int) -> int:
        record = self._record(point)
        return severity(record, self._record(good), differs=self._differs(good, point))

    def _differs(self, good: int, point: int) -> bool:
        if self._record(point).outcome in SILENT:
            return False
        try:
            chosen(self._ends(good, point), self.when, self.fact)
        except DifferentFailuresError:
            return True
        except EndsError:
            return False
        return True

    def _main(self) -> Change:
        """Return the change from good to bad that is nearest to the good end."""
        good = [n for n, state in self._states.items() if state.kind is Kind.GOOD]
        found = [
            change
            for change in changes(self._states)
            if self._states[change.before if self.reverse else change.after].kind is Kind.BAD
            and any(n >= change.after if self.reverse else n <= change.before for n in good)
        ]
        return self._since_it_fails(found[-1] if self.reverse else found[0])

    def _since_it_fails(self, main: Change) -> Change:
        """Return the change to the first of the failures that lead to the bad end's.

        A target that works at the good end is bad from its first failure on, of whatever kind, if
        it does not work again before it fails as the bad end does.
        """
        if self.when or self.fact or self.reverse or not self._fails(main.after):
            return main
        all_ = list(changes(self._states))
        at = all_.index(main)
        while self._states[all_[at].before].kind is Kind.OTHER and self._fails(all_[at].before):
            if at == 0:
                return main
            at -= 1
        before = all_[at].before
        works = self._states[before].kind is Kind.GOOD and not self._fails(before)
        return all_[at] if works else main

    def _fails(self, point: int) -> bool:
        outcome = self._record(point).outcome
        return outcome is not Outcome.OK and outcome not in SILENT

    def _confirm(self, question: Question, main: Change) -> dict[int, Counter[State]]:
        """Ask both sides of the change once more; count what is good at times only.

        What is bad each time, in whatever way, is bad.
        """
        unsure: dict[int, Counter[State]] = {}
        for point, state in self._decide(question, (main.before, main.after), again=True).items():
            if state.kind is not self._states[point].kind:
                unsure[point] = Counter([self._states[point], state])
        for _ in range(RECOUNTS if unsure else 0):
            for point, state in self._decide(question, list(unsure), again=True).items():
                unsure[point][state] += 1
        for point, seen in list(unsure.items()):
            kinds = {state.kind: state for state in seen}
            if Kind.GOOD not in kinds:
                self._states[point] = kinds.get(Kind.BAD, self._states[point])
                del unsure[point]
        return unsure

    def _resample(self, question: Seen, unsure: dict[int, Counter[State]]) -> Resampled | None:
        """Try the last good point so often that it is hardly good by chance.

        Each point that turns out to be bad moves the search on towards the good end.

        Raises:
            EndsError: If the good end itself is bad at times.
        """
        rates = [
            sum(count for state, count in seen.items() if state.kind is Kind.BAD) / seen.total()
            for seen in unsure.values()
        ]
        rate = min(filter(None, rates), default=0.0)
        if not rate:
            return None
        often = Seen(question.predicate, max(runs_needed(rate), question.repeat))
        for point, seen in unsure.items():
            kinds = {state.kind: state for state in seen}
            self._states[point] = kinds.get(Kind.BAD, self._states[point])
        end = len(self.points) - 1 if self.reverse else 0
        while self._states[end].kind is Kind.GOOD:
            main = self._searched(often)
            good = main.after if self.reverse else main.before
            if self._states[good].kind is not Kind.GOOD:
                return None
            if self._decide(often, [good])[good].kind is Kind.GOOD:
                return Resampled(runs=len(self._samples[good]), rate=rate)
        raise EndsError(
            f"{self.points.labels[end]} is bad, too, at times: {often.said(self._samples[end])}; "
            "name another good end"
        )

    def _decide(
        self, question: Question, points: Sequence[int], *, again: bool = False
    ) -> dict[int, State]:
        """Ask some points, as often as it takes; what was seen before counts unless `again`."""
        if again:
            for point in points:
                self._samples.pop(point, None)
        states: dict[int, State] = {}
        while True:
            for point in points:
                samples = self._samples.get(point, [])
                if point in states or not samples:
                    continue
                if (state := question.state(samples)) is not None:
                    states[point] = state
                    self._take(question, point, state, again=again)
            if not (undecided := [point for point in points if point not in states]):
                return states
            self._probe(undecided, again=again)

    def _take(self, question: Question, point: int, state: State, *, again: bool) -> None:
        """Take in what is known of a point now."""
        samples = self._samples[point]
        if not again:
            self._states[point] = state
        step = Step(
            point=point,
            samples=[side.record for side in samples],
            state=state,
            said=question.said(samples),
            again=again,
            replayed=point in self._from_log,
        )
        self._steps.append(step)
        if point in self._announced:
            self._announced.discard(point)  # the timeline says the rest
        else:
            self.progress(step)

    def _versions(self, point: int) -> Mapping[str, str]:
        return self.prober.versions(self.points[point])
