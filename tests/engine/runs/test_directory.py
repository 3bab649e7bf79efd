"""The run directory: no record is lost, and no torn line is read."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.engine.cache import blobs
from conformance.engine.runs.directory import (
    RESULTS,
    UPGRADE,
    CorruptRunError,
    Results,
    RunDirectory,
)
from conformance.engine.runs.project_runs import ProjectRuns
from conformance.errors import InfrastructureError, UsageError
from conformance.files import TEMPORARY
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.model.run import RunInfo


def record(name: str = "a", **more: object) -> Record:
    """Return a record of a job that ended well."""
    base = {"outcome": Outcome.OK, "stage": Stage.EXECUTE, "case_hash": "h", "cell_hash": "c"}
    return Record(case=f"family/{name}", cell="cell", **{**base, **more})  # type: ignore[arg-type]


def append(run: RunDirectory, *records: Record) -> None:
    """Append records as one process would."""
    with contextlib.closing(Results(run)) as results:
        for one in records:
            results.append(one)


@given(
    message=st.text(), facts=st.dictionaries(st.text(), st.integers(-(2**53), 2**53) | st.text())
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_round_trip(tmp_path: Path, message: str, facts: dict[str, object]) -> None:
    """A record is one line, with any message."""
    run = RunDirectory(tmp_path / "run")
    (run.path / "results.jsonl").unlink(missing_ok=True)
    error = ErrorInfo(type="E", message=message)
    wanted = [record("a", error=error, facts=facts), record("b")]
    append(run, *wanted)
    assert run.read_records() == wanted


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    """The next record must not be appended to the half line of a killed run."""
    run = RunDirectory(tmp_path)
    append(run, record("a"))
    with (tmp_path / "results.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(record("torn"))[:-5])
    assert [one.case for one in run.read_records()] == ["family/a"]
    append(run, record("b"))
    assert [one.case for one in run.read_records()] == ["family/a", "family/b"]


def test_a_file_that_is_one_torn_line(tmp_path: Path) -> None:
    """Killed within the very first record."""
    (tmp_path / "results.jsonl").write_bytes(b'{"case": "fam')
    run = RunDirectory(tmp_path)
    assert run.read_records() == []
    append(run, record("a"))
    assert len(run.read_records()) == 1


@pytest.mark.parametrize("line", [b"not json", b"{}", b"", b'{"case": 3}', b"\xff"])
def test_a_corrupt_line_in_the_middle_is_named(tmp_path: Path, line: bytes) -> None:
    """File and line number, and what to do."""
    run = RunDirectory(tmp_path)
    append(run, record("a"))
    with (tmp_path / "results.jsonl").open("ab") as file:
        file.write(line + b"\n")
    append(run, record("b"))
    with pytest.raises(CorruptRunError, match=r"results\.jsonl:2: expected a record.*delete"):
        run.read_records()


def test_a_run_without_results(tmp_path: Path) -> None:
    """It was killed before its first job."""
    assert RunDirectory(tmp_path).read_records() == []


def test_run_json_round_trips(tmp_path: Path) -> None:
    """Written twice; no temporary file remains."""
    run = RunDirectory(tmp_path / "deep" / "run")
    run.write_run(RunInfo())
    run.write_run(RunInfo(matrix="smoke", plan=(("fam/one", "jax0.6.2-py311-cpu8"),), exit=0))
    assert run.read_run().plan == (("fam/one", "jax0.6.2-py311-cpu8"),)
    assert [file.name for file in run.path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("content", [None, "", "[]", "{"])
def test_a_malformed_run_json_is_named(tmp_path: Path, content: str | None) -> None:
    """Missing, empty, of another shape or cut short."""
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(CorruptRunError, match=r"run\.json"):
        RunDirectory(tmp_path).read_run()


def test_the_result_of_an_upgrade_round_trips(tmp_path: Path) -> None:
    """None for a run that is no upgrade; an unreadable file is one error."""
    run = RunDirectory(tmp_path / "run")
    assert run.read_file(UPGRADE) is None
    run.write_upgrade(b"{}")
    assert run.read_file(UPGRADE) == b"{}\n"
    (run.path / UPGRADE).unlink()
    (run.path / UPGRADE).mkdir()
    with pytest.raises(CorruptRunError, match=r"upgrade\.json: cannot be read"):
        run.read_file(UPGRADE)


def test_a_directory_is_locked_by_one_run(tmp_path: Path) -> None:
    """It is created, and free again after the run."""
    run = RunDirectory(tmp_path / "runs" / "r")
    with run.lock():
        assert run.path.is_dir()
        with pytest.raises(UsageError, match="another run is writing to it"), run.lock():
            pass
    with run.lock():
        pass


def test_temporary_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    """Among its files and its blobs; complete ones stay."""
    run = RunDirectory(tmp_path)
    name = run.blobs.put(b"whole")
    for folder in (run.path, run.blobs.folder):
        (folder / f"{TEMPORARY}1-ab-run.json").write_bytes(b"{")
    with run.lock():
        assert list(tmp_path.rglob(f"{TEMPORARY}*")) == []
    assert run.blobs.get(name) == b"whole"


def test_a_directory_that_cannot_be_created(tmp_path: Path) -> None:
    """The disk's error, with the path."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(InfrastructureError, match="file: cannot be written"),
        RunDirectory(tmp_path / "file").lock(),
    ):
        pass


def record_sync_calls(monkeypatch: pytest.MonkeyPatch, run: RunDirectory) -> list[tuple[str, int]]:
    """Return a list that gets the name of each file waited for, and the records at that time."""
    calls: list[tuple[str, int]] = []
    original = os.fsync

    def fsync(descriptor: int) -> None:
        original(descriptor)
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        calls.append((name, (run.path / RESULTS).read_bytes().count(b"\n")))

    monkeypatch.setattr(os, "fsync", fsync)
    return calls


def test_blobs_are_on_the_disk_before_the_record_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is synced once, and so is the folder with its name."""
    run = RunDirectory(tmp_path / "run")
    one, two = run.blobs.put(b"one"), run.blobs.put(b"two")
    with contextlib.closing(Results(run)) as results:
        calls = record_sync_calls(monkeypatch, run)
        results.append(record("a", artifacts={"value": one, "reference": two}))
        assert sorted(calls) == sorted([(one, 0), (two, 0), ("blobs", 0), (RESULTS, 1)])
        assert calls[-1] == (RESULTS, 1)
        calls.clear()
        results.append(record("b", artifacts={"value": two}))
        assert calls == [(RESULTS, 2)]


def test_blobs_of_short_jobs_are_synced_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once; those of cached records were synced by an earlier run."""
    run = RunDirectory(tmp_path / "run")
    one, two = run.blobs.put(b"one"), run.blobs.put(b"two")
    with contextlib.closing(Results(run)) as results:
        calls = record_sync_calls(monkeypatch, run)
        results.append(record("a", artifacts={"value": one}, seconds={"job": 0.001}))
        results.append(record("b", artifacts={"value": two}, cached=True), sync=False)
        assert calls == []
    assert {*calls[:2]} == {(one, 2), ("blobs", 2)}
    assert calls[2:] == [(RESULTS, 2)]


def test_a_record_whose_blobs_are_not_on_the_disk_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One error; the records before it stay."""
    run = RunDirectory(tmp_path / "run")
    append(run, record("a"))
    results = Results(run)
    name = run.blobs.put(b"content")

    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(InfrastructureError, match="blobs: cannot be written: input/output"):
            results.append(record("b", artifacts={"value": name}))
    results.close()
    assert [one.case for one in run.read_records()] == ["family/a"]


def test_records_of_a_merge_follow_their_blobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For many blobs the whole file system is synced."""
    run = RunDirectory(tmp_path / "run")
    names = [run.blobs.put(bytes([number])) for number in range(3)]
    append(run)
    records = [record(name, artifacts={"value": name}) for name in names]
    calls = record_sync_calls(monkeypatch, run)
    run.write_records(records)
    assert {(name, 0) for name in (*names, "blobs")} < {*calls}
    calls.clear()
    monkeypatch.setattr(blobs, "BATCH", 2)
    run.write_records(records)
    assert not {*names} & {name for name, _ in calls}
    assert run.read_records() == records


def test_a_new_reports_folder_is_ignored_by_git(tmp_path: Path) -> None:
    """Except pages of Markdown. An existing folder is not changed."""
    ProjectRuns(tmp_path / "new").allocate().write_run(RunInfo())
    assert (tmp_path / "new/reports/.gitignore").read_text() == "*\n!/*.md\n"
    append(RunDirectory(tmp_path / "log" / "reports" / "bisect" / "a"), record())
    assert (tmp_path / "log/reports/.gitignore").exists()
    (tmp_path / "known/reports").mkdir(parents=True)
    with ProjectRuns(tmp_path / "known").allocate().lock():
        assert not (tmp_path / "known/reports/.gitignore").exists()
    append(RunDirectory(tmp_path / "elsewhere" / "night"), record())
    assert not list((tmp_path / "elsewhere").glob("**/.gitignore"))
