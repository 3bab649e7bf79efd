"""Predicates that compare one sample of a point with the good and the bad endpoint.

Pure, except that values are decoded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from conformance.engine.runs.stored_job import load_value
from conformance.errors import UsageError
from conformance.judge.ir import FACT, find_changed_facts
from conformance.judge.values import compare_values
from conformance.model.outcome import Conformance, Outcome
from conformance.search.equivalence import (
    SILENT,
    EquivalenceClasses,
    classify_failure,
    find_differing_lines,
    format_ending,
    is_same_failure,
    is_same_output,
    shorten,
)

if TYPE_CHECKING:
    from conformance.engine.runs.stored_job import StoredJob
    from conformance.judge.tolerance import Tolerance
    from conformance.model.record import Record

STDOUT: Final = "stdout"
OUTPUT: Final = "output"
"""Artifacts of a program: its output with and without the facts of its environment."""


class PointKind(StrEnum):
    """The comparison of a point with both endpoints."""

    GOOD = "good"
    """The point behaves like the good endpoint."""
    BAD = "bad"
    """The point behaves like the bad endpoint."""
    OTHER = "other"
    """Neither: the point fails for another reason."""
    UNKNOWN = "unknown"
    """Nothing can be compared: the cell cannot be installed, or the host was at fault."""


@dataclass(frozen=True, slots=True)
class PointState:
    """The state of a point, equal for points with the same behaviour.

    Attributes:
        kind: Comparison of the point with both endpoints.
        about: Text that distinguishes states of one kind, e.g. the signature of an error.
    """

    kind: PointKind
    about: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the point can be compared with others."""
        return self.kind is not PointKind.UNKNOWN


GOOD = PointState(PointKind.GOOD)
BAD = PointState(PointKind.BAD)


class Predicate(Protocol):
    """A predicate that decides on one sample."""

    @property
    def name(self) -> str:
        """Name of the predicate for `--when`."""
        ...

    @property
    def about(self) -> str:
        """The behaviour of a bad point, in a few words."""
        ...

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Samples of both endpoints.

    Attributes:
        good: Sample of the good endpoint.
        bad: Sample of the bad endpoint.
        names: Names of both endpoints in messages, the good endpoint first.
        tolerance: Tolerance of equal values.
        unstable: Numbers of the lines that an endpoint prints differently from run to run.
    """

    good: StoredJob
    bad: StoredJob
    names: tuple[str, str]
    tolerance: Tolerance
    unstable: frozenset[int] = frozenset()


class EndingPredicate:
    """Compares the failure, or its absence, with those of both endpoints.

    A failure in the class of an endpoint, e.g. the same exception with another message, is as good
    or bad as that endpoint, but another state, unless both endpoints fail in one class.

    Args:
        ends: Both endpoints.
        exact: Whether a reworded message is another failure.
    """

    def __init__(self, ends: Endpoints, *, exact: bool = False) -> None:
        self.name = "message" if exact else "ending"
        self._good, self._bad = format_ending(ends.good.record), format_ending(ends.bad.record)
        self.about = f"ends with {shorten(self._bad)}"
        self._exact = exact
        # The bad failure first: a wording close to both endpoints counts as the bad one.
        self._failures = EquivalenceClasses(is_same_failure, self._bad, self._good)
        good, bad = classify_failure(ends.good.record), classify_failure(ends.bad.record)
        self._kinds = {bad: PointKind.BAD, good: PointKind.GOOD} if bad != good else {}

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        seen = format_ending(side.record)
        failure = seen if self._exact else self._failures.find_first(seen)
        if failure == self._bad:
            return BAD
        if failure == self._good:
            return GOOD
        return PointState(self._kinds.get(classify_failure(side.record), PointKind.OTHER), failure)


class ExitPredicate:
    """Decides by failure of any kind; a failure unlike the bad endpoint's is another state.

    Args:
        ends: Both endpoints.
    """

    name = "exit"
    about = "fails, in any way"

    def __init__(self, ends: Endpoints) -> None:
        self._bad = format_ending(ends.bad.record)
        self._failures = EquivalenceClasses(is_same_failure, self._bad)

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if side.record.outcome is Outcome.OK:
            return GOOD
        failure = self._failures.find_first(format_ending(side.record))
        # Bad as well, but another state, so that a change of the failure is found, too.
        return BAD if failure == self._bad else PointState(PointKind.BAD, failure)


@dataclass(frozen=True, slots=True)
class ConformancePredicate:
    """Decides by conformance to the reference of the case."""

    name: str = "conformance"
    about: str = "deviates from its own reference"

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if side.record.outcome is not Outcome.OK:
            return make_other_state(side.record)
        if side.record.conformance is Conformance.UNKNOWN:
            return PointState(PointKind.UNKNOWN, "no reference applies")
        return GOOD if side.record.conformance is Conformance.CONFORMS else BAD


class ValuePredicate:
    """Compares the value with the good endpoint; each other value is a separate state.

    Args:
        ends: Both endpoints, which have values.
    """

    name = "value"
    about = "gives another value than the good end"

    def __init__(self, ends: Endpoints) -> None:
        self._values = EquivalenceClasses(
            lambda value, known: compare_values(value, known, ends.tolerance).agrees,
            load_value(ends.good),
            load_value(ends.bad),
        )

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if side.record.outcome is not Outcome.OK or "value" not in side.record.artifacts:
            return make_other_state(side.record)
        return _number_state("value", self._values.find_number(load_value(side)))


class OutputPredicate:
    """Compares the output with the good endpoint; each other output is a separate state.

    Numbers may differ within a tolerance, unless the endpoints differ only in digits.

    Args:
        ends: Both endpoints.
        verbatim: Whether facts of the environment and each digit are compared.
    """

    def __init__(self, ends: Endpoints, *, verbatim: bool = False) -> None:
        self.name = "text" if verbatim else "output"
        self._artifact = STDOUT if verbatim else OUTPUT
        self._good, bad = (self.read_text(side) for side in (ends.good, ends.bad))
        self._unstable = ends.unstable
        # Equal within the tolerance: then the endpoints differ in digits, or do not differ.
        self._exact = verbatim or is_same_output(self._good, bad, self._unstable)
        only_digits = self._exact and not verbatim
        self.about = (
            f"prints {'other digits' if only_digits else 'something other'} than the good end"
        )
        self._texts = EquivalenceClasses(
            lambda text, known: is_same_output(text, known, self._unstable, exact=self._exact),
            self._good,
            bad,
        )

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if side.record.outcome is not Outcome.OK:
            return make_other_state(side.record)
        return _number_state("output", self._texts.find_number(self.read_text(side)))

    def read_text(self, side: StoredJob) -> str:
        """Return the output of a target, empty if it is not a program."""
        return read_output(side, self._artifact)

    def describe_difference(self, side: StoredJob) -> str:
        """Return the first line that differs from the good endpoint, empty if none."""
        lines = find_differing_lines(
            self.read_text(side), self._good, self._unstable, exact=self._exact
        )
        _, line, before = next(lines, (0, "", ""))
        return f"prints {shorten(line)!r} instead of {shorten(before)!r}" if line or before else ""


def _number_state(noun: str, number: int) -> PointState:
    """Return the state of a class: 0 is the class of the good endpoint, 1 of the bad endpoint."""
    return (GOOD, BAD)[number] if number <= 1 else PointState(PointKind.BAD, f"{noun} {number}")


def read_output(side: StoredJob, artifact: str = OUTPUT) -> str:
    """Return the output of a program, empty for a target of another kind.

    Args:
        side: The record of the target, with its blobs.
        artifact: `OUTPUT`, without the facts of its environment, or `STDOUT`.
    """
    blob = side.record.artifacts.get(artifact)
    return decode_output(side.blobs.get(blob)) if blob else ""


def decode_output(data: bytes) -> str:
    """Return the text of an output, which may be cut in the middle of a character, or binary."""
    return data.decode("utf-8", "replace")


def classify_sample(predicate: Predicate, side: StoredJob) -> PointState:
    """Return the state of one sample, unknown if the target could not be tried.

    Args:
        predicate: The predicate.
        side: The sample.
    """
    if side.record.outcome in SILENT:
        return PointState(PointKind.UNKNOWN, format_ending(side.record))
    return predicate.classify(side)


def describe_detail(predicate: Predicate, side: StoredJob) -> str:
    """Return the part of a successful job that the predicate decided by, empty if it has no text.

    Args:
        predicate: The predicate.
        side: The job.
    """
    match predicate:
        case FactPredicate(fact):
            known = fact.partition(".")[0] in side.record.facts
            return f"{fact} = {json.dumps(get_fact(side, fact))}" if known else ""
        case OutputPredicate():
            return predicate.describe_difference(side)
        case _:
            return ""


def make_other_state(record: Record) -> PointState:
    """Return the state of a job with an outcome that the predicate does not decide."""
    return PointState(PointKind.OTHER, "" if record.error is None else record.error.type)


@dataclass(frozen=True, slots=True)
class FactPredicate:
    """Compares a fact with its values at the bad and the good endpoint.

    Attributes:
        fact: Name of the fact; a dot selects a part of it.
        bad: The value at the bad endpoint.
        wanted: The good value, as JSON data; None for any value except the bad value.
    """

    fact: str
    bad: Any
    wanted: Any = None
    name: str = "facts"

    @property
    def about(self) -> str:
        """The fact."""
        return f"states {self.fact} = {json.dumps(self.bad)}"

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        # A job without HLO has no facts; a part that is missing from a fact is a count of 0.
        if self.fact.partition(".")[0] not in side.record.facts:
            return make_other_state(side.record)
        seen = get_fact(side, self.fact)
        if seen == self.bad:
            return BAD
        if self.wanted is None or seen == self.wanted:
            return GOOD
        return PointState(PointKind.OTHER, f"{self.fact} = {json.dumps(seen)}")


@dataclass(frozen=True, slots=True)
class FactsPredicate:
    """Compares the gating facts with the good endpoint."""

    good: StoredJob
    names: tuple[str, ...]
    name: str = "facts"

    @property
    def about(self) -> str:
        """The facts."""
        return f"states otherwise: {', '.join(self.names)}"

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if not side.record.facts:
            return make_other_state(side.record)
        # Only the facts in which the endpoints differ: others may change on the way and back.
        differ = find_differing_facts(side.record, self.good.record)
        return BAD if differ.intersection(self.names) else GOOD


def find_differing_facts(record: Record, good: Record) -> set[str]:
    """Return the names of the facts that gate and differ, e.g. `results[0] memory`.

    Args:
        record: The job at a point.
        good: The job at the good endpoint.
    """
    sentences = find_changed_facts(record.facts, good.facts)
    return {sentence.removeprefix(FACT).partition(":")[0] for sentence in sentences}


def get_fact(side: StoredJob, name: str) -> Any:
    """Return a fact, or a part of it; a missing part is 0.

    Args:
        side: The program.
        name: E.g. `collectives.all-reduce`, or `while_loops`.

    Raises:
        UsageError: If the fact does not exist.
    """
    first, _, part = name.partition(".")
    facts = side.record.facts
    if first not in facts:
        expected = f"one of {', '.join(sorted(facts))}" if facts else "a program with optimised HLO"
        raise UsageError(f"--fact {name}: no such fact, expected {expected}")
    if not part:
        return facts[first]
    if not isinstance(facts[first], dict):
        raise UsageError(f"--fact {name}: {first} has no parts, it is {json.dumps(facts[first])}")
    return facts[first].get(part, 0)
