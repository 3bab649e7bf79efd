"""Where a job may have been right: what is tried first, and what runs saw."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.engine.digests import Digest, JobState
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.triage.evidence.good_releases import candidates, seen_right

KNOWN = [f"0.{minor}.0" for minor in range(1, 10)]
RIGHT = JobState(verdict=Verdict.MATCH, outcome=Outcome.OK, conformance=Conformance.CONFORMS)
WRONG = JobState(verdict=Verdict.REGRESSED, outcome=Outcome.OK, conformance=Conformance.DEVIATES)
NIGHTS = [f"0.10.0.dev2025112{day}" for day in range(3)]


@pytest.mark.parametrize(
    ("release", "same", "seen", "expected"),
    [
        ("0.9.0", False, "", ["0.8.0", "0.7.0", "0.5.0", "0.1.0"]),
        ("0.9.0", True, "", ["0.9.0", "0.8.0", "0.7.0", "0.5.0", "0.1.0"]),
        ("0.10.0.dev20251122", False, NIGHTS[1], [NIGHTS[1], "0.9.0", "0.8.0", "0.6.0", "0.2.0"]),
        ("0.2.0", False, NIGHTS[1], ["0.1.0"]),
        ("0.1.0", False, "", []),
        ("0.9.5", True, "", ["0.9.0", "0.8.0", "0.6.0", "0.2.0"]),
    ],
)
def test_what_is_tried(release: str, same: bool, seen: str, expected: list[str]) -> None:
    """A release itself where its code was changed, the last night, then further back."""
    assert candidates(release, KNOWN, same=same, seen=seen) == expected


def night(release: str, state: JobState, case: str = "f/a", python: str = "py312") -> Digest:
    """Return a run of one job."""
    return Digest(
        run=release, cases=(case,), cells=(f"jax{release}-{python}-cpu8",), releases=(release,),
        states=(state,), grid=np.array([[1]], "<u4").tobytes(),
    )  # fmt: skip


def test_the_newest_night_that_saw_it_right() -> None:
    """Whatever the date and the Python of the nightly were."""
    runs = [
        night(NIGHTS[2], WRONG),
        night(NIGHTS[1], RIGHT, python="py313"),
        night(NIGHTS[0], RIGHT),
    ]
    assert seen_right(runs, "f/a", "nightly-cpu8") == NIGHTS[1]


@pytest.mark.parametrize(
    "state", [WRONG, JobState(Verdict.INFRA, Outcome.INFRA, Conformance.UNKNOWN)]
)
def test_what_says_nothing_was_not_right(state: JobState) -> None:
    """Nor what was unexpected, another case, or another place."""
    runs = [night(NIGHTS[2], state), night(NIGHTS[1], RIGHT, case="f/b"), night("0.9.0", RIGHT)]
    assert seen_right(runs, "f/a", "nightly-cpu8") == ""
