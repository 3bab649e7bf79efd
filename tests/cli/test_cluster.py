"""`--executor dask`: runs, suites and upgrades on a cluster that the command starts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.corpus.project import PACKAGE
from tests.projects import CELL, case

if TYPE_CHECKING:
    from conformance.model.record import Record

    from .conftest import MakeProject

pytestmark = pytest.mark.cell
TOPIC = "cases/fam/topic.py"
DOUBLE = "return Program(lambda x: x * 2, args=(np.ones(8, np.float32),))"
CASE = case(f"import numpy as np\n{DOUBLE}", "program()")
SUITE = """\
import jax


def test_sum():
    assert jax.numpy.arange(4).sum() == 6


def test_fails():
    assert jax.numpy.arange(4).sum() == 7
"""


@pytest.fixture(autouse=True)
def _same_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers import the package of this process, which may be an installed one."""
    monkeypatch.syspath_prepend(PACKAGE.parent)


def strip(records: dict[str, Record]) -> dict[str, Record]:
    """Return records without what differs between two runs of a job."""
    return {
        name: replace(record, seconds={}, max_rss_bytes=0, cached=False)
        for name, record in records.items()
    }


def test_a_run_has_the_records_of_a_run_on_this_host(new_project: MakeProject) -> None:
    """And the second run takes them from the cache."""
    project = new_project({TOPIC: CASE})
    code, here = project.results("--fresh")
    far_code, far = project.results("--executor", "dask", "--jobs", "2", "--fresh")
    assert (far_code, strip(far)) == (code, strip(here))
    _, again = project.results("--executor", "dask")
    assert all(record.cached for record in again.values())


@pytest.mark.long
def test_a_suite_has_the_records_of_a_run_on_this_host(new_project: MakeProject) -> None:
    """With the error and the place of a failing test."""
    project = new_project({"tests/test_sum.py": SUITE})
    arguments = ("suite", "run", "tests", "--cell", CELL, "--fresh")
    here = project.run(*arguments)
    far = project.run(*arguments, "--executor", "dask", "--jobs", "2")
    assert far.code == here.code == 1
    assert far.out.partition("results in")[0] == here.out.partition("results in")[0]


def test_an_upgrade_on_a_cluster(new_project: MakeProject) -> None:
    """It compares the same jobs."""
    project = new_project({TOPIC: CASE})
    arguments = ("upgrade", "0.6.1", "0.6.2", "fam", "--fresh")
    here = project.run(*arguments)
    far = project.run(*arguments, "--executor", "dask", "--jobs", "2")
    assert (far.code, far.out.partition("results in")[0]) == (
        here.code, here.out.partition("results in")[0],
    )  # fmt: skip


def test_a_scheduler_that_does_not_answer(
    new_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line names it."""
    monkeypatch.setattr("conformance.cluster.connection.TIMEOUT", 1.0)
    project = new_project({TOPIC: CASE})
    ending = project.run("run", "--fresh", "--scheduler", "tcp://127.0.0.1:9")
    assert ending.code == 4
    assert "scheduler tcp://127.0.0.1:9: does not answer within 1 s" in ending.err
