"""What a group would have its cases declare."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.case import Deviation
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.review.decisions import Terms
from conformance.review.proposals import find_common_pattern, propose

from .members import KNOWN, member

if TYPE_CHECKING:
    from conformance.review.judged_jobs import JudgedJob

ERROR = "TypeError: carry must have equal types, got f32[3]"
OLD = Deviation(releases=">=0.5,<0.6", error="E")


def raising(case: str = "fam/a", release: str = "0.6.0", **more: str) -> JudgedJob:
    """Return a job that raises."""
    return member(case, release, Verdict.REGRESSED, error=ERROR, **more)  # type: ignore[arg-type]


def fine(case: str = "fam/a", release: str = "0.5.3", **more: str) -> JudgedJob:
    """Return a job that is as recorded."""
    return member(case, release, Verdict.MATCH, **more)  # type: ignore[arg-type]


def proposed(
    showing: list[JudgedJob], *others: JudgedJob, terms: Terms | None = None
) -> list[Deviation]:
    """Return the new deviations."""
    found = propose(showing, [*showing, *others], KNOWN, terms).declarations
    return [one.deviation for one in found if one.deviation is not None]


def test_a_proposal_has_the_observed_failure_and_the_tightest_range() -> None:
    """With the words that all messages have in common."""
    showing = [raising(), raising(release="0.6.2")]
    assert proposed(showing, fine(), terms=Terms(reason="why", issue="o/r#1")) == [
        Deviation(
            releases=">=0.6,<=0.6.2", error="TypeError", match="carry must have equal types, got",
            reason="why", issue="o/r#1",
        )
    ]  # fmt: skip


def test_every_function_has_a_separate_range() -> None:
    """Parametrisations with the same result share it."""
    showing = [raising("fam/a[x]"), raising("fam/a[y]"), raising("fam/b", "0.7.0")]
    others = [fine("fam/a[z]", "0.6.0"), fine("fam/a[x]"), fine("fam/a[y]"), fine("fam/b")]
    found = propose(showing, [*showing, *others], KNOWN).declarations
    told = [(d.function, d.params, d.deviation.releases) for d in found if d.deviation]
    assert told == [("a", ("x", "y"), ">=0.6,<=0.6.0"), ("b", (), ">=0.7")]


def test_the_platform_is_proposed_only_if_it_separates_jobs() -> None:
    """Not if the releases do."""
    tpu, other = "tpu:v5e:2x2", "cpu"
    (one,) = proposed([raising(platform=tpu)], fine(release="0.6.0", platform=other))
    assert one.platform == tpu
    (one,) = proposed([raising(platform=tpu)], fine(platform=other))
    assert one.platform == ""


def test_values_of_the_reviewer_replace_the_proposal() -> None:
    """Also empty values: every release, platform or message."""
    terms = Terms(releases="", platform="", match="")
    assert proposed([raising()], fine(), terms=terms) == [Deviation(error="TypeError")]


def test_a_value_that_deviates() -> None:
    """It ran; the pattern is searched in the reasons."""
    reason = "out 3 of 4 elements differ, worst at [1]: 2.0 against 1.0"
    one = member("fam/a", "0.7.0", Verdict.REGRESSED, reason, conforms=Conformance.DEVIATES)
    (seen,) = proposed([one], fine())
    assert (seen.outcome, seen.error) == ("ok", "")
    assert re.search(seen.match, reason)


@pytest.mark.parametrize("verdict", [Verdict.FIXED, Verdict.STALE])
def test_a_fixed_deviation_ends_before_the_release(verdict: Verdict) -> None:
    """By the release before, of the deviation that covers it."""
    over = member("fam/a", "0.5.3", verdict, deviations=(OLD,))
    known = member("fam/a", "0.5.0", Verdict.KNOWN, deviations=(OLD,))
    (one,) = propose([over], [over, known], KNOWN).declarations
    assert (one.ends, one.releases, one.deviation) == (OLD, ">=0.5,<0.5.3", None)
    (gone,) = propose([over], [over], ("0.5.3",)).declarations
    assert gone.releases is None


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (member(verdict=Verdict.CHANGED), "nothing to declare"),
        (member(verdict=Verdict.FIXED), "nothing to declare"),
        (member(verdict=Verdict.FLAKY, error=ERROR), "flaky is no deviation"),
        (member(verdict=Verdict.NEW, error="CaseError: x"), "the case itself"),
        (raising(), ""),
        (member(verdict=Verdict.CRASHED, outcome=Outcome.CRASHED), ""),
    ],
)
def test_a_result_that_is_no_deviation_is_refused(one: JudgedJob, words: str) -> None:
    """With the reason."""
    why = propose([one], [one], KNOWN).refusal
    assert words in why
    assert bool(words) is bool(why)


@given(st.lists(st.text(max_size=80), min_size=1, max_size=3))
def test_the_pattern_is_found_in_every_message(texts: list[str]) -> None:
    """For any messages; at worst it is empty."""
    assert all(re.search(find_common_pattern(texts), text) for text in texts)


def test_the_pattern_has_no_numbers_and_no_paths() -> None:
    """They differ from cell to cell."""
    said = [f"got a shape (wrong?) of ({n}, 4) at /home/u{n}/case.py:7" for n in (1, 2)]
    assert find_common_pattern(said) == r"got a shape \(wrong\?\) of"
