"""What is asked of a program with passes disabled, and what its answers are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.stored_job import StoredJob
from conformance.errors import UsageError
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import Conformance, Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.model.value import encode_value
from conformance.search.endpoints import EndpointsError, PredicateOptions
from conformance.search.predicates import BAD, GOOD, Endpoints, PointKind, PointState
from conformance.triage.passes.predicates import (
    make_cell_predicate,
    make_pair_predicate,
)
from tests.builders import f32

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    MakeSide = Callable[..., StoredJob]

UNKNOWN = PointState(PointKind.UNKNOWN)
NEXT = 1.0000001
"""The float32 after 1."""


@pytest.fixture
def side(tmp_path: Path) -> MakeSide:
    """Make what came of a program: a number, or an error, with facts."""
    blobs = BlobStore(tmp_path)

    def make(
        number: float | None = 1.0,
        conforms: Conformance = Conformance.UNKNOWN,
        error: str = "",
        facts: dict[str, Any] | None = None,
    ) -> StoredJob:
        artifacts = {} if number is None else {"value": blobs.put(encode_value(f32(number)))}
        record = Record(
            case="family/case", cell="jax0.6.0-py311-cpu8", case_hash="h", cell_hash="c",
            outcome=Outcome.RAISED if error else Outcome.OK, stage=Stage.EXECUTE,
            error=ErrorInfo(type=error, message="", signature=error) if error else None,
            artifacts=artifacts, facts=facts or {}, conformance=conforms,
        )  # fmt: skip
        return StoredJob(record, blobs)

    return make


def between(good: StoredJob, bad: StoredJob, when: str = "", fact: str = "") -> Any:
    """Return what is asked of two cells."""
    ends = Endpoints(good=good, bad=bad, names=("good", "bad"), tolerance=Tolerance())
    return make_pair_predicate(ends, PredicateOptions(when, fact))


def test_the_goal_of_a_deviating_program_is_to_conform(side: MakeSide) -> None:
    """Another failure is unknown; the same failure is no change."""
    bad = side(2.0, Conformance.DEVIATES)
    question = make_cell_predicate(bad, Tolerance())
    assert question.name == "conformance"
    assert question.classify(side(1.0, Conformance.CONFORMS)) == GOOD
    assert question.classify(side(3.0, Conformance.DEVIATES)) == BAD
    failed = side(None, Conformance.DEVIATES, "XlaError")
    assert question.classify(failed) == UNKNOWN
    assert replace(question, bad=failed).classify(failed) == BAD


def test_the_goal_of_a_failing_program_is_to_succeed(side: MakeSide) -> None:
    """If it has no reference."""
    bad = side(None, error="XlaError")
    question = make_cell_predicate(bad, Tolerance())
    assert question.name == "ending"
    assert question.classify(side()) == GOOD
    assert question.classify(bad) == BAD
    assert question.classify(side(None, error="OtherError")) == UNKNOWN


def test_the_goal_of_bits_is_another_value(side: MakeSide) -> None:
    """A difference in the last bit is enough."""
    bad = side(1.0)
    question = make_cell_predicate(bad, Tolerance(), PredicateOptions("bits"))
    assert question.classify(side(NEXT)) == GOOD
    assert question.classify(side(1.0)) == BAD


def test_the_goal_of_a_fact_is_another_value(side: MakeSide) -> None:
    """Any other value, or the given one; a missing part is 0."""
    bad = side(facts={"collectives": {"all-reduce": 1}})
    none, two = side(facts={"collectives": {}}), side(facts={"collectives": {"all-reduce": 2}})
    other = make_cell_predicate(bad, Tolerance(), PredicateOptions(fact="collectives.all-reduce"))
    wanted = make_cell_predicate(
        bad, Tolerance(), PredicateOptions(fact="collectives.all-reduce=2")
    )
    assert other.classify(none) == GOOD
    assert other.classify(bad) == BAD
    assert wanted.classify(two) == GOOD
    assert wanted.classify(none) == BAD
    assert wanted.classify(side(None, error="XlaError")) == UNKNOWN


@pytest.mark.parametrize("conforms", [Conformance.CONFORMS, Conformance.UNKNOWN])
def test_a_conforming_program_needs_a_named_predicate(
    side: MakeSide, conforms: Conformance
) -> None:
    """There is nothing to explain."""
    with pytest.raises(UsageError, match="expected a deviation to explain; --when bits"):
        make_cell_predicate(side(1.0, conforms), Tolerance())


def test_an_expected_error_needs_a_named_predicate(side: MakeSide) -> None:
    """The program conforms."""
    bad = side(None, Conformance.CONFORMS, "TypeError")
    with pytest.raises(UsageError, match="conforms, expected a deviation"):
        make_cell_predicate(bad, Tolerance())


def test_the_most_informative_predicate_separates_two_cells(side: MakeSide) -> None:
    """The bits, if no other predicate does."""
    assert between(side(1.0), side(None, error="XlaError")).name == "ending"
    assert between(side(1.0), side(2.0)).name == "value"
    question = between(side(1.0), side(NEXT))
    assert question.name == "bits"
    assert question.classify(side(1.0)) == GOOD
    assert question.classify(side(2.0)) == BAD


def test_equal_cells_are_an_error(side: MakeSide) -> None:
    """For any predicate."""
    facts = {"loops": 1}
    for when, fact in (("", ""), ("bits", ""), ("", "loops")):
        with pytest.raises(EndpointsError):
            between(side(1.0, facts=facts), side(1.0, facts=facts), when, fact)


def test_the_goal_of_a_fact_is_its_value_in_the_good_cell(side: MakeSide) -> None:
    """A third value is no success."""
    good, bad = side(facts={"loops": 0}), side(facts={"loops": 1})
    question = between(good, bad, fact="loops")
    assert question.classify(side(facts={"loops": 0})) == GOOD
    assert question.classify(side(facts={"loops": 2})) == BAD


def test_an_unknown_fact_is_an_error(side: MakeSide) -> None:
    """The message names the facts."""
    bad = side(facts={"loops": 1})
    with pytest.raises(UsageError, match="no such fact, expected one of loops"):
        make_cell_predicate(bad, Tolerance(), PredicateOptions(fact="colours"))
    with pytest.raises(UsageError, match="loops has no parts"):
        make_cell_predicate(bad, Tolerance(), PredicateOptions(fact="loops.inner"))
    with pytest.raises(UsageError, match="expected JSON after ="):
        make_cell_predicate(bad, Tolerance(), PredicateOptions(fact="loops=many"))
