"""Answers of searches: their steps, and the words and JSON that they have in common. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.search.point_predicates import PointPredicate
    from conformance.search.predicates import PointState, Predicate

K = TypeVar("K")

FLAKY = "flaky: "
CONFIRMED = "confirmed: both sides gave the same result again"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep(Generic[K]):
    """One step of a search: the state of one point.

    Attributes:
        point: The point: its number on an axis, or the units of a set.
        samples: The records of its trials; a single record, unless a metric is measured.
        state: State of the point; None in a scan before the predicate is chosen.
        summary: State of the point in words.
        seconds: Duration of the trials.
        again: True for the confirmation of an earlier step.
        replayed: True for a step from the log of an earlier search.
    """

    point: K
    samples: Sequence[Record]
    state: PointState | None
    summary: str
    seconds: float
    again: bool = False
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer(Generic[K]):
    """The answer of a search.

    Attributes:
        predicate: The predicate.
        steps: Every step, in order.
        flaky: Counts of the states of each point whose trials disagree.
    """

    predicate: Predicate | PointPredicate
    steps: Sequence[SearchStep[K]]
    flaky: Mapping[K, Counter[PointState]] = field(default_factory=dict)

    @property
    def is_confirmed(self) -> bool:
        """Whether repeated trials of the answer's points agree."""
        return not self.flaky


def describe_origin(step: SearchStep[Any]) -> str:
    """Return a remark on a step from the log, or on a confirmation."""
    return " (from the log)" if step.replayed else " (again)" if step.again else ""


def format_some(names: Sequence[str], most: int) -> str:
    """Return the first of many names in words, e.g. `a, b and 3 more`.

    Args:
        names: The names.
        most: Maximum number of names.
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def render_flaky(subject: str, seen: Mapping[str, int]) -> str:
    """Return a line about a subject whose trials disagree.

    Args:
        subject: Name of the point or set.
        seen: Number of trials by result.
    """
    total = sum(seen.values())
    counts = ", ".join(f"{result} {count} of {total}" for result, count in seen.items())
    return f"{FLAKY}{subject} does not show the same twice: {counts}"


def count_verdicts(
    seen: Mapping[PointState, int], format_verdict: Callable[[PointState], str]
) -> Counter[str]:
    """Return the number of trials by verdict.

    Args:
        seen: Number of trials by state.
        format_verdict: Function that returns the verdict of a state in a word.
    """
    # Several states may have one verdict, e.g. two errors that are both bad.
    counts: Counter[str] = Counter()
    for state, count in seen.items():
        counts[format_verdict(state)] += count
    return counts


def format_seconds(steps: Iterable[SearchStep[Any]]) -> str:
    """Return the seconds of all trials, in words."""
    return f"{sum(step.seconds for step in steps):.1f} s"


def make_predicate_json(answer: SearchAnswer[Any]) -> dict[str, str]:
    """Return the predicate of an answer as `--json` has it."""
    return {"name": answer.predicate.name, "about": answer.predicate.about}
