"""What is asked of a program with passes disabled: does it do now what is looked for? Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.job_comparison import load_value
from conformance.errors import UsageError
from conformance.judge.comparison import Agreement
from conformance.judge.values import compare_values
from conformance.model.outcome import Conformance, Outcome
from conformance.triage.passes.search import Answer
from conformance.triage.questions.facts import ByFact, fact_of
from conformance.triage.questions.predicate import Ends, EndsError, ending, other, printed, quoted
from conformance.triage.questions.question import chosen, state_of
from conformance.triage.questions.state import BAD, GOOD, State

if TYPE_CHECKING:
    from conformance.engine.job_comparison import StoredJob
    from conformance.judge.tolerance import Tolerance
    from conformance.triage.questions.predicate import Predicate

WHEN: Final = ("conformance", "ending", "value", "bits", "facts", "output")
"""What may be looked for."""


@dataclass(frozen=True, slots=True)
class Conforms:
    """Does what its own reference says."""

    bad: str
    name: str = "conformance"
    about: str = "deviates from its own reference"

    def state(self, side: StoredJob) -> State:
        """Return what a program shows."""
        if side.record.conformance is Conformance.CONFORMS:
            return GOOD
        return BAD if ending(side.record) == self.bad else other(side.record)


@dataclass(frozen=True, slots=True)
class Succeeds:
    """Ends without an error."""

    bad: str
    name: str = "ending"

    @property
    def about(self) -> str:
        """The error."""
        return f"ends with {quoted(self.bad)}"

    def state(self, side: StoredJob) -> State:
        """Return what a program shows."""
        if side.record.outcome is Outcome.OK:
            return GOOD
        return BAD if ending(side.record) == self.bad else other(side.record)


@dataclass(frozen=True, slots=True)
class Bits:
    """Gives the bits of a known value, or others.

    Attributes:
        known: A job that gives the value.
        tolerance: What the case states.
        same: What those very bits are.
        differ: What others are, be it by the last one.
        about: What a bad program does, in a few words.
    """

    known: StoredJob
    tolerance: Tolerance
    same: State
    differ: State
    about: str
    name: str = "bits"

    def state(self, side: StoredJob) -> State:
        """Return what a program shows."""
        if side.record.outcome is not Outcome.OK or "value" not in side.record.artifacts:
            return other(side.record)
        if side.record.artifacts["value"] == self.known.record.artifacts["value"]:
            return self.same
        compared = compare_values(load_value(side), load_value(self.known), self.tolerance)
        return self.same if compared.agreement is Agreement.EQUAL else self.differ


@dataclass(frozen=True, slots=True)
class Prints:
    """Prints something else.

    Attributes:
        bad: What is printed now.
    """

    bad: str
    name: str = "output"
    about: str = "prints this very output"

    def state(self, side: StoredJob) -> State:
        """Return what a program shows."""
        if side.record.outcome is not Outcome.OK:
            return other(side.record)
        return BAD if printed(side) == self.bad else GOOD


def question_within(bad: StoredJob, tolerance: Tolerance, *, when: str, fact: str) -> Predicate:
    """Return what is asked within one cell.

    Args:
        bad: The program there, as it is.
        tolerance: How far values may differ.
        when: What `--when` says; empty for what the case itself says.
        fact: What `--fact` says, `NAME` or `NAME=JSON`.

    Raises:
        UsageError: If the program gives no cause for the question.
    """
    name = f"{bad.record.case} on {bad.record.cell}"
    if fact:
        return _fact(bad, fact, None)
    if when in ("value", "bits"):
        if "value" not in bad.record.artifacts:
            raise UsageError(f"--when {when}: {name} gives no value: {quoted(ending(bad.record))}")
        return Bits(bad, tolerance, same=BAD, differ=GOOD, about="gives these very bits")
    if when == "output":
        if "stdout" not in bad.record.artifacts:
            raise UsageError(f"--when output: {name} is a case; --when bits asks for its value")
        return Prints(printed(bad))
    if when == "facts":
        raise UsageError("--when facts: within one cell, name the fact with --fact")
    deviates = bad.record.conformance is Conformance.DEVIATES
    failed = bad.record.outcome is not Outcome.OK
    unjudged = bad.record.conformance is Conformance.UNKNOWN
    if failed and (when == "ending" or (not when and unjudged)):
        return Succeeds(ending(bad.record))
    if deviates and when in ("", "conformance"):
        return Conforms(ending(bad.record))
    seen = "ends well" if when == "ending" else f"{bad.record.conformance}"
    raise UsageError(
        f"{name}: {seen}, expected a deviation to explain; --when bits (of a script: output) or "
        "--fact NAME finds what makes its value or a fact what it is, --good-cell what makes it "
        "differ from another cell"
    )


def question_between(ends: Ends, *, when: str, fact: str) -> Predicate:
    """Return what is asked of two cells.

    Args:
        ends: The program in both, as it is.
        when: What `--when` says; empty for whatever tells them apart.
        fact: What `--fact` says: a name.

    Raises:
        EndsError: If they are alike, or not comparable.
        UsageError: If there is no such fact.
    """
    if fact:
        return _fact(ends.bad, fact, ends.good)
    about = "gives other bits than the good cell"
    bits = Bits(ends.good, ends.tolerance, same=GOOD, differ=BAD, about=about)
    valued = "value" in ends.good.record.artifacts
    differ = valued and bits.state(ends.bad) == BAD
    if when == "bits":
        if not differ:
            raise EndsError(f"{' and '.join(ends.names)} give the same bits, or no value at all")
        return bits
    try:
        return chosen(ends, when)
    except EndsError:
        if when or not differ:
            raise
        return bits


def _fact(bad: StoredJob, text: str, good: StoredJob | None) -> Predicate:
    name, given, value = text.partition("=")
    seen = fact_of(bad, name)
    wanted = _json(value, text) if given else None if good is None else fact_of(good, name)
    if (given or good is not None) and wanted == seen:
        raise EndsError(f"--fact {text}: is {json.dumps(seen)} in the bad cell too")
    return ByFact(name, seen, wanted)


def _json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise UsageError(f"--fact {option}: expected JSON after =, e.g. 2 or true") from None


def answer_of(predicate: Predicate, side: StoredJob, bad: StoredJob) -> Answer:
    """Return what a program does with passes disabled, or under another flag.

    Args:
        predicate: What is asked.
        side: What came of it.
        bad: What comes of it without that.
    """
    state = state_of(predicate, side)
    if state == GOOD:
        return Answer.FLIPS
    failed = side.record.outcome is not Outcome.OK and ending(side.record) != ending(bad.record)
    return Answer.UNKNOWN if failed or not state.is_known else Answer.STAYS
