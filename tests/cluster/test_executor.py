"""The Dask executor: every job ends once, with any end of a worker, a nanny or the scheduler."""

from __future__ import annotations

import shutil
import textwrap
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import psutil
import pytest

from conformance.cache_folder import VARIABLE
from conformance.cluster.connection import close_connections
from conformance.cluster.executor import DaskExecutor
from conformance.cluster.nodes import find_host_hash
from conformance.cluster.options import ClusterOptions
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.cache.results import hash_host
from conformance.engine.finished_jobs import FinishedJobExecutor
from conformance.engine.record_judge import execute_jobs, make_record
from conformance.engine.workers.messages import NOTE
from conformance.errors import InfrastructureError
from conformance.fuzz.batches import BatchExecutor, ProgramRun
from conformance.fuzz.comparison import to_array
from conformance.model.outcome import Outcome
from tests.fuzz.test_batches import program as make_program
from tests.workbench import HEAD, OLD, Bench, lock_of, make_test_cache, planned_cell, source_of

from .processes import Cluster

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from conformance.engine.job import Job
    from conformance.model.record import Record

ROOT = Path(__file__).resolve().parents[2]
KILLER = """
    # The Dask worker is an ancestor of the job.
    pid = os.getpid()
    while b"multiprocessing" not in open(f"/proc/{pid}/cmdline", "rb").read():
        pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGKILL)
    time.sleep(5)
    return 0
"""
"""The body of a case that ends the Dask worker it runs on."""
PROGRAM = """
def double(x):
    return x * 2
return Program(double, (np.ones(3, "float32"),))
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of two workers."""
    cache = make_test_cache(tmp_path / "cache")
    made = Cluster(tmp_path, cache)
    try:
        made.start_scheduler()
        for _ in range(2):
            made.start_worker()
        yield made
    finally:
        close_connections()
        made.close()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A folder of case files whose jobs an executor is to run."""
    made = Bench.__new__(Bench)
    made.planned, made.folder = planned_cell(OLD), tmp_path / "cases"
    return made


PATIENCE = 200.0
"""Seconds for a worker to join: on a busy host its two processes take a minute to start."""


def make_jobs(bench: Bench, *bodies: str) -> list[Job]:
    """Return the jobs of cases with these bodies, in one file."""
    cases = (
        f"@probe()\ndef case{n}(env):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
        for n, body in enumerate(bodies)
    )
    return bench.jobs(f"{HEAD}\n{''.join(cases)}")


def quick_jobs(bench: Bench, count: int, seconds: float = 0.0) -> list[Job]:
    """Return jobs that return their number."""
    return make_jobs(bench, *(f"time.sleep({seconds})\nreturn {n}" for n in range(count)))


def waiting_jobs(bench: Bench, count: int, go: Path) -> list[Job]:
    """Return jobs that return their number: all but the first once a file is there."""
    wait = f"while not os.path.exists({str(go)!r}): time.sleep(0.05)"
    jobs = make_jobs(bench, *(f"{wait if n else ''}\nreturn {n}" for n in range(count)))
    return [replace(job, case=replace(job.case, timeout=2 * PATIENCE)) for job in jobs]


@contextmanager
def created_after_a_warning(go: Path, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Create a file as soon as something is logged, however long a worker takes to join."""

    def wait() -> None:
        end = time.monotonic() + PATIENCE
        while not caplog.records and time.monotonic() < end:
            time.sleep(0.05)
        go.touch()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


def make_executor(cluster: Cluster) -> DaskExecutor:
    """Return an executor on a cluster."""
    place = planned_cell(OLD)
    options = ClusterOptions(scheduler=cluster.address, slots=1, cache=cluster.cache)
    locks = {place.cell.id: lock_of(place.cell)}
    return DaskExecutor(options, locks, lambda _: 0.5)


def run(cluster: Cluster, jobs: list[Job]) -> list[Record]:
    """Return the records of jobs, in the order they ended."""
    blobs = BlobStore(cluster.folder / "blobs")
    return [one.record for one in execute_jobs(make_executor(cluster), jobs, blobs)]


def count_outcomes(records: list[Record]) -> Counter[Outcome]:
    """Return the number of records by outcome; each job has one."""
    assert len({(record.case, record.cell) for record in records}) == len(records)
    return Counter(record.outcome for record in records)


@pytest.mark.cell
def test_records_are_those_of_a_run_on_this_host(cluster: Cluster, bench: Bench) -> None:
    """Equal in every field except times and memory."""
    jobs = make_jobs(bench, "return np.arange(3) / 2", "raise ValueError('no')")
    jobs += bench.jobs(source_of(PROGRAM, "program()"), topic="program")
    far = {record.case: record for record in run(cluster, jobs)}
    with Bench(bench.planned, bench.folder) as here:
        blobs = BlobStore(cluster.folder / "here")
        near = {job.case.id: make_record(here.worker.run(job), blobs) for job in jobs}
    for case, record in near.items():
        expected = replace(record, seconds={}, max_rss_bytes=0)
        assert replace(far[case], seconds={}, max_rss_bytes=0) == expected


@pytest.mark.long
@pytest.mark.cell
def test_generated_programs_have_their_results(cluster: Cluster, bench: Bench) -> None:
    """As on this host, also beside one that ends its process."""
    programs = [make_program("jnp.sin(x0)"), make_program("__import__('os').abort()")]
    programs += [make_program("jnp.no_such_function(x0)"), make_program("x0 * 2")]
    work = {"here": (bench.planned, [ProgramRun(program=one) for one in programs])}
    blobs = BlobStore(cluster.folder / "blobs")
    executor = FinishedJobExecutor(make_executor(cluster), blobs)
    results = [found["jit"] for found in BatchExecutor(executor).run(work)["here"]]
    assert [one.outcome for one in results] == ["ok", "crashed", "raised", "ok"]
    assert "no_such_function" in results[2].message
    assert list(to_array(results[3].leaves[0])) == [2, 4, 6]


@pytest.mark.long
@pytest.mark.cell
def test_a_secret_that_a_run_passes_is_masked(cluster: Cluster, bench: Bench) -> None:
    """The worker itself does not have it: nothing that it returns or stores shows it."""
    value = "hunter2hunter2"
    bench.planned = replace(bench.planned, passed={"MY_TOKEN": value})
    records = run(cluster, make_jobs(bench, "print(os.environ['MY_TOKEN'])\n"
                                     "raise ValueError(os.environ['MY_TOKEN'])",
                                     "return os.environ['MY_TOKEN']"))  # fmt: skip
    assert count_outcomes(records) == {Outcome.RAISED: 1, Outcome.OK: 1}
    assert value not in str(records)
    assert all(record.notes == (NOTE,) for record in records)
    files = [file for file in cluster.folder.rglob("*") if file.is_file()]
    assert not [file for file in files if value.encode() in file.read_bytes()]


def test_results_are_cached_for_the_processor_of_the_workers(cluster: Cluster) -> None:
    """Here it is the processor of the run; without a worker as well."""
    assert find_host_hash(cluster.address) == hash_host()


@pytest.mark.cell
def test_a_killed_worker_loses_no_job(cluster: Cluster, bench: Bench) -> None:
    """Its jobs run on another one; none has two results."""
    records = []
    blobs = BlobStore(cluster.folder / "blobs")
    jobs = quick_jobs(bench, 12, 0.3)
    for one in execute_jobs(make_executor(cluster), jobs, blobs):
        records.append(one.record)
        if len(records) == 2:
            for worker in cluster.find_workers():
                worker.kill()
    assert count_outcomes(records) == {Outcome.OK: 12}


@pytest.mark.long
@pytest.mark.cell
def test_a_killed_nanny_loses_no_job(cluster: Cluster, bench: Bench) -> None:
    """Its worker ends with it, or goes on."""
    records = []
    blobs = BlobStore(cluster.folder / "blobs")
    for one in execute_jobs(make_executor(cluster), quick_jobs(bench, 12, 0.3), blobs):
        records.append(one.record)
        if len(records) == 2:
            cluster.processes[1].kill()
    assert count_outcomes(records) == {Outcome.OK: 12}


@pytest.fixture
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler, started later, that gives up a silent worker soon."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "8s")


@pytest.mark.long
@pytest.mark.cell
@pytest.mark.usefixtures("_short_patience")
def test_workers_that_fall_silent_lose_no_job(cluster: Cluster, bench: Bench) -> None:
    """As with a network that is cut: the scheduler gives them up, and their jobs run elsewhere."""
    records = []
    stopped: list[psutil.Process] = []
    blobs = BlobStore(cluster.folder / "blobs")
    try:
        for one in execute_jobs(make_executor(cluster), quick_jobs(bench, 12, 0.3), blobs):
            records.append(one.record)
            if len(records) == 2:
                stopped = cluster.find_workers()
                for worker in stopped:
                    worker.suspend()
                cluster.start_worker()
    finally:
        for worker in stopped:
            with suppress(psutil.NoSuchProcess):  # its nanny has replaced it
                worker.kill()
    assert count_outcomes(records) == {Outcome.OK: 12}


@pytest.mark.long
@pytest.mark.cell
def test_only_the_job_that_ends_workers_is_blamed(cluster: Cluster, bench: Bench) -> None:
    """After four workers it has crashed; its neighbours have their results."""
    records = run(cluster, make_jobs(bench, "return 1", KILLER, "return 2", "return 3"))
    assert count_outcomes(records) == {Outcome.OK: 3, Outcome.CRASHED: 1}
    (crashed,) = (record for record in records if record.outcome is Outcome.CRASHED)
    assert crashed.error is not None
    assert crashed.error.message.startswith("4 workers of the cluster ended with this job")


@pytest.mark.cell
def test_a_killed_scheduler_ends_the_run(cluster: Cluster, bench: Bench) -> None:
    """With one clear error; what has a record keeps it."""
    blobs = BlobStore(cluster.folder / "blobs")
    found = execute_jobs(make_executor(cluster), quick_jobs(bench, 12, 0.5), blobs)
    next(found)
    cluster.processes[0].kill()
    with pytest.raises(InfrastructureError, match="the connection to it is lost"):
        list(found)


@pytest.mark.long
@pytest.mark.cell
def test_a_worker_with_another_harness_is_refused(
    cluster: Cluster, bench: Bench, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """By name; its jobs run elsewhere."""
    other = tmp_path / "other"
    shutil.copytree(ROOT / "conformance", other / "conformance")
    with (other / "conformance" / "wording.py").open("a") as module:
        module.write("# another version\n")
    cluster.start_worker(PYTHONPATH=str(other))
    with created_after_a_warning(tmp_path / "go", caplog):
        records = run(cluster, waiting_jobs(bench, 4, tmp_path / "go"))
    assert count_outcomes(records) == {Outcome.OK: 4}
    (refusal,) = {record.message for record in caplog.records}
    assert "not used: has jax-conformance" in refusal


@pytest.mark.long(keep=1)
@pytest.mark.cell
@pytest.mark.parametrize("joins_later", [False, True])
def test_a_worker_without_the_harness_is_refused(
    cluster: Cluster,
    bench: Bench,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    joins_later: bool,
) -> None:
    """By name, whenever it joins; it stays a worker of the cluster, and its jobs run elsewhere."""
    (tmp_path / "empty" / "conformance").mkdir(parents=True)
    (tmp_path / "empty" / "conformance" / "__init__.py").touch()
    if not joins_later:
        cluster.start_worker(PYTHONPATH=str(tmp_path / "empty"))
        time.sleep(5)
    records = []
    blobs = BlobStore(cluster.folder / "blobs")
    jobs = waiting_jobs(bench, 6, tmp_path / "go")
    with created_after_a_warning(tmp_path / "go", caplog):
        for one in execute_jobs(make_executor(cluster), jobs, blobs):
            records.append(one.record)
            if len(records) == 1 and joins_later:
                cluster.start_worker(PYTHONPATH=str(tmp_path / "empty"))
    assert count_outcomes(records) == {Outcome.OK: 6}
    (refusal,) = {record.message for record in caplog.records}
    assert refusal.endswith("not used: ModuleNotFoundError: No module named 'conformance.cluster'")
    assert len(cluster.find_workers()) == 3


@pytest.mark.long
@pytest.mark.cell
def test_a_worker_without_a_cache_folder_is_refused(
    cluster: Cluster, bench: Bench, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Such as that of a full disk; its jobs run elsewhere."""
    (tmp_path / "file").touch()
    cluster.start_worker(**{VARIABLE: str(tmp_path / "file" / "cache")})
    with created_after_a_warning(tmp_path / "go", caplog):
        records = run(cluster, waiting_jobs(bench, 4, tmp_path / "go"))
    assert count_outcomes(records) == {Outcome.OK: 4}
    (refusal,) = {record.message for record in caplog.records}
    assert "not used: cache" in refusal
    assert "set CONFORMANCE_CACHE to a writable folder" in refusal


@pytest.mark.cell
def test_an_interrupted_run_leaves_nothing_running(
    cluster: Cluster, bench: Bench, tmp_path: Path
) -> None:
    """The batch ends after the running job; the next run finds the workers free."""
    started = tmp_path / "started"
    started.mkdir()
    body = "open({!r}, 'w').close()\ntime.sleep(0.5)\nreturn 1"
    jobs = make_jobs(bench, *(body.format(str(started / str(n))) for n in range(40)))
    blobs = BlobStore(cluster.folder / "blobs")
    found = execute_jobs(make_executor(cluster), jobs, blobs)
    next(found)
    cast("Generator[object]", found).close()
    assert count_outcomes(run(cluster, quick_jobs(bench, 2))) == {Outcome.OK: 2}
    count = len(list(started.iterdir()))
    assert count < 40
    time.sleep(1)
    assert len(list(started.iterdir())) == count


@pytest.mark.cell
def test_a_cluster_of_refused_workers_ends_the_run(
    tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason of each."""
    monkeypatch.setattr("conformance.cluster.dispatcher.REFUSED_WAIT", 1.0)
    (tmp_path / "file").touch()
    made = Cluster(tmp_path, make_test_cache(tmp_path / "cache"))
    try:
        made.start_scheduler()
        made.start_worker(**{VARIABLE: str(tmp_path / "file" / "cache")})
        with pytest.raises(InfrastructureError, match=r"no worker .* cannot be written"):
            run(made, quick_jobs(bench, 1))
    finally:
        close_connections()
        made.close()
