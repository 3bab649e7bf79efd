"""Predicates on a program with passes disabled: whether it became good. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.stored_job import load_value
from conformance.errors import UsageError
from conformance.judge.values import Agreement, compare_values
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
    classify_sample,
    get_fact,
    make_other_state,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.engine.stored_job import StoredJob
    from conformance.judge.tolerance import Tolerance
    from conformance.search.predicates import Endpoints, Predicate

WHEN: Final = ("conformance", "ending", "value", "bits", "facts", "output")
"""Predicates by their names for `--when`."""


@dataclass(frozen=True, slots=True)
class GoalPredicate:
    """Reaches a goal, or ends as the bad program does.

    Attributes:
        name: The name that `--when` has for it.
        about: The behaviour of the bad program, in a few words.
        bad: How it ends.
        is_good: Whether a program reaches the goal.
    """

    name: str
    about: str
    bad: str
    is_good: Callable[[StoredJob], bool]

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a program."""
        if self.is_good(side):
            return GOOD
        return BAD if format_ending(side.record) == self.bad else make_other_state(side.record)


@dataclass(frozen=True, slots=True)
class BitsPredicate:
    """Gives the bits of a known value, or others.

    Attributes:
        known: A job that gives the value.
        tolerance: The tolerance that the case states.
        same: The state of a program that gives these bits.
        differ: The state of one that gives others, even if only the last bit differs.
        about: The behaviour of a bad program, in a few words.
    """

    known: StoredJob
    tolerance: Tolerance
    same: PointState
    differ: PointState
    about: str
    name: str = "bits"

    def classify(self, side: StoredJob) -> PointState:
        """Return the state of a program."""
        if side.record.outcome is not Outcome.OK or "value" not in side.record.artifacts:
            return make_other_state(side.record)
        if side.record.artifacts["value"] == self.known.record.artifacts["value"]:
            return self.same
        compared = compare_values(load_value(side), load_value(self.known), self.tolerance)
        return self.same if compared.agreement is Agreement.EQUAL else self.differ


def make_cell_predicate(
    bad: StoredJob, tolerance: Tolerance, options: PredicateOptions = ANY_PREDICATE
) -> Predicate:
    """Return the predicate within one cell.

    Args:
        bad: The program there, without any setting.
        tolerance: How far values may differ.
        options: The options that name the predicate; `--fact` is `NAME` or `NAME=JSON`. Where they
            name none, the reference of the case itself decides.

    Raises:
        UsageError: If the predicate does not apply to the program.
    """
    when, fact = options
    name = f"{bad.record.case} on {bad.record.cell}"
    if fact:
        return _make_fact_predicate(bad, fact, None)
    if when in ("value", "bits"):
        if "value" not in bad.record.artifacts:
            raise UsageError(
                f"--when {when}: {name} gives no value: {shorten(format_ending(bad.record))}"
            )
        return BitsPredicate(bad, tolerance, same=BAD, differ=GOOD, about="gives these very bits")
    if when == "output":
        if "stdout" not in bad.record.artifacts:
            raise UsageError(f"--when output: {name} is a case; --when bits asks for its value")
        text = bad.record.artifacts.get(OUTPUT)
        return GoalPredicate(
            "output", "prints this very output", format_ending(bad.record),
            lambda side: side.record.outcome is Outcome.OK
            and side.record.artifacts.get(OUTPUT) != text,
        )  # fmt: skip
    if when == "facts":
        raise UsageError("--when facts: within one cell, name the fact with --fact")
    deviates = bad.record.conformance is Conformance.DEVIATES
    failed = bad.record.outcome is not Outcome.OK
    unjudged = bad.record.conformance is Conformance.UNKNOWN
    if failed and (when == "ending" or (not when and unjudged)):
        end = format_ending(bad.record)
        return GoalPredicate(
            "ending", f"ends with {shorten(end)}", end,
            lambda side: side.record.outcome is Outcome.OK,
        )  # fmt: skip
    if deviates and when in ("", "conformance"):
        return GoalPredicate(
            "conformance", ConformancePredicate().about, format_ending(bad.record),
            lambda side: side.record.conformance is Conformance.CONFORMS,
        )  # fmt: skip
    seen = "ends well" if when == "ending" else f"{bad.record.conformance}"
    raise UsageError(
        f"{name}: {seen}, expected a deviation to explain; --when bits (of a script: output) or "
        "--fact NAME finds what makes its value or a fact what it is, --good what makes it "
        "differ from another cell"
    )


def make_pair_predicate(ends: Endpoints, options: PredicateOptions = ANY_PREDICATE) -> Predicate:
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
        return _make_fact_predicate(ends.bad, fact, ends.good)
    about = "gives other bits than the good cell"
    bits = BitsPredicate(ends.good, ends.tolerance, same=GOOD, differ=BAD, about=about)
    valued = "value" in ends.good.record.artifacts
    differ = valued and bits.classify(ends.bad) == BAD
    if when == "bits":
        if not differ:
            names = " and ".join(ends.names)
            raise EndpointsError(f"{names} give the same bits, or no value at all")
        return bits
    try:
        return choose_predicate(ends, options)
    except EndpointsError:
        if when or not differ:
            raise
        return bits


def _make_fact_predicate(bad: StoredJob, text: str, good: StoredJob | None) -> Predicate:
    name, given, value = text.partition("=")
    seen = get_fact(bad, name)
    wanted = _parse_json(value, text) if given else None if good is None else get_fact(good, name)
    if (given or good is not None) and wanted == seen:
        raise EndpointsError(f"--fact {text}: is {json.dumps(seen)} in the bad cell too")
    return FactPredicate(name, seen, wanted)


def _parse_json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise UsageError(f"--fact {option}: expected JSON after =, e.g. 2 or true") from None


def classify_setting(predicate: Predicate, side: StoredJob, bad: StoredJob) -> PointState:
    """Return the state of a program with a setting: good, bad or unknown.

    Args:
        predicate: The predicate.
        side: The program with the setting.
        bad: The program without it.
    """
    state = classify_sample(predicate, side)
    if state == GOOD:
        return GOOD
    failed = side.record.outcome is not Outcome.OK and format_ending(side.record) != format_ending(
        bad.record
    )
    return PointState(PointKind.UNKNOWN) if failed or not state.is_known else BAD
