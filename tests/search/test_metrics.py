"""Metrics of a case that was measured as by `conformance bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from conformance.bench.measured import MEASUREMENTS, Measured, Taken
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.stored_job import StoredJob
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import Record
from conformance.search.metrics import LEAK, MEMORY, make_growth_metric, make_phase_metric

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    MakeSample = Callable[..., StoredJob]


@pytest.fixture
def sample(tmp_path: Path) -> MakeSample:
    """Make a trial that measured some sizes."""
    blobs = BlobStore(tmp_path)

    def make(*measured: Measured) -> StoredJob:
        artifacts = {MEASUREMENTS: blobs.put(msgspec.json.encode(measured))} if measured else {}
        record = Record(
            case="f/loop", cell="c", case_hash="h", cell_hash="c", outcome=Outcome.OK,
            stage=Stage.EXECUTE, artifacts=artifacts, max_rss_bytes=300,
        )  # fmt: skip
        return StoredJob(record, blobs)

    return make


def loop(size: int, seconds: float) -> Measured:
    """Return the measurements of a loop whose calls take so long."""
    phases = {"run": Taken(wall=seconds / 2, cpu=seconds)}
    return Measured(size=size, passes=1, phases=phases, memory={"compile": 7, "run": 9, "leak": -4})


def test_the_time_of_a_phase_is_that_of_the_largest_size(sample: MakeSample) -> None:
    """Processor time, which other load of the host hardly changes."""
    seen = sample(loop(1, 0.25), loop(2, 0.5))
    assert make_phase_metric("run").of(seen) == 0.5
    assert make_phase_metric("trace").of(seen) is None


def test_growth_is_the_exponent_over_the_sizes(sample: MakeSample) -> None:
    """A quadratic loop; two sizes say nothing."""
    growth = make_growth_metric("run")
    quadratic = [loop(size, size**2) for size in (1, 2, 4, 8)]
    found = growth.of(sample(*quadratic))
    assert found == pytest.approx(2)
    assert growth.render(2.0) == "n^2.00"
    assert growth.of(sample(*quadratic[:2])) is None


def test_memory_of_a_case_is_by_how_much_it_rises(sample: MakeSample) -> None:
    """While it compiles or runs; of a trial that measured nothing, the peak of the process."""
    assert MEMORY.of(sample(loop(1, 1.0))) == 9
    assert MEMORY.of(sample()) == 300


def test_a_leak_is_what_a_call_leaves(sample: MakeSample) -> None:
    """It may be negative: memory that was given back."""
    assert LEAK.of(sample(loop(1, 1.0))) == -4
    assert LEAK.of(sample()) is None
