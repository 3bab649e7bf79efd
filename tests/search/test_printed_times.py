"""Times in the output of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.stored_job import StoredJob
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import Record
from conformance.search.predicates import STDOUT
from conformance.search.printed_times import find_printed_times

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    MakeSamples = Callable[..., list[StoredJob]]


@pytest.fixture
def samples(tmp_path: Path) -> MakeSamples:
    """Make runs of a program that printed a text each."""
    blobs = BlobStore(tmp_path)

    def make(*texts: str) -> list[StoredJob]:
        return [
            StoredJob(
                Record(
                    case="script/slow.py", cell="c", case_hash="h", cell_hash="c",
                    outcome=Outcome.OK, stage=Stage.EXECUTE,
                    artifacts={STDOUT: blobs.put(text.encode())},
                ),
                blobs,
            )
            for text in texts
        ]  # fmt: skip

    return make


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("took 2 s", 2.0),
        ("took 2.5 seconds", 2.5),
        ("33.3 ms ± 491 µs per loop", 0.0333),
        ("forward: 1.5e+2us", 1.5e-4),
        ("float32: 7 ns", 7e-9),
    ],
)
def test_a_number_with_a_unit_of_time_is_a_time(
    samples: MakeSamples, text: str, seconds: float
) -> None:
    """Even if each run prints the same; the deviation of a mean is none."""
    (metric,) = find_printed_times(samples(text, text))
    assert metric.of(samples(text)[0]) == pytest.approx(seconds)


def test_a_decimal_that_differs_from_run_to_run_is_a_time(samples: MakeSamples) -> None:
    """A size, a version and a loss are the same each time."""
    good = samples(
        "jax 0.5.3, loss 0.25\n1000 0.013\n2000 0.021",
        "jax 0.5.3, loss 0.25\n1000 0.012\n2000 0.022",
    )
    bad = samples(
        "jax 0.6.0, loss 0.75\n1000 0.052\n2000 0.210",
        "jax 0.6.0, loss 0.75\n1000 0.051\n2000 0.211",
    )
    short, long = find_printed_times(good, bad)
    assert (short.name, long.name) == ("printed time '# #'", "printed time '# #' (2)")
    assert short.collect_values(good) == [0.013, 0.012]
    assert long.collect_values(bad) == [0.21, 0.211]


def test_a_unit_may_change_with_the_time(samples: MakeSamples) -> None:
    """Times are compared in seconds."""
    fast, slow = samples("step: 980 µs"), samples("step: 1.2 ms")
    (metric,) = find_printed_times(fast, slow)
    assert metric.name == "printed time 'step: #'"
    assert metric.summarize([*fast, *slow]) == "median 1.09 ms of 2 (980 µs to 1.2 ms)"


@pytest.mark.parametrize("text", ["1200 GB/s", "loss 0.5", "2 steps", "0.5 s/step", ""])
def test_other_numbers_are_no_times(samples: MakeSamples, text: str) -> None:
    """Rates, counts and results."""
    assert find_printed_times(samples(text, text)) == []


def test_a_time_that_one_point_does_not_print_is_left_out(samples: MakeSamples) -> None:
    """It cannot be compared."""
    assert find_printed_times(samples("a: 1 s", "a: 2 s"), samples("b: 1 s", "b: 2 s")) == []
