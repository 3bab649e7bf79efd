"""Predicates: whether one sample of a point is like the good or like the bad endpoint.

Pure, except that values are decoded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from conformance.engine.job_comparison import load_value
from conformance.errors import ConformanceError, UsageError
from conformance.judge.ir import FACT, find_changed_facts
from conformance.judge.values import compare_values
from conformance.model.outcome import Conformance, ExitCode, Outcome
from conformance.search.equivalence import (
    SILENT,
    Classes,
    differing_lines,
    ending,
    failure_class,
    quoted,
    same_failure,
    same_output,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.engine.job_comparison import StoredJob
    from conformance.judge.tolerance import Tolerance
    from conformance.model.record import Record

STDOUT: Final = "stdout"
OUTPUT: Final = "output"
"""Artifacts of a program: what it printed, with and without the facts of its environment."""


class PointKind(StrEnum):
    """How a point compares with both endpoints."""

    GOOD = "good"
    """It does what the good endpoint does."""
    BAD = "bad"
    """It does what the bad endpoint does."""
    OTHER = "other"
    """Neither: it fails for another reason."""
    UNKNOWN = "unknown"
    """Nothing can be compared: it cannot be installed, or the host was at fault."""


@dataclass(frozen=True, slots=True)
class PointState:
    """The state of a point, equal for points that do the same.

    Attributes:
        kind: How the point compares with both endpoints.
        about: Text that tells states of one kind apart, e.g. the signature of an error.
    """

    kind: PointKind
    about: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the point can be compared with others."""
        return self.kind is not PointKind.UNKNOWN


GOOD = PointState(PointKind.GOOD)
BAD = PointState(PointKind.BAD)


class EndpointsError(ConformanceError):
    """Endpoints between which nothing can be searched."""

    exit_code = ExitCode.USAGE


class AlikeError(EndpointsError):
    """Endpoints that no predicate tells apart."""


class DifferentFailuresError(EndpointsError):
    """Endpoints that fail for different reasons."""


class Predicate(Protocol):
    """A predicate that decides on one sample."""

    @property
    def name(self) -> str:
        """The name that `--when` has for it."""
        ...

    @property
    def about(self) -> str:
        """What a bad point does, in a few words."""
        ...

    def state(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Samples of both endpoints.

    Attributes:
        good: The good one.
        bad: The bad one.
        names: Their names in messages, that of the good one first.
        tolerance: How far values of one target may differ.
        unstable: Numbers of the lines that one endpoint prints differently from run to run.
    """

    good: StoredJob
    bad: StoredJob
    names: tuple[str, str]
    tolerance: Tolerance
    unstable: frozenset[int] = frozenset()


class ByEnding:
    """Ends as one of both endpoints does: with the same failure, or none.

    A failure of the class of an endpoint's, e.g. the same exception with another message, is as
    good or bad as that endpoint, and a state of its own, unless both fail in one class.

    Args:
        ends: Both endpoints.
        exact: Whether another wording is another failure.
    """

    def __init__(self, ends: Endpoints, *, exact: bool = False) -> None:
        self.name = "message" if exact else "ending"
        self._good, self._bad = ending(ends.good.record), ending(ends.bad.record)
        self._exact = exact
        self._failures = Classes(same_failure, self._bad, self._good)
        good, bad = failure_class(ends.good.record), failure_class(ends.bad.record)
        self._kinds = {bad: PointKind.BAD, good: PointKind.GOOD} if bad != good else {}

    @property
    def about(self) -> str:
        """The ending that is bad."""
        return f"ends with {quoted(self._bad)}"

    def state(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        seen = ending(side.record)
        failure = seen if self._exact else self._failures.first_of(seen)
        if failure == self._bad:
            return BAD
        if failure == self._good:
            return GOOD
        return PointState(self._kinds.get(failure_class(side.record), PointKind.OTHER), failure)


class ByExit:
    """Fails in any way; another failure than the bad endpoint's is another state.

    Args:
        ends: Both endpoints.
    """

    name = "exit"
    about = "fails, in whatever way"

    def __init__(self, ends: Endpoints) -> None:
        self._bad = ending(ends.bad.record)
        self._failures = Classes(same_failure, self._bad)

    def state(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if side.record.outcome is Outcome.OK:
            return GOOD
        failure = self._failures.first_of(ending(side.record))
        return BAD if failure == self._bad else PointState(PointKind.BAD, failure)


@dataclass(frozen=True, slots=True)
class ByConformance:
    """Conforms to its own reference, or deviates."""

    name: str = "conformance"
    about: str = "deviates from its own reference"

    def state(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if side.record.outcome is not Outcome.OK:
            return other(side.record)
        if side.record.conformance is Conformance.UNKNOWN:
            return PointState(PointKind.UNKNOWN, "no reference applies")
        return GOOD if side.record.conformance is Conformance.CONFORMS else BAD


class ByValue:
    """Gives another value than the good endpoint; each other value is a state of its own.

    Args:
        ends: Both endpoints, which have values.
    """

    name = "value"
    about = "gives another value than the good end"

    def __init__(self, ends: Endpoints) -> None:
        self._values = Classes(
            lambda value, known: compare_values(value, known, ends.tolerance).agrees,
            load_value(ends.good),
            load_value(ends.bad),
        )

    def state(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if side.record.outcome is not Outcome.OK or "value" not in side.record.artifacts:
            return other(side.record)
        return _numbered("value", self._values.number_of(load_value(side)))


class ByOutput:
    """Prints another text than the good endpoint; each other text is a state of its own.

    Numbers may differ within a tolerance, unless only their digits tell the endpoints apart.

    Args:
        ends: Both endpoints.
        verbatim: Whether facts of the environment count, and each digit.
    """

    def __init__(self, ends: Endpoints, *, verbatim: bool = False) -> None:
        self.name = "text" if verbatim else "output"
        self._artifact = STDOUT if verbatim else OUTPUT
        self._good, bad = (self.text(side) for side in (ends.good, ends.bad))
        self._unstable = ends.unstable
        self._exact = verbatim or same_output(self._good, bad, self._unstable)
        self._texts = Classes(
            lambda text, known: same_output(text, known, self._unstable, exact=self._exact),
            self._good,
            bad,
        )

    @property
    def about(self) -> str:
        """That it prints something else."""
        if self.name == "output" and self._exact:
            return "prints other digits than the good end"
        return "prints something else than the good end"

    def state(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if side.record.outcome is not Outcome.OK:
            return other(side.record)
        return _numbered("output", self._texts.number_of(self.text(side)))

    def text(self, side: StoredJob) -> str:
        """Return what a target printed, empty where it is no program."""
        return output_of(side, self._artifact)

    def difference(self, side: StoredJob) -> str:
        """Return the first line that differs from what the good endpoint printed, empty if none."""
        lines = differing_lines(self.text(side), self._good, self._unstable, exact=self._exact)
        _, line, before = next(lines, (0, "", ""))
        return f"prints {quoted(line)!r} for {quoted(before)!r}" if line or before else ""


def _numbered(noun: str, number: int) -> PointState:
    """Return the state of a class: the good endpoint's is number 0, the bad one's 1."""
    return (GOOD, BAD)[number] if number <= 1 else PointState(PointKind.BAD, f"{noun} {number}")


def output_of(side: StoredJob, artifact: str = OUTPUT) -> str:
    """Return what a program printed, empty where the target is none.

    Args:
        side: The record of the target, with its blobs.
        artifact: `OUTPUT`, without the facts of its environment, or `STDOUT`.
    """
    blob = side.record.artifacts.get(artifact)
    return side.blobs.get(blob).decode("utf-8", "replace") if blob else ""


def state_of(predicate: Predicate, side: StoredJob) -> PointState:
    """Return the state that one sample shows; unknown where the target could not be tried.

    Args:
        predicate: The predicate.
        side: The sample.
    """
    if side.record.outcome in SILENT:
        return PointState(PointKind.UNKNOWN, ending(side.record))
    return predicate.state(side)


def detail_of(predicate: Predicate, side: StoredJob) -> str:
    """Return the part of a successful job that a predicate decides by, empty if it has no text.

    Args:
        predicate: The predicate.
        side: The job.
    """
    match predicate:
        case ByFact(fact):
            known = fact.partition(".")[0] in side.record.facts
            return f"{fact} = {json.dumps(fact_of(side, fact))}" if known else ""
        case ByOutput():
            return predicate.difference(side)
        case _:
            return ""


def _by_facts(ends: Endpoints) -> Predicate:
    return ByFacts(ends.good, tuple(sorted(differing(ends.bad.record, ends.good.record))))


PREDICATES: Final[Mapping[str, Callable[[Endpoints], Predicate]]] = {
    "ending": ByEnding,
    "message": partial(ByEnding, exact=True),
    "exit": ByExit,
    "conformance": lambda _: ByConformance(),
    "value": ByValue,
    "facts": _by_facts,
    "output": ByOutput,
    "text": partial(ByOutput, verbatim=True),
}
"""Predicates by their names for `--when`, the most telling one first."""
_ON_REQUEST: Final = frozenset({"text"})
"""Predicates that also see facts of the environment, which are no behaviour."""


def choose_predicate(ends: Endpoints, name: str = "", fact: str = "") -> Predicate:
    """Return the predicate that tells two endpoints apart.

    Args:
        ends: Both endpoints.
        name: The value of `--when`; empty for the first predicate that tells them apart.
        fact: The value of `--fact`, the name of a fact.

    Raises:
        EndpointsError: If an endpoint says nothing, both fail for different reasons, or they are
            alike.
        UsageError: If there is no such fact.
    """
    sides = ends.good, ends.bad
    for side, label in zip(sides, ends.names, strict=True):
        if side.record.outcome in SILENT:
            raise EndpointsError(f"{label} says nothing: {ending(side.record)}; name another end")
    if fact:
        good, bad = (fact_of(side, fact) for side in sides)
        if good == bad:
            raise EndpointsError(f"--fact {fact}: is {json.dumps(good)} at both ends; name another")
        return ByFact(fact, bad, good)
    if name:
        predicate = PREDICATES[name](ends)
        _verify(predicate, ends)
        return predicate
    _refuse_two_failures(ends)
    for when, build in PREDICATES.items():
        if when in _ON_REQUEST:
            continue
        if when == "value" and any("value" not in side.record.artifacts for side in sides):
            continue
        predicate = build(ends)
        if predicate.state(ends.good) == GOOD and predicate.state(ends.bad) == BAD:
            return predicate
    raise AlikeError(
        f"{ends.names[0]} and {ends.names[1]} are alike: both end with "
        f"{quoted(ending(ends.good.record))}, and {_rest(ends)}; name other ends, or say with "
        "--when what differs"
    )


def _rest(ends: Endpoints) -> str:
    """Return what else was compared of two endpoints that are alike."""
    if line := ByOutput(ends, verbatim=True).difference(ends.bad):
        return (
            "nothing else differs but facts of the environment (versions, paths, devices, "
            f"addresses, times), e.g. {ends.names[1]} {line}"
        )
    return "nothing else that was seen differs"


def _refuse_two_failures(ends: Endpoints) -> None:
    endings = tuple(ending(side.record) for side in (ends.good, ends.bad))
    failed = all(side.record.outcome is not Outcome.OK for side in (ends.good, ends.bad))
    if failed and not same_failure(*endings):
        raise DifferentFailuresError(
            f"both ends fail, for different reasons: {ends.names[0]} with {quoted(endings[0])}, "
            f"{ends.names[1]} with {quoted(endings[1])}; name another good end, or say "
            "--when ending to find where the one became the other"
        )


def _verify(predicate: Predicate, ends: Endpoints) -> None:
    for side, label, expected in zip((ends.good, ends.bad), ends.names, (GOOD, BAD), strict=True):
        state = predicate.state(side)
        if state != expected:
            said = quoted(ending(side.record))
            raise EndpointsError(
                f"{label} was to be {expected.kind}, got {state.kind}: {said}; a point is bad "
                f"that {predicate.about}"
            )


def other(record: Record) -> PointState:
    """Return the state of a job that ended in another way than a predicate is about."""
    return PointState(PointKind.OTHER, "" if record.error is None else record.error.type)


@dataclass(frozen=True, slots=True)
class ByFact:
    """States a fact as the bad endpoint does, or as is looked for.

    Attributes:
        fact: Its name; a dot leads into a fact that has parts.
        bad: The value at the bad endpoint.
        wanted: The value that is looked for, as JSON data; None for any other than the bad one.
    """

    fact: str
    bad: Any
    wanted: Any = None
    name: str = "facts"

    @property
    def about(self) -> str:
        """The fact."""
        return f"states {self.fact} = {json.dumps(self.bad)}"

    def state(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if self.fact.partition(".")[0] not in side.record.facts:
            return other(side.record)
        seen = fact_of(side, self.fact)
        if seen == self.bad:
            return BAD
        if self.wanted is None or seen == self.wanted:
            return GOOD
        return PointState(PointKind.OTHER, f"{self.fact} = {json.dumps(seen)}")


@dataclass(frozen=True, slots=True)
class ByFacts:
    """States other facts than the good endpoint, of those that gate."""

    good: StoredJob
    names: tuple[str, ...]
    name: str = "facts"

    @property
    def about(self) -> str:
        """The facts."""
        return f"states otherwise: {', '.join(self.names)}"

    def state(self, side: StoredJob) -> PointState:
        """Return the state of a point."""
        if not side.record.facts:
            return other(side.record)
        differ = differing(side.record, self.good.record)
        return BAD if differ.intersection(self.names) else GOOD


def differing(record: Record, good: Record) -> set[str]:
    """Return the names of the facts that gate and differ, e.g. `results[0] memory`.

    Args:
        record: The job at a point.
        good: The job at the good endpoint.
    """
    sentences = find_changed_facts(record.facts, good.facts)
    return {sentence.removeprefix(FACT).partition(":")[0] for sentence in sentences}


def fact_of(side: StoredJob, name: str) -> Any:
    """Return a fact, or a part of it; a part that is missing counts 0.

    Args:
        side: The program.
        name: E.g. `collectives.all-reduce`, or `while_loops`.

    Raises:
        UsageError: If there is no such fact.
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
