"""The question of a bisection: what is asked of each point, and how often. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from conformance.model.outcome import Conformance, Outcome
from conformance.triage.questions.facts import ByFact, ByFacts, differing, fact_of
from conformance.triage.questions.failure import same_failure
from conformance.triage.questions.predicate import (
    SILENT,
    AlikeError,
    ByConformance,
    ByEnding,
    ByExit,
    ByOutput,
    ByValue,
    DifferentFailuresError,
    EndsError,
    ending,
    quoted,
)
from conformance.triage.questions.state import BAD, GOOD, Kind, State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.engine.job_comparison import StoredJob
    from conformance.triage.questions.predicate import Ends, Predicate


class Question(Protocol):
    """What is asked of each point, which may have to be tried more than once."""

    @property
    def name(self) -> str:
        """What `--when` calls it."""
        ...

    @property
    def about(self) -> str:
        """What a bad point does, in a few words."""
        ...

    def state(self, samples: Sequence[StoredJob]) -> State | None:
        """Return what a point shows, None if it must be tried again."""
        ...

    def said(self, samples: Sequence[StoredJob]) -> str:
        """Return what was seen there, in a few words."""
        ...


@dataclass(frozen=True, slots=True)
class Seen:
    """A question that looks answer; a point that is bad once is bad.

    Attributes:
        predicate: Judges a look.
        repeat: Looks that a point takes to be good.
    """

    predicate: Predicate
    repeat: int = 1

    @property
    def name(self) -> str:
        """What `--when` calls it."""
        return self.predicate.name

    @property
    def about(self) -> str:
        """What a bad point does, in a few words."""
        return self.predicate.about

    def state(self, samples: Sequence[StoredJob]) -> State | None:
        """Return the worst that a point showed; None as long as it was good, but not often."""
        states = [state_of(self.predicate, side) for side in samples]
        worst = states[self._worst(states)]
        waits = worst.kind in (Kind.GOOD, Kind.OTHER) and len(samples) < self.repeat
        return None if waits else worst

    def said(self, samples: Sequence[StoredJob]) -> str:
        """Return how the job ended, and whether it conforms."""
        states = [state_of(self.predicate, side) for side in samples]
        worst = self._worst(states)
        side = samples[worst]
        record = side.record
        if record.outcome in SILENT:
            return " ".join(ending(record).split())  # what is to be done about it, is in all of it
        said = quoted(ending(record))
        if record.outcome is Outcome.OK:
            judged = record.conformance is not Conformance.UNKNOWN
            verdict = record.conformance if judged else ""
            said = ", ".join(filter(None, ("ok", verdict, shown(self.predicate, side))))
        elif record.outcome is Outcome.TIMED_OUT and record.error is not None:
            said = f"{said}; at {record.error.where}" if record.error.where else said
        alike = sum(state.kind is states[worst].kind for state in states)
        often = alike < len(states) or self.repeat > 1
        return f"{said} ({alike} of {len(states)} runs)" if often else said

    @staticmethod
    def _worst(states: Sequence[State]) -> int:
        """Return the number of the state that counts: the first of the worst kind."""
        return min(range(len(states)), key=lambda n: _ORDER.index(states[n].kind))


_ORDER: Final = (Kind.BAD, Kind.OTHER, Kind.GOOD, Kind.UNKNOWN)
"""Kinds of states, the one that counts most first."""


def shown(predicate: Predicate, side: StoredJob) -> str:
    """Return what of a job that ended well the answer hangs on, empty where nothing can be shown.

    Args:
        predicate: What is asked.
        side: What came of the target.
    """
    match predicate:
        case ByFact(fact):
            known = fact.partition(".")[0] in side.record.facts
            return f"{fact} = {json.dumps(fact_of(side, fact))}" if known else ""
        case ByOutput():
            return predicate.difference(side)
        case _:
            return ""


def state_of(predicate: Predicate, side: StoredJob) -> State:
    """Return what a point shows to a predicate; nothing, where the target could not be tried.

    Args:
        predicate: It.
        side: What came of the target there.
    """
    if side.record.outcome in SILENT:
        return State(Kind.UNKNOWN, ending(side.record))
    return predicate.state(side)


def _by_facts(ends: Ends) -> Predicate:
    names = differing(ends.bad.record, ends.good.record)
    return ByFacts(ends.good, tuple(sorted(names)))


def _by_fact(ends: Ends, name: str) -> Predicate:
    good, bad = fact_of(ends.good, name), fact_of(ends.bad, name)
    if good == bad:
        raise EndsError(f"--fact {name}: is {json.dumps(good)} at both ends; name another")
    return ByFact(name, bad, good)


PREDICATES: Final[Mapping[str, Callable[[Ends], Predicate]]] = {
    "ending": ByEnding,
    "message": lambda ends: ByEnding(ends, exact=True),
    "exit": lambda ends: ByExit(ending(ends.bad.record)),
    "conformance": lambda _: ByConformance(),
    "value": ByValue,
    "facts": _by_facts,
    "output": ByOutput,
    "text": lambda ends: ByOutput(ends, verbatim=True),
}
"""Predicates by what `--when` calls them, the one that tells most first."""
_ON_REQUEST: Final = frozenset({"text"})
"""Those that see what is no behaviour."""


def chosen(ends: Ends, name: str = "", fact: str = "") -> Predicate:
    """Return the predicate that tells two ends apart.

    Args:
        ends: Both ends.
        name: What `--when` says; without it the first predicate that the ends answer otherwise.
        fact: What `--fact` says, the name of one.

    Raises:
        EndsError: If an end says nothing, both fail for different reasons, or they are alike.
        UsageError: If there is no such fact.
    """
    for side, label in zip((ends.good, ends.bad), ends.names, strict=True):
        if side.record.outcome in SILENT:
            raise EndsError(f"{label} says nothing: {ending(side.record)}; name another end")
    if fact:
        return _by_fact(ends, fact)
    if name:
        predicate = PREDICATES[name](ends)
        _verify(predicate, ends)
        return predicate
    _refuse_two_failures(ends)
    for when, made in PREDICATES.items():
        if when not in _ON_REQUEST and _tells_apart(ends, made):
            return made(ends)
    raise AlikeError(
        f"{ends.names[0]} and {ends.names[1]} are alike: both end with "
        f"{quoted(ending(ends.good.record))}, and {_rest(ends)}; name other ends, or say with "
        "--when what differs"
    )


def _rest(ends: Ends) -> str:
    """Return what else was compared of two ends that are alike."""
    verbatim = ByOutput(ends, verbatim=True)
    if line := verbatim.difference(ends.bad):
        return (
            "nothing else differs but facts of the environment (versions, paths, devices, "
            f"addresses, times), e.g. {ends.names[1]} {line}"
        )
    return "nothing else that was seen differs"


def _tells_apart(ends: Ends, made: Callable[[Ends], Predicate]) -> bool:
    both = (ends.good.record.artifacts, ends.bad.record.artifacts)
    if made is PREDICATES["value"] and not all("value" in artifacts for artifacts in both):
        return False
    predicate = made(ends)
    return predicate.state(ends.good) == GOOD and predicate.state(ends.bad) == BAD


def _refuse_two_failures(ends: Ends) -> None:
    endings = tuple(ending(side.record) for side in (ends.good, ends.bad))
    failed = all(side.record.outcome is not Outcome.OK for side in (ends.good, ends.bad))
    if failed and not same_failure(*endings):
        raise DifferentFailuresError(
            f"both ends fail, for different reasons: {ends.names[0]} with {quoted(endings[0])}, "
            f"{ends.names[1]} with {quoted(endings[1])}; name another good end, or say "
            "--when ending to find where the one became the other"
        )


def _verify(predicate: Predicate, ends: Ends) -> None:
    for side, label, expected in zip((ends.good, ends.bad), ends.names, (GOOD, BAD), strict=True):
        state = predicate.state(side)
        if state != expected:
            said = quoted(ending(side.record))
            raise EndsError(
                f"{label} was to be {expected.kind}, got {state.kind}: {said}; a point is bad "
                f"that {predicate.about}"
            )
