"""Cells that need an accelerator this host lacks: unsupported, or infra if it is required."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cells.accelerators import find_missing_accelerator
from conformance.cells.platforms import get_platform
from tests.projects import CELL, GOOD, RELEASE

if TYPE_CHECKING:
    from .conftest import MakeProject

pytestmark = [
    pytest.mark.cell,
    pytest.mark.skipif(not find_missing_accelerator(get_platform("gpu")), reason="a GPU is here"),
]
TOPIC = "cases/fam/topic.py"
GPU = f"{RELEASE}@gpu"


def test_cell_without_its_accelerator_is_unsupported_and_others_run(
    new_project: MakeProject,
) -> None:
    """Each job of the cell has the same reason, and nothing is installed for the cell."""
    project = new_project({TOPIC: GOOD})
    assert project.run("run", "--cell", GPU, "--cell", CELL).code == 0
    records = project.newest.read_records()
    gpu = [record for record in records if record.cell != CELL]
    assert {(record.outcome, record.verdict) for record in gpu} == {("unsupported", "excluded")}
    assert {record.error.message for record in gpu if record.error is not None} == {
        find_missing_accelerator(get_platform("gpu"))
    }
    assert len(records) == 4


def test_missing_required_platform_exits_4_also_on_resume(new_project: MakeProject) -> None:
    """The run stores `--require-platform`, so `--resume` exits with 4, too."""
    project = new_project({TOPIC: GOOD})
    assert project.run("run", "--cell", GPU, "--require-platform").code == 4
    assert {record.outcome for record in project.newest.read_records()} == {"infra"}
    assert project.run("run", "--resume").code == 4


def test_unsupported_jobs_have_no_cell_hash_so_resume_runs_them(
    new_project: MakeProject,
) -> None:
    """A resumed run may be on a host that has the accelerator."""
    project = new_project({TOPIC: GOOD})
    assert project.run("run", "--cell", GPU).code == 3
    assert {record.cell_hash for record in project.newest.read_records()} == {""}
