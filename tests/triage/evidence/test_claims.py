"""What a reproduction asserts beside the claims of its case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.model.case import Case
from conformance.model.golden import GoldenEntry
from conformance.model.outcome import Outcome, Verdict
from conformance.triage.evidence.claims import with_recorded
from tests.engine.records import record

CASE = Case(id="f/a", family="f", topic="t", name="a", kind="program", file=Path("t.py"), line=1)
RECORDED = {"collectives": {"all-reduce": 1}, "dtypes": ["f32"], "collective_ops": {"x": 1}}


@pytest.mark.parametrize(
    ("seen", "claims"),
    [
        (RECORDED, {}),
        ({**RECORDED, "dtypes": ["f32", "f64"]}, {"dtypes": ["f32"]}),
        ({**RECORDED, "collectives": {}}, {"collectives": {"all-reduce": 1}}),
        ({**RECORDED, "collective_ops": {}}, {}),
    ],
)
def test_recorded_facts_that_a_job_does_not_state(
    seen: dict[str, Any], claims: dict[str, Any]
) -> None:
    """Those that are read by plain means."""
    job = record("f/a", "x", Verdict.CHANGED, facts=seen)
    golden = GoldenEntry(span="1..2", facts=RECORDED)
    assert with_recorded(CASE, job, golden).facts == claims
    own = replace(CASE, facts={"dtypes": ["f32"]})
    assert with_recorded(own, job, golden).facts == {**own.facts, **claims}


def test_nothing_is_recorded_or_to_be_read() -> None:
    """Without a golden, and of a job that did not end well."""
    job = record("f/a", "x", Verdict.CHANGED, facts={})
    assert with_recorded(CASE, job, None) is CASE
    failed = replace(job, outcome=Outcome.RAISED)
    assert with_recorded(CASE, failed, GoldenEntry(span="1", facts=RECORDED)) is CASE
