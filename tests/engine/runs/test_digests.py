"""Digests of runs, made from their directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.runs import digests
from conformance.engine.runs.digests import JobState, make_digest
from conformance.engine.runs.directory import RESULTS
from conformance.judge.errors import normalise_cause
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.record import ErrorInfo
from tests.engine.written_runs import FINISHED, STARTED, A, B, record, write

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.runs.directory import RunDirectory


def states(run: RunDirectory) -> dict[tuple[str, str], JobState]:
    """Return what a run's digest knows of each job."""
    made = make_digest(run)
    return {
        (case, cell): made.states[made.table[row, column] - 1]
        for row, case in enumerate(made.cases)
        for column, cell in enumerate(made.cells)
        if made.table[row, column]
    }


def test_a_digest_has_the_run_its_cells_and_states(tmp_path: Path) -> None:
    """The run, its cells with their releases, and of each job how it went."""
    known = record("f/b", B, Verdict.KNOWN, outcome=Outcome.RAISED)
    run = write(tmp_path / "r1", record("f/a", A), known)
    made = make_digest(run)
    assert (made.run, made.started, made.finished, made.exit, made.matrix) == (
        "r1", STARTED, FINISHED, 1, "smoke",
    )  # fmt: skip
    assert (made.cases, made.cells, made.releases) == (("f/a", "f/b"), (A, B), ("0.5.3", ""))
    assert states(run) == {
        ("f/a", A): JobState(Verdict.MATCH, Outcome.OK, Conformance.CONFORMS),
        ("f/b", B): JobState(Verdict.KNOWN, Outcome.RAISED, Conformance.CONFORMS),
    }


def test_unexpected_jobs_keep_their_reason(tmp_path: Path) -> None:
    """Or the error's signature if there is no reason; a long text is cut."""
    error = ErrorInfo(type="TypeError", message="m", signature="TypeError: m")
    run = write(
        tmp_path / "r1",
        record("f/a", A, Verdict.REGRESSED, reasons=("3 of 8 differ", "and more")),
        record("f/b", A, Verdict.CRASHED, reasons=(), error=error),
        record("f/c", A, Verdict.CHANGED, reasons=("x" * 10_000_000,)),
    )
    found = {case: state for (case, _), state in states(run).items()}
    assert (found["f/a"].reason, found["f/a"].cause) == ("3 of 8 differ", "# of # differ")
    assert found["f/b"].reason == "TypeError: m"
    assert len(found["f/c"].reason) == digests.LONGEST
    assert len(make_digest(run).states) == 3


def test_the_last_record_of_a_job_counts(tmp_path: Path) -> None:
    """A resumed run appends a record of a job that it judges again."""
    run = write(tmp_path / "r1", record("f/a", A, Verdict.CHANGED), record("f/a", A))
    assert [state.verdict for state in states(run).values()] == [Verdict.MATCH]


def test_a_killed_run_counts_with_its_complete_records(tmp_path: Path) -> None:
    """A line without its end is no record."""
    run = write(tmp_path / "r1", record("f/a", A), finished="", exit=None)
    with (run.path / RESULTS).open("ab") as out:
        out.write(b'{"case": "f/b", "ce')
    made = make_digest(run)
    assert (made.finished, made.exit, made.cases) == ("", None, ("f/a",))
    (run.path / RESULTS).unlink()
    assert make_digest(run).cases == ()


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("out 3 of 16 differ, worst at [4]: 441.33 against 1e-05, 16777216 ulp", None),
        ("out 3 of 16 differ, worst at [4]: 441.33 against golden 1e-05, 16777216 ulp", None),
        ("out dtype float64, golden float32", "out dtype float64, golden float32"),
        ("golden (0.5.3..0.8.3)", "golden (#..#)"),
        ("at 0x7f3a2b1c0d of /usr/lib/x.py:12", "at <address> of x.py:<n>"),
        ("", ""),
    ],
)
def test_a_cause_is_the_normalised_reason(reason: str, cause: str | None) -> None:
    """Without numbers, addresses and paths; numbers in names stay."""
    expected = "out # of # differ, worst at [#]: # against #, # ulp" if cause is None else cause
    assert normalise_cause(reason) == expected


def test_a_run_of_a_part_of_its_matrix_has_a_part(tmp_path: Path) -> None:
    """By its selection. The whole matrix has no part, and neither has an old run."""
    asked = {"select": ["f/a"], "cell": ["latest"], "shard": "2/3"}
    assert make_digest(write(tmp_path / "part", request=asked, plan=(("f/a", A),))).part == (
        "f/a, latest, shard 2/3"
    )
    whole = {"select": [], "cell": [], "shard": "1/1"}
    assert make_digest(write(tmp_path / "whole", record("f/a", A), request=whole)).part == ""
    assert make_digest(write(tmp_path / "old", record("f/a", A))).part == ""
