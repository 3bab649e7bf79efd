"""The question of a bisection: what is asked of each point, and how often. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Protocol

from conformance.model.outcome import Conformance, Outcome
from conformance.triage.questions.facts import ByFact, ByFacts, differing, fact_of
from conformance.triage.questions.failure import same_failure
from conformance.triage.questions.predicate import (
    SILENT,
    ByConformance,
    ByEnding,
    ByExit,
    ByOutput,
    ByValue,
    EndsError,
    ending,
    printed,
    quoted,
)
from conformance.triage.questions.state import BAD, GOOD, Kind, State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.engine.comparing import Side
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

    def state(self, samples: Sequence[Side]) -> State | None:
        """Return what a point shows, None if it must be tried again."""
        ...

    def said(self, samples: Sequence[Side]) -> str:
        """Return what was seen there, in a few words."""
        ...


@dataclass(frozen=True, slots=True)
class Seen:
    """A question that one look answers.

    Attributes:
        predicate: It.
    """

    predicate: Predicate

    @property
    def name(self) -> str:
        """What `--when` calls it."""
        return self.predicate.name

    @property
    def about(self) -> str:
        """What a bad point does, in a few words."""
        return self.predicate.about

    def state(self, samples: Sequence[Side]) -> State:
        """Return what the last look showed."""
        return state_of(self.predicate, samples[-1])

    def said(self, samples: Sequence[Side]) -> str:
        """Return how the job ended, and whether it conforms."""
        side = samples[-1]
        record = side.record
        if record.outcome is not Outcome.OK:
            return quoted(ending(record))
        judged = record.conformance is not Conformance.UNKNOWN
        parts = (record.outcome, record.conformance if judged else "", shown(self.predicate, side))
        return ", ".join(filter(None, parts))


def shown(predicate: Predicate, side: Side) -> str:
    """Return what of a job that ended well the answer hangs on, empty where nothing can be shown.

    Args:
        predicate: What is asked.
        side: What came of the target.
    """
    match predicate:
        case ByFact(fact):
            known = fact.partition(".")[0] in side.record.facts
            return f"{fact} = {json.dumps(fact_of(side, fact))}" if known else ""
        case ByOutput(good):
            return _other_line(side, good)
        case _:
            return ""


def _other_line(side: Side, good: str) -> str:
    """Return the first line that differs from what the good end printed."""
    texts = (side.blobs.get(blob).decode("utf-8", "replace") for blob in (printed(side), good))
    pairs = zip_longest(*(text.splitlines() for text in texts), fillvalue="")
    pair = next((two for two in pairs if two[0] != two[1]), None)
    if pair is None:
        return ""
    line, before = (quoted(text) for text in pair)
    return f"prints {line!r} for {before!r}"


def state_of(predicate: Predicate, side: Side) -> State:
    """Return what a point shows to a predicate; nothing, where the target could not be tried.

    Args:
        predicate: It.
        side: What came of the target there.
    """
    if side.record.outcome in SILENT:
        return State(Kind.UNKNOWN, ending(side.record))
    return predicate.state(side)


def _by_ending(ends: Ends) -> Predicate:
    return ByEnding(ending(ends.good.record), ending(ends.bad.record))


def _by_message(ends: Ends) -> Predicate:
    return ByEnding(ending(ends.good.record), ending(ends.bad.record), exact=True)


def _by_facts(ends: Ends) -> Predicate:
    names = differing(ends.bad.record, ends.good.record)
    return ByFacts(ends.good, tuple(sorted(names)))


def _by_fact(ends: Ends, name: str) -> Predicate:
    good, bad = fact_of(ends.good, name), fact_of(ends.bad, name)
    if good == bad:
        raise EndsError(f"--fact {name}: is {json.dumps(good)} at both ends; name another")
    return ByFact(name, bad, good)


PREDICATES: Final[Mapping[str, Callable[[Ends], Predicate]]] = {
    "ending": _by_ending,
    "message": _by_message,
    "exit": lambda ends: ByExit(ending(ends.bad.record)),
    "conformance": lambda _: ByConformance(),
    "value": ByValue,
    "facts": _by_facts,
    "output": lambda ends: ByOutput(printed(ends.good), printed(ends.bad)),
}
"""Predicates by what `--when` calls them, the one that tells most first."""


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
            raise EndsError(f"{label} says nothing: {quoted(ending(side.record))}; name another")
    if fact:
        return _by_fact(ends, fact)
    if name:
        predicate = PREDICATES[name](ends)
        _verify(predicate, ends)
        return predicate
    _refuse_two_failures(ends)
    for made in PREDICATES.values():
        if _tells_apart(ends, made):
            return made(ends)
    raise EndsError(
        f"{ends.names[0]} and {ends.names[1]} are alike: both end with "
        f"{quoted(ending(ends.good.record))}, and nothing else that was seen differs; name other "
        "ends, or say with --when what differs"
    )


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
        raise EndsError(
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
