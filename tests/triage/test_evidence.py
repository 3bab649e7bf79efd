"""Evidence on a root cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.cells.cell import Cell
from conformance.engine.runs.digests import Digest, JobState
from conformance.engine.runs.root_causes import RootCause
from conformance.errors import UsageError
from conformance.model.case import Case
from conformance.model.golden import GoldenEntry
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.run_files import Culprit, Evidence
from conformance.triage.evidence import (
    add_recorded_claims,
    choose_representative,
    find_last_right,
    find_objection,
    format_culprit,
    list_candidates,
    render_evidence,
)
from tests.engine.records import record

CELLS = {
    "plain": Cell(release="0.6.2", python="3.11"),
    "pinned": Cell(
        release="0.6.2", python="3.11", platform="cpu", devices=8, pins=("numpy==2.0.2",)
    ),
    "two": Cell(release="0.6.2", python="3.11", platform="cpu-mp2", devices=8),
    "tpu": Cell(release="0.6.2", python="3.11", platform="tpu:v5e:2x2"),
}
KNOWN = [f"0.{minor}.0" for minor in range(1, 10)]
RIGHT = JobState(verdict=Verdict.MATCH, outcome=Outcome.OK, conformance=Conformance.CONFORMS)
WRONG = JobState(verdict=Verdict.REGRESSED, outcome=Outcome.OK, conformance=Conformance.DEVIATES)
NIGHTS = [f"0.10.0.dev2025112{day}" for day in range(3)]
CASE = Case(id="f/a", family="f", topic="t", name="a", kind="program", file=Path("t.py"), line=1)
RECORDED = {"collectives": {"all-reduce": 1}, "dtypes": ["f32"], "collective_ops": {"x": 1}}


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
        found, its_case, cell = choose_representative(
            RootCause(id="", reason="", records=records), CELLS, CASES
        )
        assert found is best
        assert (its_case, cell) == (CASES[best.case], CELLS[best.cell])


def test_what_is_gone_stands_for_nothing() -> None:
    """It is said which it is."""
    with pytest.raises(UsageError, match="f/gone on plain: the case or the cell no longer exists"):
        choose_representative(RootCause(id="", reason="", records=(job("gone"),)), CELLS, CASES)


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
    assert (
        find_objection(RootCause(id="", reason="", records=(job("one", verdict=verdict),))) == why
    )


@pytest.mark.parametrize(
    ("release", "same", "seen", "expected"),
    [
        ("0.9.0", False, "", ["0.8.0", "0.7.0", "0.5.0", "0.1.0"]),
        ("0.9.0", True, "", ["0.9.0", "0.8.0", "0.7.0", "0.5.0", "0.1.0"]),
        ("0.10.0.dev20251122", False, NIGHTS[1], [NIGHTS[1], "0.9.0", "0.8.0", "0.6.0", "0.2.0"]),
        ("0.2.0", False, NIGHTS[1], ["0.1.0"]),
        ("0.1.0", False, "", []),
        ("0.9.5", True, "", ["0.9.0", "0.8.0", "0.6.0", "0.2.0"]),
    ],
)
def test_what_is_tried(release: str, same: bool, seen: str, expected: list[str]) -> None:
    """A release itself where its code was changed, the last night, then further back."""
    assert list_candidates(release, KNOWN, same=same, seen=seen) == expected


def night(release: str, state: JobState, case: str = "f/a", python: str = "py312") -> Digest:
    """Return a run of one job."""
    return Digest(
        run=release, cases=(case,), cells=(f"jax{release}-{python}-cpu8",), releases=(release,),
        states=(state,), grid=np.array([[1]], "<u4").tobytes(),
    )  # fmt: skip


def test_the_newest_night_that_saw_it_right() -> None:
    """Whatever the date and the Python of the nightly were."""
    runs = [
        night(NIGHTS[2], WRONG),
        night(NIGHTS[1], RIGHT, python="py313"),
        night(NIGHTS[0], RIGHT),
    ]
    assert find_last_right(runs, "f/a", "nightly-cpu8") == NIGHTS[1]


@pytest.mark.parametrize(
    "state", [WRONG, JobState(Verdict.INFRA, Outcome.INFRA, Conformance.UNKNOWN)]
)
def test_what_says_nothing_was_not_right(state: JobState) -> None:
    """Nor what was unexpected, another case, or another place."""
    runs = [night(NIGHTS[2], state), night(NIGHTS[1], RIGHT, case="f/b"), night("0.9.0", RIGHT)]
    assert find_last_right(runs, "f/a", "nightly-cpu8") == ""


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
    assert add_recorded_claims(CASE, job, golden).facts == claims
    own = replace(CASE, facts={"dtypes": ["f32"]})
    assert add_recorded_claims(own, job, golden).facts == {**own.facts, **claims}


def test_nothing_is_recorded_or_to_be_read() -> None:
    """Without a golden, and of a job that did not end well."""
    job = record("f/a", "x", Verdict.CHANGED, facts={})
    assert add_recorded_claims(CASE, job, None) is CASE
    failed = replace(job, outcome=Outcome.RAISED)
    assert add_recorded_claims(CASE, failed, GoldenEntry(span="1", facts=RECORDED)) is CASE


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ((), "jax 1.0 -> 1.1"),
        (("a.py",), "jax 1.1 with 1 changed file: a.py"),
        (("a.py", "b.py"), "jax 1.1 with 2 changed files: a.py, b.py"),
        (tuple("abcde"), "jax 1.1 with 5 changed files: a, b, c and 2 more"),
    ],
)
def test_a_culprit(files: tuple[str, ...], line: str) -> None:
    """By its versions, or by the files that are not as installed."""
    assert format_culprit(Culprit(package="jax", before="1.0", after="1.1", files=files)) == line


def test_what_was_found_out_and_what_not() -> None:
    """A line for each."""
    found = Evidence(
        cause="c", case="f/a", cell="x", good="1.0", last_good="1.0", first_bad="1.1",
        predicate="deviates from its own reference", repro="repro/c.py",
        command="uv run repro/c.py", unresolved=("no culprit: no network",),
    )  # fmt: skip
    assert list(render_evidence(found)) == [
        "f/a on x",
        "last good 1.0, first bad 1.1, not confirmed: deviates from its own reference",
        "reproduction: uv run repro/c.py",
        "no culprit: no network",
    ]
    assert list(render_evidence(Evidence(cause="c", case="f/a", cell="x"))) == ["f/a on x"]
