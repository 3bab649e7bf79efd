"""Runs with a shared cache: what one machine has run, another one takes, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import obstore
import pytest

from conformance.engine.cache.blobs import BlobStore, CorruptBlobError, hash_blob
from conformance.engine.cache.remote_results import RemoteResults
from conformance.engine.cache.results import ResultCache
from conformance.engine.input_files import READ_FILES, encode_inputs
from conformance.engine.job import FinishedJob, Job
from conformance.engine.plan import Plan
from conformance.engine.record_judge import Judge
from conformance.engine.runner import Run
from conformance.engine.runs.directory import RunDirectory
from conformance.model.outcome import Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from conformance.remote_cache.cache import RemoteCache
from conformance.remote_cache.object_store import _open
from tests.engine.worlds import Script, bad, good, job, planned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Machine:
    """A checkout with a local cache of its own.

    Attributes:
        folder: Folder of everything on this machine.
        url: URL of the shared cache.
        write: Whether the machine writes to it.
    """

    def __init__(
        self, folder: Path, url: str, patch: pytest.MonkeyPatch, *, write: bool = False
    ) -> None:
        self.folder, self.url, self.write, self._patch = folder, url, write, patch
        self.jobs = [job(folder / "cases", name) for name in ("one", "two")]
        self.script = Script()
        self.runs = 0
        self.remote = RemoteCache(url, write=write)

    def run(self, *, fresh: bool = False, shared: bool = True) -> list[Record]:
        """Run the jobs in a new directory; `asked` has the executed cases."""
        # Blobs of runs are first looked up in the user's cache folder.
        self._patch.setenv("CONFORMANCE_CACHE", str(self.folder / "cache"))
        self.script.asked.clear()
        self.runs += 1
        self.directory = RunDirectory(self.folder / f"run{self.runs}")
        self.remote = RemoteCache(self.url, write=self.write)
        remote = RemoteResults(self.remote, self.folder / "cache", kit_hash="k", host_hash="h")
        cache = ResultCache(self.folder / "cache", fresh=fresh, remote=remote if shared else None)
        plan = Plan(jobs=tuple(self.jobs), exclusions=(), cells=(self.jobs[0].planned,))
        judge = Judge(self.directory.blobs)
        return Run(plan, self.directory, self.script, cache, judge).execute()

    @property
    def asked(self) -> list[str]:
        """Names of the cases that the last run executed."""
        return self.script.asked

    def clear_files(self) -> None:
        """Remove the entries of case files from the shared cache."""
        self._remove("v1/actions/files")

    def clear_contents(self) -> None:
        """Remove all contents from the shared cache."""
        self._remove("v1/content")

    def _remove(self, prefix: str) -> None:
        store = _open(self.url, write=True)
        for page in obstore.list(store, prefix):
            obstore.delete(store, [one["path"] for one in page])


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine that has written its results."""
    machine = Machine(tmp_path / "a", f"file://{tmp_path}/shared", monkeypatch, write=True)
    machine.run()
    return machine


@pytest.fixture
def reader(writer: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Another machine, with an empty local cache and a checkout at another place."""
    return Machine(tmp_path / "b", writer.url, monkeypatch)


def verdicts(records: Sequence[Record]) -> list[tuple[str, Verdict]]:
    """Return the verdict of each case."""
    return [(one.case, one.verdict) for one in records]


def list_local_blobs(folder: BlobStore) -> set[str]:
    """Return the names of the blobs in a folder."""
    return {path.name for path in folder.folder.glob("[0-9a-f]*")}


def test_a_second_machine_runs_nothing(writer: Machine, reader: Machine) -> None:
    """It fetches the judged records and no artifact."""
    first, second = writer.run(), reader.run()
    assert reader.asked == []
    assert verdicts(second) == verdicts(first)
    assert all(record.cached for record in second)
    assert list_local_blobs(reader.directory.blobs) == set()
    assert reader.directory.read_records() == second


def test_artifacts_come_when_they_are_read(reader: Machine) -> None:
    """Into the run, and into the local cache for the next one."""
    (record, _) = reader.run()
    name = record.artifacts["value"]
    data = reader.directory.blobs.get(name)
    assert list_local_blobs(reader.directory.blobs) == {name}
    reader.clear_contents()
    reader.run()
    assert reader.directory.blobs.get(name) == data


def test_the_next_run_needs_no_shared_entry(reader: Machine) -> None:
    """The judged records are kept locally."""
    reader.run()
    reader.clear_files()
    reader.run()
    assert reader.asked == []
    # Without the shared cache their artifacts could not be read.
    reader.run(shared=False)
    assert reader.asked == ["one", "two"]


def test_an_artifact_that_was_pruned_is_one_clear_error(reader: Machine) -> None:
    """It names the remedy, which works."""
    (record, _) = reader.run()
    reader.clear_contents()
    with pytest.raises(CorruptBlobError, match=r"no intact copy of it; run its job again with"):
        reader.directory.blobs.get(record.artifacts["value"])
    reader.run(fresh=True)
    assert reader.asked == ["one", "two"]
    assert reader.directory.blobs.get(record.artifacts["value"])


def test_records_of_jobs_are_taken_if_a_file_changed(reader: Machine) -> None:
    """Only the changed case runs."""
    first, second = reader.jobs
    reader.jobs = [first, replace(second, case=replace(second.case, content_hash="i" * 8))]
    assert len(reader.run()) == 2
    assert reader.asked == ["two"]


def test_records_without_their_artifacts_run_again(reader: Machine) -> None:
    """Judging needs the values."""
    reader.clear_files()
    reader.clear_contents()
    reader.run()
    assert reader.asked == ["one", "two"]


def test_another_cell_or_kit_shares_nothing(reader: Machine) -> None:
    """The keys differ."""
    cell = replace(planned(), cell_hash="d" * 8)
    reader.jobs = [replace(one, planned=cell) for one in reader.jobs]
    reader.run()
    assert reader.asked == ["one", "two"]


def test_a_record_of_another_job_is_a_miss(writer: Machine, reader: Machine) -> None:
    """Although its entry is intact: a writer may store anything under any key."""
    cache = RemoteCache(writer.url, write=True)
    results = RemoteResults(cache, writer.folder / "cache", kit_hash="k", host_hash="h")
    one, two = reader.jobs
    record = cache.get_action(results._make_job_key(two))
    assert record is not None
    for key in (results._make_job_key(one), results._make_file_key(reader.jobs)):
        cache.remove_action(key)
        assert RemoteCache(writer.url, write=True).put_action(key, record)
    reader.run()
    assert reader.asked == ["one"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "no value"])
def test_a_hostile_record_runs_its_job(writer: Machine, reader: Machine, name: str) -> None:
    """One that names a file, or a content that is no value."""
    cache = RemoteCache(writer.url, write=True)
    results = RemoteResults(cache, writer.folder / "cache", kit_hash="k", host_hash="h")
    one = reader.jobs[0]
    key = results._make_job_key(one)
    record = msgspec.json.decode(cache.get_action(key) or b"", type=Record)
    if name == "no value":
        name = hash_blob(b"no value")
        assert cache.put_content(name, b"no value")
    cache.remove_action(key)
    hostile = msgspec.json.encode(replace(record, artifacts={"value": name}))
    assert RemoteCache(writer.url, write=True).put_action(key, hostile)
    reader.clear_files()
    reader.run()
    assert reader.asked == ["one"]


def test_what_the_local_cache_rejects_is_not_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes, and crashes that may be the host's fault."""
    url = f"file://{tmp_path}/shared"
    writer = Machine(tmp_path / "a", url, monkeypatch, write=True)

    def noted(asked: Job) -> FinishedJob:
        return replace(good(asked), notes=("took 58.0 s, near its timeout of 60 s",))

    writer.script.answers = {"one": [noted], "two": [lambda j: bad(j, Outcome.TIMED_OUT)]}
    writer.run()
    reader = Machine(tmp_path / "b", url, monkeypatch)
    reader.run()
    assert reader.asked[:2] == ["one", "two"]


def test_a_local_result_is_shared_by_a_later_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that is introduced later gets what the writer has cached before."""
    url = f"file://{tmp_path}/shared"
    writer = Machine(tmp_path / "a", url, monkeypatch, write=True)
    writer.run(shared=False)
    writer.run()
    assert writer.asked == []
    reader = Machine(tmp_path / "b", url, monkeypatch)
    (record, _) = reader.run()
    assert reader.asked == []
    assert reader.directory.blobs.get(record.artifacts["value"])


def test_a_damaged_entry_costs_its_file(
    writer: Machine, reader: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """The records of its jobs are taken, and the next writer replaces it."""
    (file,) = (writer.folder.parent / "shared" / "v1" / "actions" / "files").rglob("?" * 32)
    file.write_bytes(file.read_bytes()[:-3])
    reader.run()
    assert reader.asked == []
    assert "2 of 2 jobs from file:" in caplog.text
    assert "1 damaged entry ignored" in caplog.text
    again = Machine(writer.folder.parent / "c", writer.url, writer._patch, write=True)
    again.run()
    last = Machine(writer.folder.parent / "d", writer.url, writer._patch)
    last.run()
    assert last.remote.damaged == {}
    assert list_local_blobs(last.directory.blobs) == set()


def test_a_location_is_that_of_this_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error points into the case file, wherever it is."""
    url = f"file://{tmp_path}/shared"

    def fail(asked: Job) -> FinishedJob:
        where = f"{asked.case.file}:9"
        error = ErrorInfo(type="ValueError", message="x", signature="ValueError: x", where=where)
        return FinishedJob(job=asked, outcome=Outcome.RAISED, stage=Stage.TRACE, error=error)

    writer = Machine(tmp_path / "a", url, monkeypatch, write=True)
    reader = Machine(tmp_path / "b", url, monkeypatch)
    for machine in (writer, reader):
        machine.script.answers = {"one": [fail], "two": [fail]}
        record, _ = machine.run()
        assert record.error is not None
        assert record.error.where == f"{machine.jobs[0].case.file}:9"
    assert reader.asked == []


@pytest.mark.parametrize("present", [True, False])
def test_files_that_a_job_read_must_exist_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: bool
) -> None:
    """A job that read only missing files may read others in another checkout."""
    url = f"file://{tmp_path}/shared"
    read = tmp_path / "read.txt"
    read.write_text("text")
    inputs = {str(tmp_path / "missing"): ""}
    if present:
        inputs[str(read)] = "982d9e3eb996f559e633f4d194def376"

    def answer(asked: Job) -> FinishedJob:
        done = good(asked)
        return replace(done, blobs={**done.blobs, READ_FILES: encode_inputs(inputs)})

    writer = Machine(tmp_path / "a", url, monkeypatch, write=True)
    reader = Machine(tmp_path / "b", url, monkeypatch)
    for machine in (writer, reader):
        machine.script.answers = {"one": [answer], "two": [answer]}
        machine.run()
    assert reader.asked == ([] if present else ["one", "two"])
    if present:
        read.write_text("other")
        reader.run()
        assert reader.asked == ["one", "two"]


def test_a_job_whose_artifacts_a_node_has_uploaded(writer: Machine, tmp_path: Path) -> None:
    """Only its record is stored; another machine takes it, and its artifacts come when read."""
    remote = RemoteResults(writer.remote, tmp_path / "c" / "cache", kit_hash="k", host_hash="h")
    cache = ResultCache(tmp_path / "c" / "cache", remote=remote)
    far, content = job(tmp_path, "far"), b"an artifact"
    writer.remote.put_content(hash_blob(content), content)
    blobs = BlobStore(tmp_path / "c" / "blobs")
    record = Record(
        case=far.case.id, cell=far.planned.cell.id, case_hash=far.case.content_hash,
        cell_hash=far.planned.cell_hash, outcome=Outcome.OK, stage=Stage.EXECUTE,
        artifacts={"jaxpr": hash_blob(content)},
    )  # fmt: skip
    # Without an origin the artifacts are nowhere.
    assert not cache.put(far, record, blobs)
    blobs.write_origin(writer.url)
    assert cache.put(far, record, blobs)
    assert not cache.blobs.has(hash_blob(content))
    writer.remote.flush()
    other = RemoteResults(
        RemoteCache(writer.url), tmp_path / "d" / "cache", kit_hash="k", host_hash="h"
    )
    taken = ResultCache(tmp_path / "d" / "cache", remote=other).take(far, BlobStore(tmp_path / "d"))
    assert taken is not None
    assert replace(taken, cached=False) == record
