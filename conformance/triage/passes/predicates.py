"""Predicates on a program with a setting: whether it became good. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.runs.stored_job import load_value
from conformance.errors import UsageError
from conformance.judge.difference import Agreement
from conformance.judge.values import compare_values
from conformance.model.outcome import Conformance, Outcome
from conformance.search.endpoints import (
    ANY_PREDICATE,
    EndpointsError,
    PredicateOptions,
    choose_predicate,
)
from conformance.search.equivalence import format_ending, shorten
from conformance.search.predicates import (
    BAD,
    GOOD,
    OUTPUT,
    ConformancePredicate,
    FactPredicate,
    PointKind,
    PointState,
    get_fact,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.engine.runs.stored_job import StoredJob
    from conformance.judge.tolerance import Tolerance
    from conformance.search.predicates import Endpoints, Predicate

WHEN: Final = ("conformance", "ending", "value", "bits", "facts", "output")
"""Predicates by their names for `--when`."""


@dataclass(frozen=True, slots=True)
class GoalPredicate:
    """Decides whether a program reaches a goal with a setting; a new failure is unknown.

    Attributes:
        name: Name of the predicate for `--when`.
        about: The behaviour of the bad program, in a few words.
        bad: The program without settings.
        is_good: Predicate on a program that reaches the goal, None if it is unknown.
    """

    name: str
    about: str
    bad: StoredJob
    is_good: Callable[[StoredJob], bool | None]

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a program: good, bad or unknown."""
        good, ending = self.is_good(side), format_ending(side.record)
        if good:
            return GOOD
        # A setting that makes XLA itself fail is no evidence about the goal.
        failed = side.record.outcome is not Outcome.OK and ending != format_ending(self.bad.record)
        return PointState(PointKind.UNKNOWN) if failed or good is None else BAD


def _make_goal(predicate: Predicate, bad: StoredJob) -> GoalPredicate:
    def is_good(side: StoredJob) -> bool | None:
        state = predicate.classify(side)
        return state == GOOD if state.is_known else None

    return GoalPredicate(predicate.name, predicate.about, bad, is_good)


def _has_same_bits(side: StoredJob, known: StoredJob, tolerance: Tolerance) -> bool | None:
    """Say whether a program gives the bits of a known value, None if it gives no value."""
    value, known_value = (job.record.artifacts.get("value") for job in (side, known))
    if side.record.outcome is not Outcome.OK or value is None:
        return None
    # The hash of the blob: equal bytes need not be loaded.
    if value == known_value:
        return True
    # Other bytes may be an equal value, e.g. if one of them has no readable sharding.
    compared = compare_values(load_value(side), load_value(known), tolerance)
    return compared.agreement is Agreement.EQUAL


def make_cell_predicate(
    bad: StoredJob, tolerance: Tolerance, options: PredicateOptions = ANY_PREDICATE
) -> GoalPredicate:
    """Return the predicate within one cell.

    Args:
        bad: The program in the cell, without settings.
        tolerance: Tolerance of equal values.
        options: The options that name the predicate; `--fact` is `NAME` or `NAME=JSON`. Without a
            name, the reference of the case decides.

    Raises:
        UsageError: If the predicate does not apply to the program.
    """
    when, fact = options
    name = f"{bad.record.case} on {bad.record.cell}"
    if fact:
        return _make_fact_goal(bad, fact, None)
    if when in ("value", "bits"):
        if "value" not in bad.record.artifacts:
            raise UsageError(
                f"--when {when}: {name} gives no value: {shorten(format_ending(bad.record))}"
            )
        return GoalPredicate(
            "bits", "gives these very bits", bad,
            lambda side: _has_same_bits(side, bad, tolerance) is False,
        )  # fmt: skip
    if when == "output":
        if "stdout" not in bad.record.artifacts:
            raise UsageError(f"--when output: {name} is a case; --when bits asks for its value")
        text = bad.record.artifacts.get(OUTPUT)
        return GoalPredicate(
            "output", "prints this very output", bad,
            lambda side: side.record.outcome is Outcome.OK
            and side.record.artifacts.get(OUTPUT) != text,
        )  # fmt: skip
    if when == "facts":
        raise UsageError("--when facts: within one cell, name the fact with --fact")
    deviates = bad.record.conformance is Conformance.DEVIATES
    failed = bad.record.outcome is not Outcome.OK
    unjudged = bad.record.conformance is Conformance.UNKNOWN
    if failed and (when == "ending" or (not when and unjudged)):
        return GoalPredicate(
            "ending", f"ends with {shorten(format_ending(bad.record))}", bad,
            lambda side: side.record.outcome is Outcome.OK,
        )  # fmt: skip
    if deviates and when in ("", "conformance"):
        return GoalPredicate(
            "conformance", ConformancePredicate().about, bad,
            lambda side: side.record.conformance is Conformance.CONFORMS,
        )  # fmt: skip
    seen = "ends well" if when == "ending" else f"{bad.record.conformance}"
    raise UsageError(
        f"{name}: {seen}, expected a deviation to explain; --when bits (of a script: output) or "
        "--fact NAME finds what makes its value or a fact what it is, --good what makes it "
        "differ from another cell"
    )


def make_pair_predicate(
    ends: Endpoints, options: PredicateOptions = ANY_PREDICATE
) -> GoalPredicate:
    """Return the predicate that separates the program in two cells.

    Args:
        ends: The program in both, without any setting.
        options: The options that name the predicate; any that separates them where they name none.

    Raises:
        EndpointsError: If they are alike, or not comparable.
        UsageError: If the fact does not exist.
    """
    when, fact = options
    if fact:
        return _make_fact_goal(ends.bad, fact, ends.good)

    def has_good_bits(side: StoredJob) -> bool | None:
        return _has_same_bits(side, ends.good, ends.tolerance)

    about = "gives other bits than the good cell"
    bits = GoalPredicate("bits", about, ends.bad, lambda side: has_good_bits(side) is True)
    differ = "value" in ends.good.record.artifacts and has_good_bits(ends.bad) is False
    if when == "bits":
        if not differ:
            names = " and ".join(ends.names)
            raise EndpointsError(f"{names} give the same bits, or no value at all")
        return bits
    try:
        return _make_goal(choose_predicate(ends, options), ends.bad)
    except EndpointsError:
        if when or not differ:
            raise
        return bits


def _make_fact_goal(bad: StoredJob, text: str, good: StoredJob | None) -> GoalPredicate:
    name, given, value = text.partition("=")
    seen = get_fact(bad, name)
    wanted = _parse_json(value, text) if given else None if good is None else get_fact(good, name)
    if (given or good is not None) and wanted == seen:
        raise EndpointsError(f"--fact {text}: is {json.dumps(seen)} in the bad cell too")
    return _make_goal(FactPredicate(name, seen, wanted), bad)


def _parse_json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise UsageError(f"--fact {option}: expected JSON after =, e.g. 2 or true") from None
