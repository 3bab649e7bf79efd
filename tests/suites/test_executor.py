"""How tests are divided among sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from conformance.suites.executor import divided
from tests.engine.worlds import job, planned

if TYPE_CHECKING:
    from conformance.engine.job import Job, PlannedCell

PLACES = [planned(release) for release in ("0.5.3", "0.6.0", "0.6.2")]


def of(place: PlannedCell, file: int, number: int) -> Job:
    """Return a test of a file."""
    return job(Path("/p") / str(file), f"{file}-{number}", place)


@given(
    st.sets(st.tuples(st.sampled_from(range(3)), st.integers(0, 4), st.integers(0, 6)), min_size=1),
    st.integers(1, 8),
)
def test_nothing_is_lost_and_files_stay_whole(
    chosen: set[tuple[int, int, int]], slots: int
) -> None:
    """Each part is of one cell; one file of a cell is in one part; no slot is without need idle."""
    jobs = [of(PLACES[cell], file, number) for cell, file, number in sorted(chosen)]
    parts = divided(jobs, slots)
    assert sorted(one.id for part in parts for one in part) == sorted(one.id for one in jobs)
    assert all(parts)
    seen: dict[tuple[str, Path], int] = {}
    for number, part in enumerate(parts):
        assert len({one.planned.cell.id for one in part}) == 1
        for one in part:
            assert seen.setdefault((one.planned.cell.id, one.case.file), number) == number
    cells = len({one.planned.cell.id for one in jobs})
    assert cells <= len(parts) <= max(slots, cells)
