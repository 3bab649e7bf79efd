"""Abusive jobs beside innocent ones; `benchmarks/attack/abusive_jobs.py` tries many more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.abuse import try_abuse
from tests.workbench import OLD, planned_cell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cell


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(
    "name",
    [
        "kills its parent",
        "kills its neighbours",
        "stops its parent",
        "has a daemon that allocates",
        "has children that allocate together",
        "reads from every descriptor",
        "writes frames of wrong types",
        "writes to its parent's pipes",
        "raises a class named by half a pair",
        "is nobody's child",
    ],
)
def test_no_innocent_job_is_blamed_or_lost(name: str, tmp_path: Path) -> None:
    """The abusive job has its own outcome, its neighbours theirs; nothing is left behind."""
    _, problems = try_abuse(name, planned_cell(OLD), tmp_path)
    assert problems == []
