"""A node: what it runs, what it refuses, and how its artifacts reach the run."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from conformance.cluster.content import get_token_file, remove_old_entries
from conformance.cluster.messages import (
    BatchEnd,
    BatchRequest,
    BatchUpdate,
    ContentPlace,
    decode,
)
from conformance.cluster.node import Node
from conformance.cluster.requests import RequestMaker
from conformance.engine.cache.blobs import BLOBS, BlobStore, hash_blob
from conformance.engine.local_executor import CellWorker
from conformance.engine.record_judge import make_record
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome
from tests.workbench import OLD, Bench, lock_of, make_test_cache, planned_cell, source_of

if TYPE_CHECKING:
    from conformance.engine.job import FinishedJob, Job
    from conformance.model.record import Record

ELSEWHERE = ContentPlace(folder="/nowhere", token="t" * 32)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A folder of case files."""
    made = Bench.__new__(Bench)
    made.planned, made.folder = planned_cell(OLD), tmp_path / "cases"
    return made


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node with an empty cache folder."""
    return Node(make_test_cache(tmp_path / "cache"))


def request_of(*jobs: Job, content: ContentPlace = ELSEWHERE) -> BatchRequest:
    """Return the request of a batch."""
    planned = jobs[0].planned
    locks = {planned.cell.id: lock_of(planned.cell)}
    return RequestMaker("topic", locks, content).make_request("key", jobs)


def run(node: Node, request: BatchRequest) -> BatchUpdate:
    """Return the last update of a batch whose artifacts travel with it."""
    sent: list[bytes] = []
    update = node.run(request, sent.append)
    node.close()
    assert sent == []
    assert update is not None
    return update


def end_of(update: BatchUpdate) -> BatchEnd:
    """Return the end of a batch."""
    assert update.end is not None
    return update.end


@pytest.mark.cell
def test_artifacts_travel_if_the_run_cannot_read_them(node: Node, bench: Bench) -> None:
    """Each under the hash that its record has."""
    update = run(node, request_of(bench.job("return np.arange(3)")))
    (report,) = update.jobs
    assert report.record.outcome is Outcome.OK
    assert {hash_blob(data) for data in report.artifacts.values()} == set(
        report.record.artifacts.values()
    )
    assert end_of(update).started == 1


@pytest.mark.cell
def test_artifacts_are_put_into_a_folder_that_the_run_sees(
    node: Node, bench: Bench, tmp_path: Path
) -> None:
    """Then updates are events, and carry no artifact."""
    content = ContentPlace(folder=str(tmp_path / "cache"), token="t" * 32)
    file = get_token_file(content)
    file.parent.mkdir(parents=True)
    file.write_text(content.token)
    sent: list[bytes] = []
    assert node.run(request_of(bench.job("return 1"), content=content), sent.append) is None
    node.close()
    (report,) = (one for update in sent for one in decode(update, BatchUpdate).jobs)
    assert report.artifacts == {}
    blobs = BlobStore(tmp_path / "cache" / BLOBS)
    assert all(blobs.get(name) for name in report.record.artifacts.values())


@pytest.mark.cell
def test_artifacts_are_uploaded_to_the_shared_cache(
    node: Node, bench: Bench, tmp_path: Path
) -> None:
    """If the run writes it and does not share files with the node."""
    (tmp_path / "shared").mkdir()
    content = msgspec.structs.replace(ELSEWHERE, url=f"file://{tmp_path / 'shared'}")
    update = run(node, request_of(bench.job("return 1"), content=content))
    (report,) = update.jobs
    assert (report.artifacts, report.uploaded) == ({}, True)
    blobs = BlobStore(tmp_path / "other")
    blobs.write_origin(content.url)
    assert all(blobs.get(name) for name in report.record.artifacts.values())


@pytest.mark.cell
def test_case_files_are_sent_with_their_helpers(node: Node, bench: Bench) -> None:
    """A node that does not see them writes them to its cache."""
    (bench.folder / "family").mkdir(parents=True)
    helper = bench.folder / "family" / "_helpers.py"
    helper.write_text("NUMBER = 7\n")
    (job,) = bench.jobs(source_of("return NUMBER", top="from ._helpers import NUMBER\n"))
    request = request_of(job)
    helper.unlink()
    job.case.file.unlink()
    (report,) = run(node, request).jobs
    assert report.record.outcome is Outcome.OK, report.record.error


def test_generated_cases_need_the_files_of_the_run(node: Node, bench: Bench) -> None:
    """They call the user's code, which is not sent."""
    job = bench.job("return 1")
    generated = replace(job, case=replace(job.case, home=bench.folder))
    request = request_of(generated)
    job.case.file.unlink()
    assert end_of(run(node, request)).refusal.startswith("does not see the functions and scripts")


def test_an_interpreter_must_exist(node: Node, bench: Bench) -> None:
    """The cell of a path is run only where that path is."""
    request = request_of(bench.job("return 1"))
    cell = msgspec.structs.replace(request.cell, release="path:/nowhere/bin/python")
    end = end_of(run(node, msgspec.structs.replace(request, cell=cell)))
    assert end.refusal == "has no /nowhere/bin/python"


def test_an_accelerator_must_exist(
    node: Node, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the jobs go to a node that has one."""
    monkeypatch.setattr("conformance.cluster.node.find_missing_accelerator", lambda _: "no GPU")
    end = end_of(run(node, request_of(bench.job("return 1"))))
    assert (end.refusal, end.lacks_accelerator) == ("no GPU", True)


def test_a_lock_without_wheels_for_the_node_is_refused(node: Node, bench: Bench) -> None:
    """With the hosts that it has wheels for."""
    request = request_of(bench.job("return 1"))
    text = request.cell.lock.replace("linux-x86_64", "plan9-mips").replace("linux-aarch64", "")
    cell = msgspec.structs.replace(request.cell, lock=text)
    end = end_of(run(node, msgspec.structs.replace(request, cell=cell)))
    assert "no wheels for" in end.refusal


def test_a_cell_that_cannot_be_provided_is_refused(
    node: Node, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another node may have the Python, the network or the disk."""

    def fail(*_: object, **__: object) -> None:
        raise InfrastructureError("no network")

    monkeypatch.setattr("conformance.engine.workers.preparation.provision", fail)
    end = end_of(run(node, request_of(bench.job("return 1"))))
    assert end.refusal == "no network"
    assert not end.broken


def test_a_node_without_a_disk_is_broken(tmp_path: Path, bench: Bench) -> None:
    """It runs nothing more, and nothing of the batch is lost."""
    (tmp_path / "file").write_text("")
    node = Node(tmp_path / "file")
    request = request_of(bench.job("return 1"))
    Path(next(iter(request.files))).unlink()
    end = end_of(run(node, request))
    assert end.broken


@pytest.mark.cell
def test_an_abandoned_batch_ends_after_its_running_job(node: Node, bench: Bench) -> None:
    """Its other jobs have no result."""
    request = request_of(*[bench.job("return 1")] * 3)
    node.abandon("key")
    assert len(run(node, request).jobs) == 1


@pytest.mark.cell
def test_the_next_job_runs_while_one_is_recorded(
    node: Node, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both take processor time, and a batch has only one slot."""
    second_started = threading.Event()
    waited = []

    def run_job(worker: CellWorker, job: Job) -> FinishedJob:
        if job.case.topic == "second":
            second_started.set()
        return run_original(worker, job)

    def record(*arguments: Any) -> Record:
        waited.append(second_started.wait(20.0))
        return make_record(*arguments)

    run_original = CellWorker.run
    monkeypatch.setattr(CellWorker, "run", run_job)
    monkeypatch.setattr("conformance.cluster.content.make_record", record)
    jobs = [bench.job("return 1", topic=topic) for topic in ("first", "second")]
    update = run(node, request_of(*jobs))
    assert waited == [True, True]
    assert [report.record.case for report in update.jobs] == [job.case.id for job in jobs]


@pytest.mark.cell
def test_a_disk_that_fills_up_loses_no_job(
    node: Node, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs with a result keep it; the others go to another node."""
    made = iter([make_record])

    def record(*arguments: Any) -> Record:
        write = next(made, None)
        if write is None:
            raise InfrastructureError("/cache: no space left on device")
        return write(*arguments)

    monkeypatch.setattr("conformance.cluster.content.make_record", record)
    update = run(node, request_of(*[bench.job("return 1")] * 3))
    assert len(update.jobs) == 1
    assert end_of(update).broken
    assert end_of(update).refusal == "/cache: no space left on device"


def test_old_case_files_and_tokens_are_removed(tmp_path: Path) -> None:
    """Those of the last days stay."""
    for name in ("old", "new"):
        (tmp_path / name / "family").mkdir(parents=True)
        (tmp_path / f"{name}-token").touch()
    for name in ("old", "old-token"):
        os.utime(tmp_path / name, (0, 0))
    remove_old_entries(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "new-token"]
