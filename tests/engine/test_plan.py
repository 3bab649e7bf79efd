"""The jobs of a plan in order, and the reasons of its exclusions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.cells.cell import Cell
from conformance.engine.job import Job, make_job_key
from conformance.engine.plan import find_exclusion_reason, list_possible_jobs, make_plan
from conformance.model.case import Deviation
from conformance.model.run import Exclusion

from .worlds import job, planned

HERE = Path("cases")


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({}, ""),
        ({"platforms": ("cpu", "gpu")}, ""),
        ({"platforms": ("gpu", "tpu")}, "runs on gpu, tpu, the cell is cpu"),
        ({"devices": 8}, ""),
        ({"devices": 9}, "needs 9 devices, the cell has 8"),
        ({"releases": ">=0.6"}, ""),
        ({"releases": "<0.6"}, "applies to jax<0.6, the cell has 0.6.0"),
        ({"requires": ("flax>=0.10", "NumPy")}, ""),
        ({"requires": ("flax>=0.11",)}, "requires flax>=0.11, the cell has 0.10.6"),
        ({"requires": ("optax",)}, "requires optax, the cell has none"),
    ],
)
def test_the_reason_why_a_case_is_excluded(needs: dict[str, Any], reason: str) -> None:
    """In terms of its metadata; empty if it can run."""
    assert find_exclusion_reason(job(HERE, **needs).case, planned()) == reason


def test_possible_jobs_need_no_lock() -> None:
    """The same on every host: by platform, and by release if that is known."""
    there = planned("0.6.2")
    gone = replace(there, failure="no network", versions={"jax": "0.6.2"}, cell_hash="")
    new, old = job(HERE, "new", releases=">=0.8").case, job(HERE, "old", releases="<0.8").case
    assert (
        find_exclusion_reason(new, gone)
        == find_exclusion_reason(new, there)
        == "applies to jax>=0.8, the cell has 0.6.2"
    )
    assert find_exclusion_reason(old, gone) == find_exclusion_reason(old, there) == ""
    untold = Cell(release="nightly", python="3.12")
    found = [one.id for one in list_possible_jobs([new, old], [there.cell, untold])]
    assert found == [(old.id, there.cell.id), (new.id, untold.id), (old.id, untold.id)]


def test_a_nightly_counts_as_the_release_that_it_precedes() -> None:
    """For `releases` of a case and for its deviations."""
    night = planned("0.8.3.dev20251120")
    assert find_exclusion_reason(job(HERE, releases=">=0.8.3").case, night) == ""
    assert find_exclusion_reason(job(HERE, releases="<0.8.3").case, night) == (
        "applies to jax<0.8.3, the cell has 0.8.3.dev20251120"
    )
    until, since = Deviation(releases="<0.8.3"), Deviation(releases=">=0.8.3")
    covered = [d.covers(night.release, "cpu", night.versions) for d in (until, since)]
    assert covered == [False, True]
    other = Deviation(packages={"jaxlib": ">=0.8.3"})
    assert other.covers("0.8.2", "cpu", {"jaxlib": "0.8.3.dev20251120"})


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"devices": 4}, ""),
        ({"devices": 4, "platforms": ("cpu",)}, ""),
        ({"devices": 4, "platforms": ("gpu",)}, "runs on gpu, the cell is cpu-mp2"),
        ({}, "needs 1 device, which 2 processes cannot share evenly"),
        ({"devices": 3}, "needs 3 devices, which 2 processes cannot share evenly"),
        ({"devices": 4, "kind": "probe"}, "is a probe, written for one process; cpu-mp2 has 2"),
        (
            {"devices": 4, "kind": "probe", "platforms": ("cpu",)},
            "is a probe, written for one process; cpu-mp2 has 2",
        ),
        ({"devices": 4, "kind": "probe", "platforms": ("cpu-mp",)}, ""),
        ({"devices": 4, "kind": "probe", "platforms": ("cpu", "cpu-mp2")}, ""),
        ({"devices": 4, "platforms": ("cpu-mp4",)}, "runs on cpu-mp4, the cell is cpu-mp2"),
    ],
)
def test_devices_must_divide_by_the_number_of_processes(case: dict[str, Any], reason: str) -> None:
    """And a probe must be written for several processes."""
    one = replace(job(HERE).case, **case)
    assert find_exclusion_reason(one, planned(platform="cpu-mp2")) == reason


def test_jobs_of_a_cell_are_consecutive() -> None:
    """Exclusions are kept, and no pair is lost."""
    cases = [job(HERE, "a").case, job(HERE, "b", releases=">=0.6").case]
    cells = [planned("0.5.3"), planned("0.6.0")]
    given = Exclusion(case="", cell="x", reason="no Python")
    plan = make_plan(cases, cells, [given])
    assert [(j.case.name, j.planned.release) for j in plan.jobs] == [
        ("a", "0.5.3"), ("a", "0.6.0"), ("b", "0.6.0"),
    ]  # fmt: skip
    assert plan.exclusions[0] == given
    assert [(e.case, e.cell) for e in plan.exclusions[1:]] == [("family/b", cells[0].cell.id)]
    assert len(plan.jobs) + len(plan.exclusions) - 1 == len(cases) * len(cells)


def test_a_request_combines_case_and_cell() -> None:
    """Flags add up, the case's config wins, either enables x64."""
    place = planned(
        xla_flags=("--xla_a=1",), config=(("jax_x", "cell"), ("jax_y", "cell")), x64=True
    )
    one = job(HERE, place=place, xla_flags=("--xla_b=2",), config={"jax_x": "case"})
    request = one.request()
    assert request["xla_flags"] == ["--xla_a=1", "--xla_b=2"]
    assert request["config"] == {"jax_x": "case", "jax_y": "cell"}
    assert request["x64"] is True


@pytest.mark.parametrize(
    "change",
    [
        {"content_hash": "other"}, {"params": {"n": 1}}, {"devices": 2}, {"timeout": 1.0},
        {"xla_flags": ("--xla_a=1",)}, {"config": {"jax_x": 1}}, {"x64": True}, {"kind": "probe"},
    ],
)  # fmt: skip
def test_a_key_depends_on_content_parameters_flags_and_limits(change: dict[str, Any]) -> None:
    """Content, parameters, flags and limits."""
    one = job(HERE)
    other = Job(case=replace(one.case, **change), planned=one.planned)
    assert make_job_key(one, "kit") != make_job_key(other, "kit")


def test_a_key_changes_with_kit_and_cell() -> None:
    """Not with the folder of the case."""
    one = job(HERE)
    other_cell = Job(case=one.case, planned=replace(one.planned, cell_hash="other"))
    elsewhere = job(Path("elsewhere"))
    assert make_job_key(one, "kit") != make_job_key(one, "other kit")
    assert make_job_key(one, "kit") != make_job_key(other_cell, "kit")
    assert make_job_key(one, "kit") == make_job_key(elsewhere, "kit")
