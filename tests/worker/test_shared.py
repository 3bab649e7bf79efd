"""Jobs that share a process: real ones, compile-only for a TPU topology, and on CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.ir.analysis import analyse
from conformance.model.outcome import Outcome
from conformance.worker.job import make_share_key
from conformance.worker.supervisor import MOST_IDLE
from tests.workbench import Bench, planned_cell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.job import FinishedJob, Job

TPU = "jax0.10.2-py311-tpu.v5e.2x2"
TELL_PID = "raise ValueError(os.getpid())"
PSUM = """
mesh = env.mesh(4, "x")
spec = jax.sharding.PartitionSpec("x")
f = env.compat.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=spec,
                         out_specs=jax.sharding.PartitionSpec())
return Program(f, args=(np.ones((8, 4), np.float32),))
"""


@pytest.fixture(scope="module")
def tpu_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A worker of a compile-only TPU cell."""
    with Bench(planned_cell(TPU), tmp_path_factory.mktemp("cases")) as bench:
        yield bench


@pytest.fixture
def tpu(tpu_bench: Bench, tmp_path: Path) -> Bench:
    """The worker, with a folder of case files of this test's own."""
    return tpu_bench.at(tmp_path)


def pid_of(finished: FinishedJob) -> int:
    """Return the process id of a job of `TELL_PID`."""
    assert finished.error is not None
    return int(finished.error.message)


def test_jobs_with_the_same_flags_share_a_process(tpu: Bench) -> None:
    """Those with others do not."""
    job = tpu.job(TELL_PID, "program()")
    other = tpu.job(TELL_PID, "program(x64=True)", topic="other")
    first = pid_of(tpu.worker.run(job))
    assert pid_of(tpu.worker.run(job)) == first
    assert pid_of(tpu.worker.run(other)) != first
    assert pid_of(tpu.worker.run(job)) == first


def test_a_job_may_run_alone(tpu: Bench) -> None:
    """As in the second attempt of an unexpected job."""
    job = tpu.job(TELL_PID, "program()")
    alone = replace(job, alone=True)
    assert len({pid_of(tpu.worker.run(each)) for each in (job, alone, alone)}) == 3
    assert make_share_key(job.request())
    assert not make_share_key(alone.request())


@pytest.mark.parametrize(
    "change",
    ["jax.config.update('jax_log_compiles', True)", "os.environ['SOME_VARIABLE'] = 'set'"],
)
def test_a_changed_process_is_not_reused(tpu: Bench, change: str) -> None:
    """The next job is unaffected."""
    job = tpu.job(TELL_PID, "program()")
    changing = tpu.job(f"{change}\n{TELL_PID}", "program()", "import jax", topic="changing")
    first = pid_of(tpu.worker.run(job))
    assert pid_of(tpu.worker.run(changing)) == first
    assert pid_of(tpu.worker.run(job)) != first


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", Outcome.CRASHED),
        ("os._exit(0)", Outcome.CRASHED),
        ("time.sleep(60)", Outcome.TIMED_OUT),
    ],
)
def test_a_crash_in_a_shared_process_affects_one_job(
    tpu: Bench, ending: str, outcome: Outcome
) -> None:
    """The next job gets another process."""
    job = tpu.job(TELL_PID, "program()")
    bad = tpu.job(ending, "program(timeout=1)", topic="bad")
    first = pid_of(tpu.worker.run(job))
    assert tpu.worker.run(bad).outcome is outcome
    assert pid_of(tpu.worker.run(job)) != first


def test_output_belongs_to_the_job_that_wrote_it(tpu: Bench) -> None:
    """Although the streams are those of the process."""
    one = tpu.job("print('said by one')\nraise ValueError", "program()")
    two = tpu.job("raise ValueError", "program()", topic="two")
    assert b"said by one" in tpu.worker.run(one).blobs["stdout"]
    assert "stdout" not in tpu.worker.run(two).blobs


def test_a_program_compiles_alike_alone_and_after_others(tpu: Bench) -> None:
    """To the same structure, in a process that has compiled it before as well."""
    job = tpu.job(PSUM, "program(devices=4)", "import jax")
    runs = [tpu.worker.run(each) for each in (job, job, replace(job, alone=True))]
    assert [run.outcome for run in runs] == [Outcome.OK] * 3
    assert b"all-reduce" in runs[0].blobs["hlo"]
    assert "value" not in runs[0].blobs
    for ir in ("jaxpr", "stablehlo", "hlo"):
        assert len({analyse(run.blobs[ir].decode(), ir).exact for run in runs}) == 1


def on_cpu(bench: Bench, body: str, topic: str, top: str = "import jax") -> Job:
    """Return a job that may share a process."""
    return replace(bench.job(body, "program()", top, topic=topic), may_share=True)


def test_on_cpu_expected_jobs_of_a_file_share_a_process(bench: Bench) -> None:
    """Others have their own."""
    job, other = (on_cpu(bench, TELL_PID, topic) for topic in ("one", "two"))
    first = pid_of(bench.worker.run(job))
    assert pid_of(bench.worker.run(job)) == first
    alone = [replace(job, alone=True), replace(job, may_share=False)]
    assert len({first, *(pid_of(bench.worker.run(each)) for each in (other, *alone))}) == 4


def test_a_file_with_side_effects_has_a_process_for_each_job(bench: Bench) -> None:
    """Its import is repeated by each of them."""
    top = "import os, jax\nos.environ['SOME_VARIABLE'] = 'set'"
    job = on_cpu(bench, TELL_PID, "effects", top)
    assert len({pid_of(bench.worker.run(job)) for _ in range(3)}) == 3


LEFT = {
    "a thread": "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "a process": "subprocess.Popen(['sleep', '60'])",
}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT)
def test_what_a_job_leaves_running_is_not_beside_the_next(bench: Bench, left: str) -> None:
    """Its process ends with it."""
    top = "import subprocess, threading, time, jax"
    job = on_cpu(bench, f"if env.cell.release:\n    {left}\n{TELL_PID}", "leaving", top)
    assert len({pid_of(bench.worker.run(job)) for _ in range(3)}) == 3


def test_a_shared_process_starts_each_job_in_an_empty_folder(bench: Bench) -> None:
    """With files and folders of the last job gone, and its compiled programs."""
    job = on_cpu(
        bench,
        """
        found = os.listdir()
        os.mkdir("folder"); open("folder/file", "w").close(); open("file", "w").close()
        os.symlink("folder", "link")
        os.chdir("folder")
        raise ValueError(f"{os.getpid()} {found}")
        """,
        "writing",
    )
    texts = {str(bench.worker.run(job).error.message) for _ in range(3)}  # type: ignore[union-attr]
    assert len(texts) == 1
    assert texts.pop().endswith("[]")


def test_few_processes_wait_for_another_job(bench: Bench) -> None:
    """Those of files that are done end when others start."""
    jobs = [on_cpu(bench, TELL_PID, f"topic{number}") for number in range(2 * MOST_IDLE)]
    pids = [pid_of(bench.worker.run(job)) for job in jobs]
    running = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert running == pids[-len(running) :]
    assert len(running) <= MOST_IDLE + 1
