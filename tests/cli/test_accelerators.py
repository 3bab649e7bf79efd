"""Cells of an accelerator that this host lacks: unsupported, or an error when it is required."""

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


def test_it_is_unsupported_and_the_rest_of_the_run_unharmed(new_project: MakeProject) -> None:
    """Each job of the cell has the one reason; nothing is installed for it."""
    project = new_project({TOPIC: GOOD})
    assert project.run("run", "--cell", GPU, "--cell", CELL).code == 0
    records = project.newest.read_records()
    gpu = [record for record in records if record.cell != CELL]
    assert {(record.outcome, record.verdict) for record in gpu} == {("unsupported", "excluded")}
    assert {record.error.message for record in gpu if record.error is not None} == {
        find_missing_accelerator(get_platform("gpu"))
    }
    assert len(records) == 4


def test_a_required_platform_is_infra_also_when_resumed(new_project: MakeProject) -> None:
    """Exit 4; what is asked for is kept with the run."""
    project = new_project({TOPIC: GOOD})
    assert project.run("run", "--cell", GPU, "--require-platform").code == 4
    assert {record.outcome for record in project.newest.read_records()} == {"infra"}
    assert project.run("run", "--resume").code == 4


def test_a_resumed_run_asks_again_whether_the_accelerator_is_there(
    new_project: MakeProject,
) -> None:
    """What was unsupported is not held against a host that has one by now."""
    project = new_project({TOPIC: GOOD})
    assert project.run("run", "--cell", GPU).code == 3
    assert {record.cell_hash for record in project.newest.read_records()} == {""}
