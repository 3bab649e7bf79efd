"""What is measured: which end's population a point belongs to."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.stored_job import StoredJob
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.search.endpoints import EndpointsError
from conformance.search.metrics import MEMORY, TIME, make_phase_metric
from conformance.search.point_predicates import (
    FIRST,
    MARGIN,
    MOST,
    MetricPredicate,
    compare_endpoints,
    separate_ends,
)
from conformance.search.predicates import BAD, GOOD, STDOUT, PointKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    MakeSides = Callable[..., list[StoredJob]]

NAMES = ("0.5.3", "0.6.0")


@pytest.fixture
def sides(tmp_path: Path) -> MakeSides:
    """Make jobs that took so many seconds each."""
    blobs = BlobStore(tmp_path)

    def make(*seconds: float, outcome: Outcome = Outcome.OK) -> list[StoredJob]:
        error = ErrorInfo(type="E", message="m", signature="E: m")
        return [
            StoredJob(
                Record(
                    case="slow.py", cell="c", case_hash="h", cell_hash="c", outcome=outcome,
                    stage=Stage.EXECUTE, error=None if outcome is Outcome.OK else error,
                    seconds={"job": each}, max_rss_bytes=int(each * 2**20),
                ),
                blobs,
            )
            for each in seconds
        ]  # fmt: skip

    return make


def asked(sides: MakeSides, good: Sequence[float], bad: Sequence[float]) -> MetricPredicate | None:
    """Return the predicate between two ends."""
    return compare_endpoints(TIME, sides(*good), sides(*bad), NAMES)


def test_separate_ends_have_a_threshold_between_them(sides: MakeSides) -> None:
    """The geometric mean of their medians."""
    question = asked(sides, [1.0] * FIRST, [4.0] * FIRST)
    assert question is not None
    assert question.about == "has time above 2.00 s, between medians of 1.00 s and 4.00 s"
    assert question.classify(sides(1.5, 1.1, 1.9)) == GOOD
    assert question.classify(sides(2.1, 9.0, 3.0)) == BAD


def test_the_bad_end_may_take_less(sides: MakeSides) -> None:
    """In a search for the cause of an improvement."""
    question = asked(sides, [4.0] * FIRST, [1.0] * FIRST)
    assert question is not None
    assert question.classify(sides(1.0, 1.0, 1.0)) == BAD


def test_few_samples_need_more(sides: MakeSides) -> None:
    """At the ends, and at a point near the threshold."""
    assert asked(sides, [1.0] * (FIRST - 1), [4.0] * (FIRST - 1)) is None
    question = asked(sides, [1.0] * FIRST, [4.0] * FIRST)
    assert question is not None
    assert question.classify(sides(1.0, 1.0)) is None
    assert question.classify(sides(1.0, 4.0, 1.0)) is None
    assert question.classify(sides(1.0, 4.0, 1.0, 1.0, 1.0)) == GOOD


def test_one_slow_sample_needs_more_samples_that_outweigh_it(sides: MakeSides) -> None:
    """Other work used the machine for a moment."""
    good = [9.0, *[1.0] * (FIRST - 1)]
    assert asked(sides, good, [4.0] * FIRST) is None
    assert asked(sides, [*good, 1.0, 1.0, 1.0], [4.0] * (FIRST + 3)) is not None


def test_ends_that_overlap_are_ambiguous(sides: MakeSides) -> None:
    """The message has the range of both."""
    noise = [1.0 + n / MOST for n in range(MOST)]
    with pytest.raises(EndpointsError) as info:
        asked(sides, noise, [each + 0.1 for each in noise])
    assert str(info.value) == (
        "time: ambiguous, the ends overlap: 0.5.3 median 1.47 s of 15 (1.00 s to 1.93 s) and "
        "0.6.0 median 1.57 s of 15 (1.10 s to 2.03 s); name other ends"
    )


def test_times_below_the_resolution_are_equal(sides: MakeSides) -> None:
    """Rounding and other work of the host differ by a microsecond."""
    with pytest.raises(EndpointsError, match="the ends overlap"):
        asked(sides, [4e-6] * MOST, [5e-6] * MOST)
    assert asked(sides, [4e-6] * FIRST, [4e-5] * FIRST) is not None


def test_a_point_in_between_is_ambiguous(sides: MakeSides) -> None:
    """Its state is unknown, with the counts."""
    question = asked(sides, [1.0] * FIRST, [4.0] * FIRST)
    assert question is not None
    state = question.classify(sides(*[1.0, 4.0] * (MOST // 2), 4.0))
    assert state is not None
    assert state.kind is PointKind.UNKNOWN
    assert state.about == "ambiguous: 8 of 15 samples are bad"


def test_a_job_that_fails_has_no_metric(sides: MakeSides) -> None:
    """An error at an end, another state between them."""
    with pytest.raises(EndpointsError, match=r"0\.6\.0: no time to measure: E: m"):
        compare_endpoints(TIME, sides(1.0), sides(1.0, outcome=Outcome.RAISED), NAMES)
    question = asked(sides, [1.0] * FIRST, [4.0] * FIRST)
    assert question is not None
    for outcome, kind in (
        (Outcome.RAISED, PointKind.OTHER),
        (Outcome.UNSUPPORTED, PointKind.UNKNOWN),
    ):
        state = question.classify(sides(1.0, outcome=outcome))
        assert state is not None
        assert state.kind is kind


def test_a_phase_of_a_script_is_an_error(sides: MakeSides) -> None:
    """A script has no phases."""
    with pytest.raises(EndpointsError, match="has no time of phase compile; expected a --phase"):
        compare_endpoints(make_phase_metric("compile"), sides(1.0), sides(2.0), NAMES)


def test_memory_is_shown_in_mebibytes(sides: MakeSides) -> None:
    """The peak of the process."""
    question = compare_endpoints(MEMORY, sides(*[100.0] * FIRST), sides(*[400.0] * FIRST), NAMES)
    assert question is not None
    assert question.summarize(sides(90, 100, 120)) == "median 100 MiB of 3 (90 MiB to 120 MiB)"


@given(
    st.integers(0, 2**32), st.floats(0.01, 100), st.floats(1.5, 20), st.floats(0.0, 0.05)
)  # fmt: skip
def test_separate_populations_are_separated(
    seed: int, scale: float, ratio: float, spread: float
) -> None:
    """However large the numbers are, and whichever end is the greater."""
    noise = random.Random(seed)  # noqa: S311 - no secret
    low = [scale * (1 + spread * noise.random()) for _ in range(FIRST)]
    high = [ratio * scale * (1 + spread * noise.random()) for _ in range(FIRST)]
    for good, bad in ((low, high), (high, low)):
        found = separate_ends(TIME, good, bad)
        assert found is not None
        assert all(map(found.is_good, good))
        assert not any(map(found.is_good, bad))


@given(st.lists(st.floats(0.5, 2.0), min_size=FIRST, max_size=MOST))
def test_one_population_is_not_separated_from_itself(samples: list[float]) -> None:
    """Otherwise a release would be blamed for noise."""
    assert separate_ends(TIME, samples, samples) is None


def test_a_program_that_prints_times_is_compared_by_the_one_that_differs_most(
    tmp_path: Path,
) -> None:
    """Not by the seconds of its process, which has other work as well."""
    blobs = BlobStore(tmp_path)

    def run(*printed: str) -> list[StoredJob]:
        return [
            StoredJob(
                Record(
                    case="slow.py", cell="c", case_hash="h", cell_hash="c", outcome=Outcome.OK,
                    stage=Stage.EXECUTE, seconds={"job": 3.0},
                    artifacts={STDOUT: blobs.put(text.encode())},
                ),
                blobs,
            )
            for text in printed
        ]  # fmt: skip

    good = run(*["forward 1 ms\ngradient 2 ms"] * FIRST)
    bad = run(*["forward 1.5 ms\ngradient 18 ms"] * FIRST)
    found = compare_endpoints(TIME, good, bad, NAMES)
    assert found is not None
    assert found.about == (
        "has printed time 'gradient #' above 6 ms, between medians of 2 ms and 18 ms"
    )
    assert found.classify(run(*["forward 9 ms\ngradient 3 ms"] * MARGIN)) == GOOD
