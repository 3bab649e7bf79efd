"""What the question is: which of two ends a point is like. Pure but for the values it decodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from conformance.engine.comparing import value_of
from conformance.errors import ConformanceError
from conformance.judge.ir import FACT, changed_facts
from conformance.judge.values import compare_values
from conformance.model.outcome import Conformance, ExitCode, Outcome
from conformance.triage.failure import Failures, same_failure
from conformance.triage.state import BAD, GOOD, Kind, State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.engine.comparing import Side
    from conformance.judge.tolerance import Tolerance
    from conformance.model.record import Record

SILENT: Final = frozenset({Outcome.INFRA, Outcome.UNSUPPORTED, Outcome.NOT_RUN})
"""Outcomes that say nothing of the target."""
MOST: Final = 120
"""Characters of an ending that is quoted."""


class EndsError(ConformanceError):
    """Ends between which nothing can be searched."""

    exit_code = ExitCode.USAGE


class Predicate(Protocol):
    """A question that each point answers."""

    @property
    def name(self) -> str:
        """What `--when` calls it."""
        ...

    @property
    def about(self) -> str:
        """What a bad point does, in a few words."""
        ...

    def state(self, side: Side) -> State:
        """Return what a point shows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Both ends, as they were seen.

    Attributes:
        good: The good one.
        bad: The bad one.
        names: What they are called, the good one first.
        tolerance: How far values of one target may differ.
    """

    good: Side
    bad: Side
    names: tuple[str, str]
    tolerance: Tolerance


def ending(record: Record) -> str:
    """Return how a job ended: its outcome, or the signature of its error."""
    return str(record.outcome) if record.error is None else record.error.signature


def quoted(text: str) -> str:
    """Return an ending in one line that is not too long."""
    line = " ".join(text.split())
    return line if len(line) <= MOST else f"{line[: MOST - 3]}..."


def other(record: Record) -> State:
    """Return the state of a job that ended in another way than the question is about."""
    return State(Kind.OTHER, "" if record.error is None else record.error.type)


class ByEnding:
    """Ends as the one or as the other end does: with the same failure, or none.

    Args:
        good: How the good end ended.
        bad: How the bad end did.
        exact: Whether another wording is another failure.
    """

    def __init__(self, good: str, bad: str, *, exact: bool = False) -> None:
        self.name = "message" if exact else "ending"
        self._good, self._bad, self._exact = good, bad, exact
        self._failures = Failures(bad, good)

    @property
    def about(self) -> str:
        """The ending that is bad."""
        return f"ends with {quoted(self._bad)}"

    def state(self, side: Side) -> State:
        """Return what a point shows."""
        seen = ending(side.record)
        failure = seen if self._exact else self._failures.of(seen)
        if failure == self._bad:
            return BAD
        return GOOD if failure == self._good else State(Kind.OTHER, failure)


class ByExit:
    """Fails, in whatever way; another failure than the bad end's is another state.

    Args:
        bad: How the bad end ended.
    """

    name = "exit"
    about = "fails, in whatever way"

    def __init__(self, bad: str) -> None:
        self._bad = bad
        self._failures = Failures(bad)

    def state(self, side: Side) -> State:
        """Return what a point shows."""
        if side.record.outcome is Outcome.OK:
            return GOOD
        failure = self._failures.of(ending(side.record))
        return BAD if failure == self._bad else State(Kind.BAD, failure)


@dataclass(frozen=True, slots=True)
class ByConformance:
    """Does what its own reference says, or does not."""

    name: str = "conformance"
    about: str = "deviates from its own reference"

    def state(self, side: Side) -> State:
        """Return what a point shows."""
        if side.record.outcome is not Outcome.OK:
            return other(side.record)
        if side.record.conformance is Conformance.UNKNOWN:
            return State(Kind.UNKNOWN, "no reference applies")
        return GOOD if side.record.conformance is Conformance.CONFORMS else BAD


class ByValue:
    """Gives another value than the good end, beyond the tolerance; a third is a state of its own.

    Args:
        ends: Both ends, which have values.
    """

    name = "value"
    about = "gives another value than the good end"

    def __init__(self, ends: Ends) -> None:
        self._tolerance = ends.tolerance
        self._known = [(GOOD, value_of(ends.good)), (BAD, value_of(ends.bad))]

    def state(self, side: Side) -> State:
        """Return what a point shows."""
        if side.record.outcome is not Outcome.OK or "value" not in side.record.artifacts:
            return other(side.record)
        value = value_of(side)
        for state, known in self._known:
            if compare_values(value, known, self._tolerance).agrees:
                return state
        state = State(Kind.BAD, f"value {len(self._known)}")
        self._known.append((state, value))
        return state


@dataclass(frozen=True, slots=True)
class ByFacts:
    """States other facts than the good end."""

    good: Side
    names: tuple[str, ...]
    name: str = "facts"

    @property
    def about(self) -> str:
        """The facts."""
        return f"states otherwise: {', '.join(self.names)}"

    def state(self, side: Side) -> State:
        """Return what a point shows."""
        if not side.record.facts:
            return other(side.record)
        differ = _facts_that_differ(side.record, self.good.record)
        return BAD if differ.intersection(self.names) else GOOD


@dataclass(frozen=True, slots=True)
class ByOutput:
    """Prints something else than the good end; what neither end prints is a state of its own."""

    good: str
    bad: str
    name: str = "output"
    about: str = "prints something else than the good end"

    def state(self, side: Side) -> State:
        """Return what a point shows."""
        if side.record.outcome is not Outcome.OK:
            return other(side.record)
        printed = _printed(side)
        if printed == self.good:
            return GOOD
        return BAD if printed == self.bad else State(Kind.BAD, f"output {printed[:8]}")


def _printed(side: Side) -> str:
    return side.record.artifacts.get("stdout", "")


def state_of(predicate: Predicate, side: Side) -> State:
    """Return what a point shows to a question; nothing, where the target could not be tried.

    Args:
        predicate: The question.
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
    names = _facts_that_differ(ends.bad.record, ends.good.record)
    return ByFacts(ends.good, tuple(sorted(names)))


PREDICATES: Final[Mapping[str, Callable[[Ends], Predicate]]] = {
    "ending": _by_ending,
    "message": _by_message,
    "exit": lambda ends: ByExit(ending(ends.bad.record)),
    "conformance": lambda _: ByConformance(),
    "value": ByValue,
    "facts": _by_facts,
    "output": lambda ends: ByOutput(_printed(ends.good), _printed(ends.bad)),
}
"""Questions by what `--when` calls them, the one that tells most first."""


def chosen(ends: Ends, name: str = "") -> Predicate:
    """Return the question that tells two ends apart.

    Args:
        ends: Both ends.
        name: What `--when` says; without it the first question that the ends answer otherwise.

    Raises:
        EndsError: If an end says nothing, both fail for different reasons, or they are alike.
    """
    for side, label in zip((ends.good, ends.bad), ends.names, strict=True):
        if side.record.outcome in SILENT:
            raise EndsError(f"{label} says nothing: {quoted(ending(side.record))}; name another")
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


def _facts_that_differ(record: Record, good: Record) -> set[str]:
    """Return the names of the facts that gate and differ, e.g. `results[0] memory`."""
    said = changed_facts(record.facts, good.facts)
    return {sentence.removeprefix(FACT).partition(":")[0] for sentence in said}
