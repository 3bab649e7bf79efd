"""Predicates about facts: statements on the optimised HLO of a program. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.errors import UsageError
from conformance.judge.ir import FACT, changed_facts
from conformance.search.state import BAD, GOOD, PointKind, PointState

if TYPE_CHECKING:
    from conformance.engine.job_comparison import StoredJob
    from conformance.model.record import Record


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
    sentences = changed_facts(record.facts, good.facts)
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
