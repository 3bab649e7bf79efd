"""Predicates: which of two ends a point is like, told from one look at it.

Pure but for the values that are decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from conformance.engine.job_comparison import load_value
from conformance.errors import ConformanceError
from conformance.judge.values import compare_values
from conformance.model.outcome import Conformance, ExitCode, Outcome
from conformance.triage.questions.failure import Failures
from conformance.triage.questions.output import differing_lines, same_output
from conformance.triage.questions.state import BAD, GOOD, Kind, State

if TYPE_CHECKING:
    from conformance.engine.job_comparison import StoredJob
    from conformance.judge.tolerance import Tolerance
    from conformance.model.record import Record

SILENT: Final = frozenset({Outcome.INFRA, Outcome.UNSUPPORTED, Outcome.NOT_RUN})
"""Outcomes that say nothing of the target."""
STDOUT: Final = "stdout"
OUTPUT: Final = "output"
"""Artifacts of a program: what it printed, with and without the facts of its environment."""
MOST: Final = 120
"""Characters of an ending that is quoted."""


class EndsError(ConformanceError):
    """Ends between which nothing can be searched."""

    exit_code = ExitCode.USAGE


class AlikeError(EndsError):
    """Ends that nothing tells apart."""


class DifferentFailuresError(EndsError):
    """Ends that fail for different reasons."""


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

    def state(self, side: StoredJob) -> State:
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
        unstable: Numbers of the lines that one end prints differently from run to run.
    """

    good: StoredJob
    bad: StoredJob
    names: tuple[str, str]
    tolerance: Tolerance
    unstable: frozenset[int] = frozenset()


def ending(record: Record) -> str:
    """Return how a job ended: its outcome, or the signature of its error."""
    return str(record.outcome) if record.error is None else record.error.signature


def failure_class(record: Record) -> str:
    """Return the class of a failure: the type of its exception, or how the process ended.

    Returns:
        Empty for a job that did not fail.
    """
    if record.outcome is Outcome.OK:
        return ""
    if record.outcome is Outcome.RAISED and record.error is not None:
        return record.error.type
    return str(record.outcome)


def quoted(text: str) -> str:
    """Return an ending in one line that is not too long."""
    line = " ".join(text.split())
    return line if len(line) <= MOST else f"{line[: MOST - 3]}..."


def other(record: Record) -> State:
    """Return the state of a job that ended in another way than the question is about."""
    return State(Kind.OTHER, "" if record.error is None else record.error.type)


class ByEnding:
    """Ends as the one or as the other end does: with the same failure, or none.

    A failure of the class of an end's, e.g. the same exception with another message, is as good or
    bad as that end, and a state of its own, unless both ends fail in one class.

    Args:
        ends: Both ends.
        exact: Whether another wording is another failure.
    """

    def __init__(self, ends: Ends, *, exact: bool = False) -> None:
        self.name = "message" if exact else "ending"
        self._good, self._bad = ending(ends.good.record), ending(ends.bad.record)
        self._exact = exact
        self._failures = Failures(self._bad, self._good)
        good, bad = failure_class(ends.good.record), failure_class(ends.bad.record)
        self._kinds = {bad: Kind.BAD, good: Kind.GOOD} if bad != good else {}

    @property
    def about(self) -> str:
        """The ending that is bad."""
        return f"ends with {quoted(self._bad)}"

    def state(self, side: StoredJob) -> State:
        """Return what a point shows."""
        seen = ending(side.record)
        failure = seen if self._exact else self._failures.of(seen)
        if failure == self._bad:
            return BAD
        if failure == self._good:
            return GOOD
        return State(self._kinds.get(failure_class(side.record), Kind.OTHER), failure)


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

    def state(self, side: StoredJob) -> State:
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

    def state(self, side: StoredJob) -> State:
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
        self._known = [(GOOD, load_value(ends.good)), (BAD, load_value(ends.bad))]

    def state(self, side: StoredJob) -> State:
        """Return what a point shows."""
        if side.record.outcome is not Outcome.OK or "value" not in side.record.artifacts:
            return other(side.record)
        value = load_value(side)
        for state, known in self._known:
            if compare_values(value, known, self._tolerance).agrees:
                return state
        state = State(Kind.BAD, f"value {len(self._known)}")
        self._known.append((state, value))
        return state


class ByOutput:
    """Prints something else than the good end; each other output is a state of its own.

    Numbers may differ within a tolerance, unless nothing else tells the ends apart.

    Args:
        ends: Both ends.
        verbatim: Whether facts of the environment count, and each digit.
    """

    def __init__(self, ends: Ends, *, verbatim: bool = False) -> None:
        self.name = "text" if verbatim else "output"
        self._artifact = STDOUT if verbatim else OUTPUT
        good, bad = (self.text(side) for side in (ends.good, ends.bad))
        self._unstable = ends.unstable
        self.is_exact = verbatim or same_output(good, bad, self._unstable)
        self._known = [(GOOD, good), (BAD, bad)]

    @property
    def about(self) -> str:
        """That it prints something else."""
        if self.name == "output" and self.is_exact:
            return "prints other digits than the good end"
        return "prints something else than the good end"

    def state(self, side: StoredJob) -> State:
        """Return what a point shows."""
        if side.record.outcome is not Outcome.OK:
            return other(side.record)
        seen = self.text(side)
        for state, known in self._known:
            if same_output(seen, known, self._unstable, exact=self.is_exact):
                return state
        state = State(Kind.BAD, f"output {len(self._known)}")
        self._known.append((state, seen))
        return state

    def text(self, side: StoredJob) -> str:
        """Return what a target printed, empty where it is no program."""
        return output_of(side, self._artifact)

    def difference(self, side: StoredJob) -> str:
        """Return the first line that differs from what the good end printed, empty if none."""
        good = self._known[0][1]
        lines = differing_lines(self.text(side), good, self._unstable, exact=self.is_exact)
        _, line, before = next(lines, (0, "", ""))
        return f"prints {quoted(line)!r} for {quoted(before)!r}" if line or before else ""


def output_of(side: StoredJob, artifact: str = OUTPUT) -> str:
    """Return what a program printed, empty where the target is none.

    Args:
        side: The record of the target, with its blobs.
        artifact: `OUTPUT`, without the facts of its environment, or `STDOUT`.
    """
    blob = side.record.artifacts.get(artifact)
    return side.blobs.get(blob).decode("utf-8", "replace") if blob else ""


def printed(side: StoredJob) -> str:
    """Return the blob of what a target printed, empty where it is no program."""
    return side.record.artifacts.get(OUTPUT, "")
