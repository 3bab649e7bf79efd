"""What never becomes golden."""

from __future__ import annotations

import pytest

from conformance.golden.spans import is_release
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.review.judged_jobs import find_refusal, needs_no_golden

from .members import member


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.6.0", True),
        ("0.12.0.1", True),
        ("0.6.0.post1", True),
        ("0.7.1.dev20261122", False),
        ("0.7.1.dev20261122+g1a2b3c", False),
        ("0.6.0+selfbuilt", False),
        ("0.7.0rc1", False),
    ],
)
def test_unreleased_versions_are_recognised(version: str, expected: bool) -> None:
    """Nightlies, candidates and local builds are never golden."""
    assert is_release(version) is expected
    one = member(release="0.6.0", verdict=Verdict.CHANGED)
    for package in ("jax", "jaxlib"):
        why = find_refusal(one.record, {"jax": "0.6.0", "jaxlib": "0.6.0", package: version})
        assert (f"{package} {version} is no release" in why) is not expected


@pytest.mark.parametrize(
    ("verdict", "conforms", "words"),
    [
        (Verdict.CHANGED, Conformance.CONFORMS, ""),
        (Verdict.FIXED, Conformance.CONFORMS, ""),
        (Verdict.REGRESSED, Conformance.UNKNOWN, ""),
        (Verdict.REGRESSED, Conformance.DEVIATES, "no deviation declares that"),
        (Verdict.CHANGED, Conformance.DEVIATES, ""),
        (Verdict.FLAKY, Conformance.CONFORMS, "flaky is never golden"),
        (Verdict.CRASHED, Conformance.UNKNOWN, "crashed is never golden"),
        (Verdict.TIMED_OUT, Conformance.UNKNOWN, "timed_out is never golden"),
    ],
)
def test_some_verdicts_are_never_golden(
    verdict: Verdict, conforms: Conformance, words: str
) -> None:
    """Undeclared deviations, and jobs that did not end."""
    one = member(verdict=verdict, conforms=conforms)
    assert words in one.refusal
    assert bool(words) is bool(one.refusal)


def test_a_fault_of_the_case_is_refused() -> None:
    """It says nothing about jax."""
    assert "the case itself" in member(verdict=Verdict.NEW, error="CaseError: empty").refusal


@pytest.mark.parametrize(
    ("verdict", "release", "expected"),
    [
        (Verdict.MATCH, "0.7.1.dev1", True),
        (Verdict.CHANGED, "0.7.1.dev1", False),
        (Verdict.MATCH, "0.7.0", False),
    ],
)
def test_a_nightly_that_is_as_recorded_is_no_refusal(
    verdict: Verdict, release: str, expected: bool
) -> None:
    """There is nothing to take."""
    one = member(release=release, verdict=verdict, outcome=Outcome.OK)
    assert needs_no_golden(one.record, one.job.planned.versions) is expected
