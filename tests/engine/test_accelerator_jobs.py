"""Jobs on an accelerator: one at a time, and none in a worker with a device error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.cells.accelerators import DeviceLock
from conformance.engine.job import Job
from conformance.engine.local_executor import LocalExecutor, has_device_error
from conformance.engine.workers.client import Worker
from conformance.model.outcome import Outcome
from tests.workbench import OLD, Bench, leaf_of, planned_cell, python_of

from .worlds import bad, good
from .worlds import job as made_up_job

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import PlannedCell

STICKY = "INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"


@pytest.fixture
def idle(tmp_path: Path) -> Bench:
    """Case files for a cell with the platform `gpu`, which runs on a CPU."""
    bench = Bench.__new__(Bench)
    planned = planned_cell(OLD)
    bench.planned = replace(planned, cell=replace(planned.cell, platform="gpu"))
    bench.folder = tmp_path
    return bench


def elsewhere(job: Job) -> Job:
    """Return a job in another cell of the same accelerator."""
    cell = replace(job.planned.cell, x64=True)
    return Job(case=job.case, planned=replace(job.planned, cell=cell))


@pytest.mark.long
@pytest.mark.cell
def test_jobs_of_an_accelerator_run_one_at_a_time(idle: Bench) -> None:
    """Two cells, two runs, two slots each: a job begins only after the job before it has ended."""
    log = idle.folder / "log"
    body = f"""
        for word in ("in", "out"):
            with open({str(log)!r}, "a") as file:
                file.write(word + chr(10))
            time.sleep(0.05)
        return 1
    """
    jobs = [idle.job(body, topic=f"t{n}") for n in range(2)]
    jobs += [elsewhere(job) for job in jobs]

    def run() -> LocalExecutor:
        return LocalExecutor(
            lambda planned: Worker(python_of(planned_cell(OLD))),
            slots=2,
            device_lock=DeviceLock(idle.folder),
        )

    one, other = run().run(jobs), run().run(jobs)
    first = [next(one), next(other)]
    assert {f.outcome for f in (*first, *one, *other)} == {Outcome.OK}
    assert log.read_text().split() == ["in", "out"] * 8


@pytest.mark.cell
def test_a_device_error_ends_the_worker_and_other_errors_do_not(idle: Bench) -> None:
    """The next job gets a worker without the device error."""
    bodies = [
        f"raise RuntimeError({STICKY!r})",
        "return os.getppid()",
        "raise RuntimeError('bad shape')",
        "return os.getppid()",
    ]
    jobs = [idle.job(body, topic=f"t{n}") for n, body in enumerate(bodies)]
    opened: list[Worker] = []

    def opening(planned: PlannedCell) -> Worker:
        opened.append(Worker(python_of(planned_cell(OLD))))
        return opened[-1]

    executor = LocalExecutor(opening, slots=1, device_lock=DeviceLock(idle.folder))
    sticky, one, raised, other = executor.run(jobs)
    assert (sticky.outcome, raised.outcome) == (Outcome.RAISED, Outcome.RAISED)
    assert leaf_of(one).data == leaf_of(other).data
    assert len(opened) == 2


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (STICKY, True),
        ("CUDA_ERROR_MISALIGNED_ADDRESS", True),
        ("hipErrorIllegalAddress", True),
        ("INTERNAL: TPU device halted", True),
        ("RESOURCE_EXHAUSTED: Out of memory", False),
        ("add got incompatible shapes", False),
    ],
)
def test_device_errors_are_recognised(tmp_path: Path, message: str, expected: bool) -> None:
    """By the messages of CUDA, HIP and the TPU runtime."""
    assert has_device_error(bad(made_up_job(tmp_path), message=message)) is expected


def test_device_errors_are_found_in_stderr_of_crashes_only(tmp_path: Path) -> None:
    """A crashed job has no error object; a job that ended well may print any text."""
    said = {"stderr": STICKY.encode()}
    crashed = replace(bad(made_up_job(tmp_path), Outcome.CRASHED), blobs=said)
    assert has_device_error(crashed)
    assert not has_device_error(replace(good(made_up_job(tmp_path)), blobs=said))
