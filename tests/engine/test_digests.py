"""Digests of runs, made from their directories and kept."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import zstandard

from conformance.engine import digests
from conformance.engine.digests import FORMAT, DigestStore, State, cause_of, digest_of
from conformance.engine.rundir import RESULTS, RUN, CorruptRunError, Results, RunDirectory
from conformance.errors import InfrastructureError
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from conformance.model.run import RunCell, RunInfo

if TYPE_CHECKING:
    from pathlib import Path

A, B = "jax0.5.3-py311-cpu8", "path-env-0123abcd-py311-cpu8"
STARTED, FINISHED = "2026-05-01T10:00:00+00:00", "2026-05-01T10:01:30+00:00"


def record(case: str, cell: str, verdict: Verdict = Verdict.MATCH, **more: Any) -> Record:
    """Return a record with all that a digest leaves out."""
    fields = {
        "case_hash": "c" * 32, "cell_hash": "e" * 32, "outcome": Outcome.OK,
        "stage": Stage.EXECUTE, "conformance": Conformance.CONFORMS, "facts": {"dtypes": ["f32"]},
        "artifacts": {"value": "v" * 32}, "reasons": ("a reason",), **more,
    }  # fmt: skip
    return Record(case=case, cell=cell, verdict=verdict, **fields)


def write(path: Path, *records: Record, **info: Any) -> RunDirectory:
    """Write a run's directory."""
    run = RunDirectory(path)
    said = {
        "started": STARTED, "finished": FINISHED, "exit": 1, "matrix": "smoke",
        "cells": (RunCell(id=A, versions={"jax": "0.5.3"}), RunCell(id=B)),
        "plan": tuple((record.case, record.cell) for record in records), **info,
    }  # fmt: skip
    run.write_run(RunInfo(**said))
    results = Results(run)
    for made in records:
        results.append(made, sync=False)
    results.close()
    return run


def states(run: RunDirectory) -> dict[tuple[str, str], State]:
    """Return what a run's digest knows of each job."""
    made = digest_of(run)
    return {
        (case, cell): made.states[made.table[row, column] - 1]
        for row, case in enumerate(made.cases)
        for column, cell in enumerate(made.cells)
        if made.table[row, column]
    }


def test_a_digest_knows_what_a_history_needs(tmp_path: Path) -> None:
    """The run, its cells with their releases, and of each job how it went."""
    known = record("f/b", B, Verdict.KNOWN, outcome=Outcome.RAISED)
    run = write(tmp_path / "r1", record("f/a", A), known)
    made = digest_of(run)
    assert (made.run, made.started, made.finished, made.exit, made.matrix) == (
        "r1", STARTED, FINISHED, 1, "smoke",
    )  # fmt: skip
    assert (made.cases, made.cells, made.releases) == (("f/a", "f/b"), (A, B), ("0.5.3", ""))
    assert states(run) == {
        ("f/a", A): State(Verdict.MATCH, Outcome.OK, Conformance.CONFORMS),
        ("f/b", B): State(Verdict.KNOWN, Outcome.RAISED, Conformance.CONFORMS),
    }


def test_of_what_is_unexpected_the_reason_is_kept(tmp_path: Path) -> None:
    """Or the error's signature where there is none; a long one is cut."""
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
    assert len(digest_of(run).states) == 3


def test_of_a_job_written_twice_the_last_counts(tmp_path: Path) -> None:
    """As everywhere."""
    run = write(tmp_path / "r1", record("f/a", A, Verdict.CHANGED), record("f/a", A))
    assert [state.verdict for state in states(run).values()] == [Verdict.MATCH]


def test_a_killed_run_counts_with_what_it_has(tmp_path: Path) -> None:
    """A line without its end is no record."""
    run = write(tmp_path / "r1", record("f/a", A), finished="", exit=None)
    with (run.path / RESULTS).open("ab") as out:
        out.write(b'{"case": "f/b", "ce')
    made = digest_of(run)
    assert (made.finished, made.exit, made.cases) == ("", None, ("f/a",))
    (run.path / RESULTS).unlink()
    assert digest_of(run).cases == ()


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("out 3 of 16 differ, worst at [4]: 441.33 against 1e-05, 16777216 ulp", None),
        ("out dtype float64, golden float32", "out dtype float64, golden float32"),
        ("golden (0.5.3..0.8.3)", "golden (#..#)"),
        ("at 0x7f3a2b1c0d of /usr/lib/x.py:12", "at <address> of x.py:<n>"),
        ("", ""),
    ],
)
def test_a_cause_is_the_reason_without_what_differs_from_run_to_run(
    reason: str, cause: str | None
) -> None:
    """Numbers, addresses, paths; names keep theirs."""
    expected = "out # of # differ, worst at [#]: # against #, # ulp" if cause is None else cause
    assert cause_of(reason) == expected


@pytest.fixture
def store(tmp_path: Path) -> DigestStore:
    """Return a store."""
    return DigestStore(tmp_path / "kept")


def kept(tmp_path: Path) -> Path:
    """Return the only kept file."""
    (file,) = (tmp_path / "kept").iterdir()
    return file


def test_a_digest_is_made_once(tmp_path: Path, store: DigestStore) -> None:
    """Whoever asks again gets it from its file."""
    run = write(tmp_path / "r1", record("f/a", A))
    made = store.get(run)
    written = kept(tmp_path).stat()
    assert DigestStore(tmp_path / "kept").get(run) == made == digest_of(run)
    assert kept(tmp_path).stat() == written


def test_a_run_that_went_on_is_read_again(tmp_path: Path, store: DigestStore) -> None:
    """More results, or another `run.json`."""
    run = write(tmp_path / "r1", record("f/a", A), finished="")
    assert store.get(run).cases == ("f/a",)
    results = Results(run)
    results.append(record("f/b", A))
    results.close()
    assert store.get(run).cases == ("f/a", "f/b")
    info = run.read_run()
    run.write_run(RunInfo(started=info.started, finished=FINISHED, cells=info.cells))
    assert store.get(run).finished == FINISHED


def test_a_change_of_the_same_size_is_seen(tmp_path: Path, store: DigestStore) -> None:
    """By the time of the file."""
    run = write(tmp_path / "r1", record("f/a", A))
    store.get(run)
    file = run.path / RESULTS
    file.write_bytes(file.read_bytes().replace(b'"f/a"', b'"f/z"'))
    os.utime(file, ns=(0, 1))
    assert store.get(run).cases == ("f/z",)


def test_what_is_kept_and_broken_is_made_anew(tmp_path: Path, store: DigestStore) -> None:
    """Empty, cut, one bit different, no digest at all, or of another version."""
    run = write(tmp_path / "r1", record("f/a", A))
    made = store.get(run)
    file = kept(tmp_path)
    whole = file.read_bytes()
    flipped = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
    fields = msgspec.msgpack.decode(zstandard.decompress(whole))
    other = [FORMAT + 1, *fields[1:]]
    other[2][0] = "another"
    foreign = zstandard.compress(msgspec.msgpack.encode({"a": 1}))
    later = zstandard.compress(msgspec.msgpack.encode(other))
    for data in (b"", whole[:-20], flipped, b"no digest", foreign, later):
        file.write_bytes(data)
        assert store.get(run) == made
        assert file.read_bytes() == whole


def test_runs_of_one_name_in_two_folders_are_two(tmp_path: Path, store: DigestStore) -> None:
    """E.g. the shards of two nights."""
    one = write(tmp_path / "a" / "shard-1", record("f/a", A))
    other = write(tmp_path / "b" / "shard-1", record("f/b", A))
    assert store.get(one).cases != store.get(other).cases
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_what_cannot_be_read_is_told_and_the_rest_goes_on(
    tmp_path: Path, store: DigestStore
) -> None:
    """A sentence for each, that says where and what was expected."""
    good = write(tmp_path / "good", record("f/a", A))
    broken = write(tmp_path / "broken", record("f/a", A))
    (broken.path / RESULTS).write_text('{"case": "f/a"}\n')
    for name, text in (("foreign", json.dumps([1])), ("empty", "{}"), ("cut", '{"started"')):
        (tmp_path / name).mkdir()
        (tmp_path / name / RUN).write_text(text)
    (tmp_path / "none").mkdir()
    names = ("broken", "good", "foreign", "empty", "cut", "none")
    found, problems = store.get_all([RunDirectory(tmp_path / name) for name in names])
    assert found == {good: digest_of(good)}
    assert len(problems) == 5
    assert f"{tmp_path / 'broken' / RESULTS}:1: expected a record" in problems[0]
    assert "expected a run, got a folder without any job" in problems[2]
    with pytest.raises(CorruptRunError, match="cannot be read"):
        store.get(RunDirectory(tmp_path / "none"))


def test_processes_make_no_difference(tmp_path: Path) -> None:
    """But that many new runs are read sooner."""
    runs = [write(tmp_path / f"r{n}", record(f"f/{n}", A)) for n in range(digests.MANY)]
    (runs[7].path / RUN).write_text("{}")
    (runs[7].path / RESULTS).unlink()
    alone = DigestStore(tmp_path / "alone").get_all(runs)
    assert DigestStore(tmp_path / "both", processes=2).get_all(runs) == alone
    assert (len(alone[0]), len(alone[1])) == (digests.MANY - 1, 1)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """Where, and what to do."""
    run = write(tmp_path / "r1", record("f/a", A))
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="cannot be written"):
        DigestStore(tmp_path / "file").get(run)
