"""Observation against the case's own reference and claims."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.errors import UsageError
from conformance.judge.conformance import (
    describe_outcome,
    find_unmet_claims,
    is_expected,
    judge_conformance,
)
from conformance.model.case import Budget
from conformance.model.observation import RANKS_DIFFER, ExpectedError
from conformance.model.outcome import Conformance, Outcome
from conformance.model.record import ErrorInfo
from tests.builders import case, deviation, ended, f32, f64, ok, raised

CLAIM = {"collectives": {"all-reduce": 1}}
EXPECTED = ExpectedError(type="TypeError|ValueError", match="shape")


def test_a_value_that_agrees_conforms() -> None:
    """Within the tolerance is conforming, and needs no reason."""
    assert judge_conformance(case(), ok(f32(1.00001), reference=f64(1))) == (
        Conformance.CONFORMS,
        (),
    )


def test_a_value_that_differs_deviates() -> None:
    """The reason names both numbers."""
    answer, (reason,) = judge_conformance(case(), ok(f32(1), reference=f64(2)))
    assert answer is Conformance.DEVIATES
    assert reason.startswith("out 1 of 1 elements differ, worst at [0]: 1.0 against reference 2.0")


def test_the_cases_tolerance_applies() -> None:
    """A case may loosen the reference's tolerance."""
    seen = ok(f32(1.1), reference=f64(1))
    assert judge_conformance(case(rtol=0.2), seen)[0] is Conformance.CONFORMS
    assert judge_conformance(case(rtol=0), seen)[0] is Conformance.DEVIATES


def test_the_budgets_of_the_platform_apply() -> None:
    """Budgets of another platform are ignored: the tolerance of the dtype applies."""
    seen = ok(f32(1.000001), reference=f64(1))
    stated = case(budgets=(Budget(platform="cpu", ulp=2), Budget(platform="tpu", ulp=20)))
    answers = {
        name: judge_conformance(stated.select_platform(name), seen)[0]
        for name in ("cpu", "tpu:v5e", "gpu")
    }
    assert [name for name, one in answers.items() if one is Conformance.DEVIATES] == ["cpu"]


def test_without_reference_and_claims_conformance_is_unknown() -> None:
    """No check applies."""
    assert judge_conformance(case(), ok(f32(1))) == (Conformance.UNKNOWN, ())
    assert judge_conformance(case(), raised()) == (Conformance.UNKNOWN, ())


def test_ranks_that_differ_deviate() -> None:
    """Processes of one program that disagree deviate, even without a reference."""
    seen = ended(Outcome.RAISED, error=ErrorInfo(type=RANKS_DIFFER, message="hlo: line 1"))
    assert judge_conformance(case(), seen)[0] is Conformance.DEVIATES


def test_a_reference_without_a_value_is_unknown() -> None:
    """Compile-only cells have no value to compare."""
    assert judge_conformance(case(), ok(reference=f64(1)))[0] is Conformance.UNKNOWN


@pytest.mark.parametrize(
    ("facts", "reasons"),
    [
        ({"collectives": {"all-reduce": 1}, "host_compute": False}, ()),
        (
            {"collectives": {"all-reduce": 2}},
            ("fact collectives is {'all-reduce': 2}, claimed {'all-reduce': 1}",),
        ),
        ({}, ("fact collectives was not observed, claimed {'all-reduce': 1}",)),
    ],
)
def test_claims_must_hold(facts: dict[str, Any], reasons: tuple[str, ...]) -> None:
    """An unmet claim deviates; a claim about a missing fact is unmet."""
    answer = Conformance.DEVIATES if reasons else Conformance.CONFORMS
    assert judge_conformance(case(facts=CLAIM), ok(facts=facts)) == (answer, reasons)


def test_claims_survive_json() -> None:
    """A claimed tuple equals the list that JSON decodes."""
    answer, _ = judge_conformance(case(facts={"groups": ((0, 1),)}), ok(facts={"groups": [[0, 1]]}))
    assert answer is Conformance.CONFORMS


def test_value_and_claims_both_count() -> None:
    """A right value does not excuse a wrong fact."""
    seen = ok(f32(1), reference=f64(1), facts={"collectives": {}})
    assert judge_conformance(case(facts=CLAIM), seen)[0] is Conformance.DEVIATES


def test_the_expected_error_conforms() -> None:
    """Type (any of several) and message as expected."""
    seen = raised("ValueError", "bad shape (3,)", reference=EXPECTED)
    assert judge_conformance(case(facts=CLAIM), seen) == (Conformance.CONFORMS, ())


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (raised("KeyError", "shape", reference=EXPECTED), "raised KeyError at trace: shape"),
        (raised("TypeError", "dtype", reference=EXPECTED), "raised TypeError at trace: dtype"),
        (ended(Outcome.CRASHED, reference=EXPECTED), "crashed at execute"),
        (
            ended(
                Outcome.CRASHED,
                error=ErrorInfo(type="ValueError", message="shape"),
                reference=EXPECTED,
            ),
            "crashed ValueError at execute: shape",
        ),
        (ok(f32(1), reference=EXPECTED), "ran"),
    ],
)
def test_any_other_outcome_deviates_from_an_expected_error(seen: Any, reason: str) -> None:
    """The reason names the observed and the expected error."""
    answer, (text,) = judge_conformance(case(), seen)
    assert answer is Conformance.DEVIATES
    assert text.startswith(reason)
    assert "reference expects TypeError|ValueError matching 'shape'" in text


@pytest.mark.parametrize(
    "outcome", [Outcome.RAISED, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY]
)
@pytest.mark.parametrize(
    ("what", "more"),
    [
        (case(), {"reference": f64(1)}),
        (case(facts=CLAIM), {}),
        (case(deviations=(deviation(),)), {}),
    ],
)
def test_failure_deviates_where_success_is_expected(outcome: Outcome, what: Any, more: Any) -> None:
    """A reference, a claim or a declared deviation shows that success is expected."""
    answer, (reason,) = judge_conformance(what, ended(outcome, **more))
    assert answer is Conformance.DEVIATES
    assert reason == f"{outcome} at execute; the case expects a result"


@pytest.mark.parametrize("outcome", [Outcome.UNSUPPORTED, Outcome.INFRA, Outcome.NOT_RUN])
def test_inconclusive_outcomes_are_unknown(outcome: Outcome) -> None:
    """Infrastructure failures never deviate."""
    assert judge_conformance(case(facts=CLAIM), ended(outcome)) == (Conformance.UNKNOWN, ())


def test_types_are_compared_by_class_name() -> None:
    """Modules do not count, on either side."""
    error = ErrorInfo(type="jax.errors.TracerBoolConversionError", message="m")
    assert is_expected("TracerBoolConversionError", "", error)
    assert is_expected("jax._src.errors.TracerBoolConversionError", "", error)
    assert not is_expected("Error", "", error)


def test_an_invalid_pattern_is_a_usage_error() -> None:
    """The message names the fix."""
    with pytest.raises(UsageError, match=r"re\.escape"):
        is_expected("", "f32[", ErrorInfo(type="E", message="f32["))


def test_an_outcome_is_described_in_one_line() -> None:
    """Only the first line of a message is quoted."""
    assert describe_outcome(raised("TypeError", "bad\nmore")) == "raised TypeError at trace: bad"


def test_a_claimed_count_of_zero_is_met_by_absence() -> None:
    """A count of 0 and a missing entry are the same fact."""
    claims = {"collectives": {"all-reduce": 1, "all-gather": 0}}
    assert not list(find_unmet_claims(claims, {"collectives": {"all-reduce": 1}}))
    assert list(find_unmet_claims(claims, {"collectives": {"all-reduce": 1, "all-gather": 2}}))


def test_a_claim_on_results_need_not_state_shardings() -> None:
    """Not all HLO states shardings; a claimed sharding must hold."""
    seen = {"results": [{"type": "f32[2]", "sharding": "replicated"}]}
    assert not list(find_unmet_claims({"results": [{"type": "f32[2]"}]}, seen))
    assert not list(
        find_unmet_claims({"results": [{"type": "f32[2]", "sharding": "replicated"}]}, seen)
    )
    assert list(find_unmet_claims({"results": [{"type": "f32[3]"}]}, seen))
    assert list(find_unmet_claims({"results": [{"type": "f32[2]", "sharding": "tiled"}]}, seen))
    assert list(find_unmet_claims({"results": []}, seen))


def test_a_filecheck_pattern_is_a_claim() -> None:
    """It is matched with the text of its IR; without that text it is unmet."""
    claims = {"filecheck": {"hlo": "CHECK: add", "jaxpr": "CHECK: sin"}}
    assert list(find_unmet_claims(claims, {}, {"hlo": "%add.1", "jaxpr": "cos"})) == [
        "filecheck of jaxpr: `CHECK: sin` finds nothing in lines 1 to 1 (of the form neutral)"
    ]
    assert len(list(find_unmet_claims(claims, {}))) == 2
