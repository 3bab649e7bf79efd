"""The job that stands for a root cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.cells.cell import Cell
from conformance.engine.root_causes import RootCause
from conformance.errors import UsageError
from conformance.model.case import Case
from conformance.model.outcome import Conformance, Verdict
from conformance.triage.evidence.representative import stands_for, why_not
from tests.engine.records import record

CELLS = {
    "plain": Cell(release="0.6.2", python="3.11"),
    "pinned": Cell(
        release="0.6.2", python="3.11", platform="cpu", devices=8, pins=("numpy==2.0.2",)
    ),
    "two": Cell(release="0.6.2", python="3.11", platform="cpu-mp2", devices=8),
    "tpu": Cell(release="0.6.2", python="3.11", platform="tpu:v5e:2x2"),
}


def case(name: str, **more: Any) -> Case:
    """Return a case."""
    stated: dict[str, Any] = {"kind": "program", **more}
    return Case(
        id=f"f/{name}", family="f", topic="t", name=name, file=Path("t.py"), line=1, **stated
    )


CASES = {
    one.id: one
    for one in (case("one"), case("four", devices=4), case("probe", kind="probe"))
}  # fmt: skip
DEVIATES: dict[str, Any] = {"conformance": Conformance.DEVIATES}


def job(name: str, cell: str = "plain", verdict: Verdict = Verdict.REGRESSED, **more: Any) -> Any:
    """Return the record of a job."""
    return replace(record(f"f/{name}", cell, verdict, "out differs"), **more)


@pytest.mark.parametrize(
    ("best", "other"),
    [
        (job("four"), job("one", "two")),
        (job("four"), job("one", "tpu")),
        (job("four"), job("one", "pinned")),
        (job("one"), job("four")),
        (job("four"), job("probe")),
        (job("four", **DEVIATES), job("one")),
        (job("four", verdict=Verdict.CHANGED), job("one", verdict=Verdict.CHANGED, **DEVIATES)),
        (job("one", seconds={"job": 0.1}), job("one", seconds={"job": 2.0})),
        (job("four"), job("one", verdict=Verdict.FLAKY)),
        (job("four"), job("gone")),
        (job("four"), job("one", "gone")),
    ],
)
def test_the_job_that_needs_least(best: Any, other: Any) -> None:
    """Whatever order the jobs have."""
    for records in ((best, other), (other, best)):
        found, its_case, cell = stands_for(
            RootCause(id="", reason="", records=records), CELLS, CASES
        )
        assert found is best
        assert (its_case, cell) == (CASES[best.case], CELLS[best.cell])


def test_what_is_gone_stands_for_nothing() -> None:
    """It is said which it is."""
    with pytest.raises(UsageError, match="f/gone on plain: the case or the cell is not there"):
        stands_for(RootCause(id="", reason="", records=(job("gone"),)), CELLS, CASES)


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        (Verdict.REGRESSED, ""),
        (Verdict.FLAKY, "its jobs do not show the same twice"),
        (Verdict.INFRA, "it says nothing about JAX"),
    ],
)
def test_what_is_not_looked_into(verdict: Verdict, why: str) -> None:
    """Faults of the host, and what is flaky."""
    assert why_not(RootCause(id="", reason="", records=(job("one", verdict=verdict),))) == why
