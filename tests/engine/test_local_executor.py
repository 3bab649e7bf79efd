"""The local executor: every job ends once, with any end of its worker."""

from __future__ import annotations

import textwrap
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

import psutil
import pytest

from conformance.cache_folder import cache_root
from conformance.cells.accelerators import DeviceLock
from conformance.engine import local_executor
from conformance.engine.job import FinishedJob, Job
from conformance.engine.local_executor import ONCE, TWICE, LocalExecutor
from conformance.engine.workers.client import Worker, WorkerDiedError, WorkerKilledError
from conformance.engine.workers.preparation import Provider, find_identity_mismatch
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome, Stage
from tests.workbench import OLD, Bench, leaf_of, lock_of, planned_cell, python_of

if TYPE_CHECKING:
    from conformance.engine.job import PlannedCell
    from conformance.engine.local_executor import OpenWorker


class Opener:
    """Starts workers and remembers them."""

    def __init__(self) -> None:
        self.opened: list[Worker] = []

    def __call__(self, planned: PlannedCell) -> Worker:
        """Start a worker of a cell."""
        self.opened.append(Worker(python_of(planned)))
        return self.opened[-1]

    @property
    def processes(self) -> list[psutil.Process]:
        """The workers' processes that still run, and theirs."""
        mine = {worker._process.pid for worker in self.opened}
        own = [child for child in psutil.Process().children() if child.pid in mine]
        return [*own, *(inner for child in own for inner in child.children(recursive=True))]


@pytest.fixture
def opener() -> Opener:
    """Function that opens the workers of an executor."""
    return Opener()


@pytest.fixture
def idle(tmp_path: Path) -> Bench:
    """A folder of case files whose jobs an executor is to run."""
    bench = Bench.__new__(Bench)
    bench.planned, bench.folder = planned_cell(OLD), tmp_path
    return bench


def failing(planned: PlannedCell) -> Worker:
    """Raise the error of a cell that cannot start."""
    raise InfrastructureError(f"{planned.cell.id}: no network")


def some_jobs(idle: Bench, count: int) -> list[Job]:
    """Return jobs that are never run."""
    return [idle.job("return 1", topic=f"t{n}") for n in range(count)]


def named(job: Job, cell_hash: str, devices: int) -> Job:
    """Return a job in another cell."""
    cell = replace(job.planned.cell, devices=devices)
    return Job(case=job.case, planned=replace(job.planned, cell=cell, cell_hash=cell_hash))


def test_a_cell_that_cannot_start_is_infra_for_all_its_jobs(idle: Bench) -> None:
    """Each has the reason, and starting is tried once."""
    tries: list[PlannedCell] = []

    def opening(planned: PlannedCell) -> Worker:
        tries.append(planned)
        return failing(planned)

    found = list(
        LocalExecutor(opening, slots=2, device_lock=DeviceLock(idle.folder)).run(some_jobs(idle, 5))
    )
    assert {(f.outcome, f.stage) for f in found} == {(Outcome.INFRA, Stage.PROVISION)}
    assert all(f.error is not None and "no network" in f.error.message for f in found)
    assert (len(found), len(tries)) == (5, 1)


def test_jobs_that_need_more_packages_come_last(idle: Bench) -> None:
    """Their imports stay in the server, and every later fork copies them."""
    jobs = some_jobs(idle, 3)
    jobs[0] = replace(jobs[0], case=replace(jobs[0].case, requires=("flax>=0.10",)))
    ran = list(LocalExecutor(failing, slots=1, device_lock=DeviceLock(idle.folder)).run(jobs))
    assert [f.job for f in ran] == [*jobs[1:], jobs[0]]


def test_an_internal_error_ends_the_run(idle: Bench) -> None:
    """An exception that is no user's error ends the run with itself."""

    def opening(planned: PlannedCell) -> Worker:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(
            LocalExecutor(opening, slots=1, device_lock=DeviceLock(idle.folder)).run(
                some_jobs(idle, 2)
            )
        )


def test_no_jobs_start_no_worker(idle: Bench) -> None:
    """No jobs, no worker."""
    assert list(LocalExecutor(failing, slots=2, device_lock=DeviceLock(idle.folder)).run([])) == []


def test_a_mismatch_names_the_first_package_that_differs(idle: Bench) -> None:
    """A missing package or another version; further packages are ignored."""
    planned = replace(idle.planned, versions={"jax": "0.5.3", "numpy": "2.0"})
    assert find_identity_mismatch(planned, {"jax": "0.5.3", "numpy": "2.0", "extra": "1"}) == ""
    assert "has jax 0.6.0, expected 0.5.3" in find_identity_mismatch(planned, {"jax": "0.6.0"})
    assert "has numpy none, expected 2.0" in find_identity_mismatch(planned, {"jax": "0.5.3"})


class Scripted:
    """A worker whose jobs end as a script has it; an exception is raised."""

    alive = True
    identity: ClassVar[dict[str, str]] = {}

    def __init__(self, answers: list[FinishedJob | Exception]) -> None:
        self.answers = answers

    def run(self, _: Job) -> FinishedJob:
        """Return the next answer."""
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """End nothing."""


def test_a_refused_job_is_tried_again(idle: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, after pauses; in the end it is a fault of the host."""
    monkeypatch.setattr(local_executor, "PAUSES", (0.0, 0.0))
    job = idle.job("return 1")
    none = FinishedJob(job=job, outcome=Outcome.INFRA, stage=Stage.IMPORT, refused=True)
    good = FinishedJob(job=job, outcome=Outcome.OK, stage=Stage.EXECUTE)
    for answers, outcome in (([none, none, good], Outcome.OK), ([none] * 3, Outcome.INFRA)):
        script: list[FinishedJob | Exception] = [*answers]
        opening = cast("OpenWorker", lambda _, script=script: Scripted(script))
        (finished,) = LocalExecutor(opening, slots=1, device_lock=DeviceLock(idle.folder)).run(
            [job]
        )
        assert finished.outcome is outcome
        assert script == []


@pytest.mark.parametrize("how", ["worker", "job"])
@pytest.mark.parametrize(("kills", "outcome"), [(0, Outcome.CRASHED), (1, Outcome.INFRA)])
def test_a_job_killed_on_a_host_out_of_memory_is_not_blamed(
    idle: Bench, monkeypatch: pytest.MonkeyPatch, how: str, kills: int, outcome: Outcome
) -> None:
    """If the kernel has counted killed processes; else the job is responsible."""
    counts = iter([7, 7 + kills])
    monkeypatch.setattr(local_executor, "count_oom_kills", lambda: next(counts))
    job = idle.job("return 1")
    killed = FinishedJob(job=job, outcome=Outcome.CRASHED, stage=Stage.EXECUTE, killed=True)
    answer = killed if how == "job" else WorkerDiedError("the worker ended")
    script: list[FinishedJob | Exception] = [answer, answer]
    opening = cast("OpenWorker", lambda _: Scripted(script))
    (finished,) = LocalExecutor(opening, slots=1, device_lock=DeviceLock(idle.folder)).run([job])
    assert finished.outcome is outcome
    assert kills == 0 or (finished.error is not None and "out of memory" in finished.error.message)


@pytest.mark.cell
def test_a_mismatch_of_identity_is_infra(idle: Bench) -> None:
    """A worker that does not match its lock never gives a verdict."""
    planned = replace(idle.planned, versions={**idle.planned.versions, "numpy": "1.0"})
    provider = Provider({planned.cell.id: lock_of(planned.cell)}, cache_root())
    job = Job(case=idle.job("return 1").case, planned=planned)
    (finished,) = LocalExecutor(provider.open, slots=1, device_lock=DeviceLock(idle.folder)).run(
        [job]
    )
    assert finished.outcome is Outcome.INFRA
    assert finished.error is not None
    assert "expected 1.0; delete" in finished.error.message


@pytest.mark.cell
def test_jobs_of_several_cells_each_end_once(idle: Bench, opener: Opener) -> None:
    """Two cells, three jobs each, two slots: six results, one worker a cell, none left."""
    jobs = [idle.job(f"return {n}", topic=f"t{n}") for n in range(3)]
    jobs += [named(job, "other", 3) for job in jobs]
    executor = LocalExecutor(opener, slots=2, device_lock=DeviceLock(idle.folder))
    found = Counter(finished.job.id for finished in executor.run(jobs))
    assert found == Counter(job.id for job in jobs)
    assert len(opener.opened) == 2
    assert set(executor.identities) == {job.planned.cell.id for job in jobs}
    assert opener.processes == []


@pytest.mark.cell
def test_a_job_of_a_killed_worker_runs_again(idle: Bench, opener: Opener) -> None:
    """It ends well, alone in a separate worker, and other jobs are unaffected."""
    marker = idle.folder / "marker"
    killer = f"""
        if not os.path.exists({str(marker)!r}):
            open({str(marker)!r}, "w").close()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        return 1
    """
    jobs = [idle.job(killer), idle.job("return 2", topic="next")]
    found = list(LocalExecutor(opener, slots=1, device_lock=DeviceLock(idle.folder)).run(jobs))
    assert [leaf_of(finished).data for finished in found] == [b"1", b"2"]
    assert len(opener.opened) == 3


@pytest.mark.cell
def test_a_job_that_kills_two_workers_has_crashed(idle: Bench, opener: Opener) -> None:
    """The next job runs."""
    killer = "os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    jobs = [idle.job(killer), idle.job("return 2", topic="next")]
    killed, after = LocalExecutor(opener, slots=1, device_lock=DeviceLock(idle.folder)).run(jobs)
    assert killed.outcome is Outcome.CRASHED
    assert killed.error is not None
    assert killed.error.message.startswith("2 workers ended with this job")
    assert after.outcome is Outcome.OK


@pytest.mark.cell
@pytest.mark.parametrize("begun", [0, 1], ids=["while starting", "while running"])
def test_an_interrupted_run_ends_its_workers(idle: Bench, opener: Opener, begun: int) -> None:
    """Closing the iterator, as Ctrl-C does, ends everything soon."""
    jobs = [idle.job("return os.getpid()")]
    jobs += [idle.job("time.sleep(600); return 1", topic=f"t{n}") for n in range(4)]
    results = LocalExecutor(opener, slots=2, device_lock=DeviceLock(idle.folder)).run(jobs)
    if begun:
        next(results)
        while len(opener.processes) < 2:
            time.sleep(0.01)
    watched = opener.processes
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 60
    assert psutil.wait_procs(watched, timeout=2)[1] == []
    assert opener.processes == []


@pytest.mark.cell
def test_an_interrupted_run_leaves_no_strays_and_no_folders(idle: Bench, opener: Opener) -> None:
    """Neither a grandchild in another session nor the scratch folder of a job."""
    report = idle.folder / "report"
    body = f"""
        if os.fork() == 0:
            os.setsid()
            with open({f"{report}~"!r}, "w") as file:
                file.write(str(os.getpid()) + " " + os.getcwd())
            os.rename({f"{report}~"!r}, {str(report)!r})
        time.sleep(60)
    """
    waiting = f"while not os.path.exists({str(report)!r}): time.sleep(0.01)\nreturn 1"
    jobs = [idle.job(waiting), idle.job(body, topic="stray")]
    results = LocalExecutor(opener, slots=2, device_lock=DeviceLock(idle.folder)).run(jobs)
    next(results)
    pid, folder = report.read_text().split()
    stray = psutil.Process(int(pid))
    results.close()
    assert psutil.wait_procs([stray], timeout=2)[1] == []
    assert not Path(folder).exists()


KILLED_ONCE = """
    if not os.path.exists({marker!r}):
        open({marker!r}, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.long
@pytest.mark.cell
def test_a_job_that_is_killed_once_has_its_second_outcome(idle: Bench, opener: Opener) -> None:
    """With a note. The other job keeps its worker."""
    body = KILLED_ONCE.format(marker=str(idle.folder / "marker")) + "\n    return 1"
    jobs = [idle.job(textwrap.dedent(body)), idle.job("return 2", topic="next")]
    executor = LocalExecutor(opener, slots=1, device_lock=DeviceLock(idle.folder))
    killed, after = executor.run(jobs)
    assert (killed.outcome, leaf_of(killed).data, killed.notes) == (Outcome.OK, b"1", (ONCE,))
    assert (leaf_of(after).data, after.notes) == (b"2", ())
    assert opener.processes == []


@pytest.mark.long
@pytest.mark.cell
def test_a_job_that_is_killed_each_time_has_crashed(idle: Bench, opener: Opener) -> None:
    """With a note that no limit killed it."""
    jobs = [idle.job("os.kill(os.getpid(), signal.SIGKILL)")]
    (killed,) = LocalExecutor(opener, slots=1, device_lock=DeviceLock(idle.folder)).run(jobs)
    assert killed.error is not None
    assert (killed.outcome, killed.error.type, killed.notes) == (
        Outcome.CRASHED, "SIGKILL", (TWICE,),
    )  # fmt: skip


@pytest.mark.cell
def test_a_killed_import_fails_no_job_of_the_file(idle: Bench, opener: Opener) -> None:
    """Another worker imports the file again."""
    top = "import os, signal\n" + textwrap.dedent(
        KILLED_ONCE.format(marker=str(idle.folder / "marker"))
    )
    job = idle.job("return 1", top=top)
    (finished,) = LocalExecutor(opener, slots=1, device_lock=DeviceLock(idle.folder)).run([job])
    assert (finished.outcome, finished.notes) == (Outcome.OK, (ONCE,))


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("error", [WorkerKilledError, WorkerDiedError])
@pytest.mark.parametrize(("times", "outcome"), [(1, Outcome.OK), (2, Outcome.INFRA)])
@pytest.mark.cell
def test_a_worker_killed_while_it_starts_is_started_again(
    idle: Bench, opener: Opener, error: type[Exception], times: int, outcome: Outcome
) -> None:
    """Once; a cell that never starts is a fault of the host."""
    left = [error("it was ended by SIGKILL")] * times

    def killed(planned: PlannedCell) -> Worker:
        if left:
            raise left.pop()
        return opener(planned)

    executor = LocalExecutor(killed, slots=1, device_lock=DeviceLock(idle.folder))
    (finished,) = executor.run([idle.job("return 1")])
    assert finished.outcome is outcome


@pytest.mark.cell
def test_a_worker_killed_before_its_hello_is_a_separate_error(tmp_path: Path) -> None:
    """Unlike a worker that exits."""
    python = tmp_path / "python"
    for does, error in (("kill -9 $$", WorkerKilledError), ("exit 3", InfrastructureError)):
        python.write_text(f"#!/bin/sh\n{does}\n")
        python.chmod(0o755)
        with pytest.raises(InfrastructureError, match="did not start") as caught:
            Worker(python)
        assert type(caught.value) is error
