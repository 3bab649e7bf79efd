"""Costs of isolation: a fork per job or per file, a process per job, one for all; and scaling.

`python benchmarks/isolation.py [RELEASE...]`, all in one run; medians over rounds.
Targets: fork at least 6 times the throughput of a process per job; at most 60 ms a job over one
long-lived process; two jobs at a time at least 1.8 times one. Processor time and page faults per
job, with a fork per job and in a process that jobs share, have no target.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from common import format_line, make_provider, make_throughput_jobs, prepare, time_call

from conformance.app.context import load_context
from conformance.cells.accelerators import DeviceLock
from conformance.cells.provision import provision
from conformance.corpus.project import PACKAGE
from conformance.engine.local_executor import CellWorker, LocalExecutor
from conformance.engine.workers.environment import make_worker_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.engine.job import Job
    from conformance.engine.workers.preparation import Preparation

ROUNDS = 5


def time_jobs(worker: CellWorker, jobs: list[Job], rounds: int) -> list[float]:
    """Return the seconds of each job, one at a time, without the first round."""
    took = [[time_call(partial(worker.run, job)) for job in jobs] for _ in range(rounds + 1)]
    return [value for row in took[1:] for value in row]


def time_one_process(
    python: Path, jobs: list[Job], rounds: int, *, options: Sequence[str] = ()
) -> list[float]:
    """Return the seconds of each job in one long-lived process."""
    script = Path(__file__).with_name("one_process.py")
    done = subprocess.run(
        [python, "-s", script, PACKAGE / "worker", str(rounds), *options],
        input=json.dumps([job.request() for job in jobs]),
        capture_output=True,
        text=True,
        check=True,
        env=make_worker_environment(os.environ, {}, keep_python_path=False),
    )
    return [float(value) for value in json.loads(done.stdout)]


def measure_scaling(preparation: Preparation, jobs: list[Job], rounds: int) -> list[float]:
    """Return the speed-up of two slots over one, round by round, without start-up."""
    ratios = []
    many = jobs * 4
    for _ in range(rounds):
        took = {}
        for slots in (1, 2):
            executor = LocalExecutor(
                make_provider(preparation).open,
                slots=slots,
                device_lock=DeviceLock(load_context().cache),
            )
            results = executor.run(many)
            # Start-up ends with the first result, and is not measured.
            next(results)
            took[slots] = time_call(partial(list, results))
        ratios.append(took[1] / took[2])
    return ratios


class Usage(NamedTuple):
    """Processor time in ms, and page faults, of one job or several."""

    user: float
    system: float
    faults: float

    def print(self, name: str) -> None:
        """Print the figures in one line."""
        text = f"{self.user:.0f} ms user, {self.system:.0f} ms system, {self.faults:.0f} faults"
        print(f"  {name}: {text} a job")


def measure_usage(run: Callable[[int], object], jobs: int) -> Usage:
    """Return the usage of a job by child processes, without their start.

    Not the wall clock: it depends on the other load of the machine.

    Args:
        run: Runs every job a number of times, in processes that have ended when it returns.
        jobs: Number of jobs.
    """
    ends = []
    for rounds in (0, ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(rounds)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        ends.append(
            (
                1000 * (after.ru_utime - before.ru_utime),
                1000 * (after.ru_stime - before.ru_stime),
                after.ru_minflt - before.ru_minflt,
            )
        )
    start, whole = ends
    return Usage(*((b - a) / (jobs * ROUNDS) for a, b in zip(start, whole, strict=True)))


def run_forked(preparation: Preparation, jobs: list[Job], rounds: int) -> None:
    """Run every job `rounds` times in a worker of its own, which ends."""
    (planned,) = preparation.cells
    with contextlib.closing(make_provider(preparation).open(planned)) as worker:
        for job in jobs * rounds:
            worker.run(job)


class Medians(NamedTuple):
    """Seconds per job, and the speed-up of a second slot, of one release or several."""

    fork: float
    shared: float
    process: float
    one_process: float
    scaling: float

    def print(self) -> None:
        """Print the ratios that have targets."""
        times, over = self.process / self.fork, 1000 * (self.fork - self.one_process)
        print(f"  fork against a process per job: {times:.1f} times the throughput (target 6)")
        print(f"  fork over one process: {over:.0f} ms a job (target 60)")
        print(f"  fork per file against a fork per job: {self.shared / self.fork:.2f} times")
        print(f"  two at a time against one: {self.scaling:.2f} times (target 1.8)")


def measure(release: str) -> Medians:
    """Print the figures of one release, and return their medians."""
    preparation = prepare(release)
    (planned,) = preparation.cells
    jobs = make_throughput_jobs(planned)
    environment = provision(
        planned.cell, lock=preparation.locks[planned.cell.id], cache=load_context().cache
    )
    device_lock = DeviceLock(load_context().cache)
    forked = time_jobs(
        CellWorker(planned, make_provider(preparation).open, device_lock), jobs, ROUNDS
    )
    sharing = [replace(job, may_share=True) for job in jobs]
    shared = time_jobs(
        CellWorker(planned, make_provider(preparation).open, device_lock), sharing, ROUNDS
    )
    # Each of these jobs imports jax again, so a few of them are enough.
    spawned = time_jobs(
        CellWorker(planned, make_provider(preparation, spawn=True).open, device_lock), jobs[:4], 1
    )
    single = time_one_process(environment.python, jobs, ROUNDS)
    print(f"jax {release}")
    print(format_line("  a fork per job", forked))
    print(format_line("  a fork per file", shared))
    print(format_line("  a process per job", spawned))
    print(format_line("  one long-lived process", single))
    two = measure_scaling(preparation, jobs, ROUNDS)
    count = len(jobs)
    measure_usage(partial(run_forked, preparation, jobs), count).print("a fork per job")
    for name, options in (("one process", ()), ("one process, caches cleared", ("clear",))):
        run = partial(time_one_process, environment.python, jobs, options=options)
        measure_usage(run, count).print(name)
    medians = Medians(*map(statistics.median, (forked, shared, spawned, single, two)))
    medians.print()
    return medians


if __name__ == "__main__":
    found = [measure(wanted) for wanted in sys.argv[1:] or ["0.5.3", "0.6.2", "0.8.3", "latest"]]
    print("over these releases")
    Medians(*map(statistics.fmean, zip(*found, strict=True))).print()
