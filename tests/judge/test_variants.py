"""A program in other ways: what agrees vouches for it, what does not is told by way and number."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from conformance.judge.agreement import find_disagreement
from conformance.judge.conformance import judge_conformance
from conformance.judge.tolerance import Tolerance
from conformance.judge.variants import compare_variants, find_checked_variants
from conformance.judge.verdict import judge
from conformance.model.case import VARIANTS
from conformance.model.observation import VariantResult
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.record import ErrorInfo
from tests.builders import case, deviation, f32, f64, leaf, ok, python, raised, value

if TYPE_CHECKING:
    from conformance.model.observation import Observation
    from conformance.model.value import Value

EAGER = case(same_as=("eager",))
ALL = case(same_as=VARIANTS)
SKIPPED = VariantResult(
    outcome=Outcome.UNSUPPORTED, error=ErrorInfo(type="unsupported", message="compiled only")
)


def gave(given_: Value) -> VariantResult:
    """Return what came of a way that ran."""
    return VariantResult(outcome=Outcome.OK, value=given_)


def failed(outcome: Outcome = Outcome.RAISED) -> VariantResult:
    """Return what came of a way that did not."""
    return VariantResult(
        outcome=outcome, error=ErrorInfo(type="TypeError", message="no\nsuch thing")
    )


def seen(way: str = "eager", *, as_: VariantResult, own: Value | None = None) -> Observation:
    """Return an observation of a program and of one way."""
    return ok(own or f32(1, 2), variants={way: as_})


def test_an_agreeing_variant_makes_a_program_conform() -> None:
    """Even without a reference."""
    assert judge_conformance(EAGER, seen(as_=gave(f32(1, 2)))) == (Conformance.CONFORMS, ())


def test_a_differing_variant_is_named_with_its_numbers() -> None:
    """Variant, path and both numbers, that of the program first."""
    answer, reasons = judge_conformance(EAGER, seen(as_=gave(f32(1, 3))))
    assert answer is Conformance.DEVIATES
    assert reasons[0].startswith(
        "same_as eager: out 1 of 2 elements differ, worst at [1]: 2.0 against 3.0"
    )


def test_the_cases_tolerance_applies() -> None:
    """A case may loosen it, or ask for the same bits."""
    close = seen(as_=gave(f32(1.000001, 2)))
    assert not compare_variants(EAGER, close)
    assert compare_variants(replace(EAGER, rtol=0), close)
    assert not compare_variants(replace(EAGER, rtol=1), seen(as_=gave(f32(1, 3))))


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Outcome.RAISED, "same_as eager: raised TypeError: no"),
        (Outcome.CRASHED, "same_as eager: crashed TypeError: no"),
        (Outcome.TIMED_OUT, "same_as eager: timed_out TypeError: no"),
    ],
)
def test_a_failing_variant_deviates(outcome: Outcome, told: str) -> None:
    """The outcome of the variant is the reason."""
    assert judge_conformance(EAGER, seen(as_=failed(outcome))) == (Conformance.DEVIATES, (told,))


def test_every_differing_variant_is_reported() -> None:
    """In the order of the case, after the reference."""
    one = ok(f32(1), reference=f64(2), variants={way: failed() for way in reversed(VARIANTS)})
    _, (reference, *ways) = judge_conformance(ALL, one)
    assert reference.startswith("out ")
    assert [text.partition(":")[0] for text in ways] == [f"same_as {way}" for way in VARIANTS]


def test_placement_and_weak_types_are_ignored() -> None:
    """A variant may place its result elsewhere."""
    here = value(
        leaf(np.array([1], np.float32), sharding="replicated[4]", memory_kind="pinned_host")
    )
    there = value(
        leaf(np.array([1], np.float32), sharding="single", weak_type=True), structure="[*]"
    )
    assert not compare_variants(EAGER, seen(as_=gave(there), own=here))


def test_dtypes_and_shapes_are_compared() -> None:
    """They belong to the value."""
    wide = value(np.array([1, 2], np.float64))
    assert compare_variants(EAGER, seen(as_=gave(wide))) == {
        "eager": ("same_as eager: out dtype float32, eager float64",)
    }
    (told,) = compare_variants(EAGER, seen(as_=gave(f32(1))))["eager"]
    assert told == "same_as eager: eager of out has shape (1,), value (2,)"


def test_python_scalars_agree_with_arrays() -> None:
    """Without jit, a constant remains a Python scalar."""
    own = value(np.int32(3))
    assert not compare_variants(EAGER, seen(as_=gave(value(python(3))), own=own))
    assert compare_variants(EAGER, seen(as_=gave(value(python(4))), own=own))


@given(
    arrays(st.sampled_from([np.float32, np.int32, np.bool_]), array_shapes(min_dims=0, max_dims=3))
)
def test_a_leading_axis_of_one_is_all_that_vmap_adds(array: np.ndarray) -> None:
    """The same bytes with that axis agree; without it, or with another one, they do not."""
    claim, own = case(same_as=("vmap_of_one",)), value(array)
    mapped = seen("vmap_of_one", as_=gave(value(array[None])), own=own)
    assert not compare_variants(claim, mapped)
    twice = gave(value(np.stack([array, array])))
    assert "expected a leading axis of 1" in str(
        compare_variants(claim, seen("vmap_of_one", as_=twice, own=own))
    )
    if array.shape[:1] != (1,):
        assert compare_variants(claim, seen("vmap_of_one", as_=gave(own), own=own))


def test_what_is_no_array_has_no_leading_axis() -> None:
    """None stays None under vmap."""
    own = value(np.array([1], np.float32), python(None, "out[1]"))
    mapped = value(np.array([[1]], np.float32), python(None, "out[1]"))
    claim = case(same_as=("vmap_of_one",))
    assert not compare_variants(claim, seen("vmap_of_one", as_=gave(mapped), own=own))


def test_a_variant_that_was_not_run_is_ignored() -> None:
    """So is a variant unknown to an older run, or of a program that failed."""
    assert judge_conformance(EAGER, ok(None, variants={"eager": SKIPPED})) == (
        Conformance.UNKNOWN,
        (),
    )
    assert judge_conformance(EAGER, seen(as_=SKIPPED)) == (Conformance.UNKNOWN, ())
    assert judge_conformance(EAGER, ok(f32(1))) == (Conformance.UNKNOWN, ())
    assert find_checked_variants(EAGER, raised()) == ()


def test_a_program_with_variants_is_expected_to_run() -> None:
    """Its failure deviates."""
    assert judge_conformance(EAGER, raised())[0] is Conformance.DEVIATES


def test_a_declared_disagreement_is_known() -> None:
    """As for a wrong value, the pattern is searched in the reasons."""
    declared = deviation("<0.6", outcome="ok", match="same_as eager: out 1 of 2")
    one = case(same_as=("eager",), deviations=(declared,))
    for way, verdict in (
        (gave(f32(1, 3)), Verdict.KNOWN),
        (failed(), Verdict.REGRESSED),
        (gave(f32(1, 2)), Verdict.FIXED),
    ):
        judged = judge(one, "0.5.3", "cpu", {"jax": "0.5.3"}, seen(as_=way), None)
        assert judged.verdict is verdict


def test_a_variant_that_was_not_run_refutes_no_deviation() -> None:
    """Even if the reference agrees."""
    one = case(same_as=("eager",), deviations=(deviation("<0.6", outcome="ok"),))
    unseen = ok(f32(1), reference=f64(1), variants={"eager": SKIPPED})
    judged = judge(one, "0.5.3", "cpu", {"jax": "0.5.3"}, unseen, None)
    assert (judged.conformance, judged.verdict) == (Conformance.CONFORMS, Verdict.NEW)


@pytest.mark.parametrize(
    ("again", "told"),
    [
        (gave(f32(1, 2)), ""),
        (gave(f32(1, 3)), "attempts disagree: same_as eager: out 1 of 2 elements differ"),
        (failed(), "attempts disagree: same_as eager: ok, then raised TypeError: no"),
    ],
)
def test_attempts_must_agree_in_every_variant(again: VariantResult, told: str) -> None:
    """A variant with varying results is flaky."""
    found = find_disagreement(seen(as_=gave(f32(1, 2))), seen(as_=again), Tolerance())
    assert found.startswith(told)
    assert bool(found) is bool(told)
