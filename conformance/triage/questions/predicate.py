"""Predicates: which of two ends a point is like, told from one look at it.

Pure but for the values that are decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from conformance.engine.comparing import value_of
from conformance.errors import ConformanceError
from conformance.judge.values import compare_values
from conformance.model.outcome import Conformance, ExitCode, Outcome
from conformance.triage.questions.failure import Failures
from conformance.triage.questions.state import BAD, GOOD, Kind, State

if TYPE_CHECKING:
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
    """A question that each point answers at once."""

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
        seen = printed(side)
        if seen == self.good:
            return GOOD
        return BAD if seen == self.bad else State(Kind.BAD, f"output {seen[:8]}")


def printed(side: Side) -> str:
    """Return the blob of what a target printed, empty where it is no program."""
    return side.record.artifacts.get("stdout", "")
