"""A map over many items: in this process or in several, in the same order."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from conformance.engine.process_pool import MANY, map_in_processes


def negative(number: int) -> tuple[int, int]:
    """Return a number's opposite, and who worked it out."""
    return -number, os.getpid()


@pytest.mark.parametrize(
    ("processes", "new", "alone"), [(1, MANY, True), (2, MANY - 1, True), (2, MANY, False)]
)
def test_many_new_items_start_processes(processes: int, new: int, alone: bool) -> None:
    """Few items do not: starting processes would take longer."""
    with map_in_processes(negative, range(MANY), processes=processes, new=new, chunk=4) as results:
        found = list(results)
    assert [number for number, _ in found] == [-number for number in range(MANY)]
    assert ({worker for _, worker in found} == {os.getpid()}) is alone


def test_work_starts_before_the_first_result_is_taken(tmp_path: Path) -> None:
    """Before the first result is asked for."""
    files = [tmp_path / str(number) for number in range(MANY)]
    with map_in_processes(Path.touch, files, processes=2, new=MANY, chunk=4):
        last = time.monotonic() + 60
        while not all(file.exists() for file in files) and time.monotonic() < last:
            time.sleep(0.01)
        assert all(file.exists() for file in files)
