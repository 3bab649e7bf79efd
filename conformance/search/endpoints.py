"""The choice of a predicate: the first that separates the good endpoint from the bad one. Pure."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from conformance.errors import ConformanceError
from conformance.model.outcome import ExitCode, Outcome
from conformance.search.equivalence import (
    SILENT,
    format_ending,
    is_same_failure,
    shorten,
)
from conformance.search.predicates import (
    BAD,
    GOOD,
    ConformancePredicate,
    EndingPredicate,
    Endpoints,
    ExitPredicate,
    FactPredicate,
    FactsPredicate,
    OutputPredicate,
    Predicate,
    ValuePredicate,
    find_differing_facts,
    get_fact,
)


class PredicateOptions(NamedTuple):
    """Options that name the predicate of a search.

    Attributes:
        when: The value of `--when`; empty for any predicate that separates the endpoints.
        fact: The value of `--fact`, the name of a fact; empty for none.
    """

    when: str = ""
    fact: str = ""


ANY_PREDICATE: Final = PredicateOptions()
"""Options that name no predicate."""


class EndpointsError(ConformanceError):
    """Endpoints that do not allow a search."""

    exit_code = ExitCode.USAGE


class AlikeError(EndpointsError):
    """Endpoints that no predicate separates."""


class DifferentFailuresError(EndpointsError):
    """Endpoints that fail for different reasons."""


def _make_facts_predicate(ends: Endpoints) -> Predicate:
    return FactsPredicate(
        ends.good, tuple(sorted(find_differing_facts(ends.bad.record, ends.good.record)))
    )


PREDICATES: Final[Mapping[str, Callable[[Endpoints], Predicate]]] = {
    "ending": EndingPredicate,
    "message": partial(EndingPredicate, exact=True),
    "exit": ExitPredicate,
    "conformance": lambda _: ConformancePredicate(),
    "value": ValuePredicate,
    "facts": _make_facts_predicate,
    "output": OutputPredicate,
    "text": partial(OutputPredicate, verbatim=True),
}
"""Predicates by their names for `--when`, the most informative one first."""


_ON_REQUEST: Final = frozenset({"text"})
"""Predicates that also see facts of the environment, which are no behaviour."""


def choose_predicate(ends: Endpoints, options: PredicateOptions = ANY_PREDICATE) -> Predicate:
    """Return the predicate that separates two endpoints.

    Args:
        ends: Both endpoints.
        options: The options; without a predicate in them, the first that separates applies.

    Raises:
        EndpointsError: If an endpoint cannot be compared, both fail for different reasons, or they
            are alike.
        UsageError: If the fact does not exist.
    """
    (when, fact), sides = options, (ends.good, ends.bad)
    for side, label in zip(sides, ends.names, strict=True):
        if side.record.outcome in SILENT:
            raise EndpointsError(
                f"{label} says nothing: {format_ending(side.record)}; name another end"
            )
    if fact:
        good, bad = (get_fact(side, fact) for side in sides)
        if good == bad:
            raise EndpointsError(f"--fact {fact}: is {json.dumps(good)} at both ends; name another")
        return FactPredicate(fact, bad, good)
    if when:
        predicate = PREDICATES[when](ends)
        _check_predicate(predicate, ends)
        return predicate
    # Otherwise `ending` would separate any two failures, and the search would find the release in
    # which one error became another.
    _refuse_two_failures(ends)
    for name, build in PREDICATES.items():
        # Verbatim output separates any two releases as soon as a program prints a version.
        if name in _ON_REQUEST:
            continue
        # A program has no value, and neither has a job that failed.
        if name == "value" and any("value" not in side.record.artifacts for side in sides):
            continue
        predicate = build(ends)
        if predicate.classify(ends.good) == GOOD and predicate.classify(ends.bad) == BAD:
            return predicate
    raise AlikeError(
        f"{ends.names[0]} and {ends.names[1]} are alike: both end with "
        f"{shorten(format_ending(ends.good.record))}, "
        f"and {_describe_rest(ends)}; name other ends, or say with --when what differs"
    )


def _describe_rest(ends: Endpoints) -> str:
    """Return a clause about other differences between two endpoints that are alike."""
    if line := OutputPredicate(ends, verbatim=True).describe_difference(ends.bad):
        return (
            "nothing else differs but facts of the environment (versions, paths, devices, "
            f"addresses, times), e.g. {ends.names[1]} {line}"
        )
    return "nothing else that was seen differs"


def _refuse_two_failures(ends: Endpoints) -> None:
    endings = tuple(format_ending(side.record) for side in (ends.good, ends.bad))
    failed = all(side.record.outcome is not Outcome.OK for side in (ends.good, ends.bad))
    if failed and not is_same_failure(*endings):
        raise DifferentFailuresError(
            f"both ends fail, for different reasons: {ends.names[0]} with {shorten(endings[0])}, "
            f"{ends.names[1]} with {shorten(endings[1])}; name another good end, or say "
            "--when ending to find where the one became the other"
        )


def _check_predicate(predicate: Predicate, ends: Endpoints) -> None:
    for side, label, expected in zip((ends.good, ends.bad), ends.names, (GOOD, BAD), strict=True):
        state = predicate.classify(side)
        if state != expected:
            ending = shorten(format_ending(side.record))
            raise EndpointsError(
                f"{label} was to be {expected.kind}, got {state.kind}: {ending}; a point is bad "
                f"that {predicate.about}"
            )
