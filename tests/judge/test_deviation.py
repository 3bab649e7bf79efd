"""Declared deviations: where they apply and what shows them."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.judge.conformance import describe_deviation, matches_deviation, select_deviations
from conformance.model.outcome import Conformance, Outcome
from tests.builders import case, deviation, ended, f32, ok, raised

DEVIATES = Conformance.DEVIATES


def test_only_deviations_of_the_cell_apply() -> None:
    """Release, platform and packages decide."""
    old, tpu = deviation("<0.6"), deviation("", platform="tpu")
    flax = deviation("", packages={"flax": ">=0.10.7"})
    what = case(deviations=(old, tpu, flax))
    assert select_deviations(what, "0.5.3", "cpu", {}) == (old,)
    assert select_deviations(what, "0.6.0", "cpu", {"flax": "0.11"}) == (flax,)


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        ({"error": "ValueError", "match": "^bad"}, True),
        ({"error": "ValueError"}, True),
        ({"match": "shape"}, True),
        ({}, True),
        ({"error": "TypeError"}, False),
        ({"match": "dtype"}, False),
        ({"outcome": "crashed"}, False),
        ({"outcome": "ok"}, False),
    ],
)
def test_an_error_matches_by_outcome_type_and_message(
    declared: dict[str, Any], shown: bool
) -> None:
    """Parts that are not declared match anything."""
    seen = raised("ValueError", "bad shape")
    assert matches_deviation(deviation(**declared), seen, DEVIATES) is shown


def test_a_crash_without_an_error_matches_by_its_outcome() -> None:
    """A signal needs no message."""
    assert matches_deviation(deviation(outcome="crashed"), ended(Outcome.CRASHED), DEVIATES)
    assert not matches_deviation(
        deviation(outcome="crashed", match="x"), ended(Outcome.CRASHED), DEVIATES
    )


def test_a_deviating_value_matches_an_ok_deviation() -> None:
    """Outcome `ok` means that the program ran but deviates."""
    wrong = deviation(outcome="ok")
    assert matches_deviation(wrong, ok(f32(1)), DEVIATES)
    assert not matches_deviation(wrong, ok(f32(1)), Conformance.CONFORMS)
    assert not matches_deviation(wrong, ok(f32(1)), Conformance.UNKNOWN)


def test_the_pattern_of_an_ok_deviation_is_searched_in_the_reasons() -> None:
    """A declared pattern is never ignored."""
    wrong = deviation(outcome="ok", match="dtype float64")
    assert matches_deviation(wrong, ok(f32(1)), DEVIATES, ("out dtype float64, reference float32",))
    assert not matches_deviation(wrong, ok(f32(1)), DEVIATES, ("out 1 against 2",))
    number = deviation(outcome="ok", match="inf against 1.26")
    assert matches_deviation(
        number, ok(f32(1)), DEVIATES, ("out inf against reference 1.26, exact",)
    )


def test_a_deviation_is_described_by_range_and_issue() -> None:
    """Messages name the text to search for in the case file."""
    assert describe_deviation(deviation("<0.6")) == "deviation jax<0.6 (jax-ml/jax#1)"
    assert describe_deviation(deviation("", platform="tpu")) == (
        "deviation every release on tpu (jax-ml/jax#1)"
    )
