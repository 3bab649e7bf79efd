"""Measures runs on a cluster: against a run on this host, their overhead, and at 500 workers.

    python benchmarks/cluster.py agreement [--matrix NAME] [--cell C] [--jobs N] [SELECT ...]
    python benchmarks/cluster.py overhead [--jobs N]
    python benchmarks/cluster.py scale [--workers N] [--jobs N] [--faster N]

`agreement` runs cases on this host and on a Dask cluster on this host, with warm environments and
without cached results, and compares all fields of the records except times and memory. `overhead`
sends jobs that do nothing to two workers. `scale` has many workers in a few processes; a batch
takes the recorded durations of its jobs and the start of a cell, divided by `--faster`. In both,
scheduler, messages and placement are real, and workers answer with the record of a real job.

Random kills of a worker, nanny, scheduler or client: `benchmarks/attack/kills.py --cluster`.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
import multiprocessing
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.config
import msgspec
from common import checkout_context, prepare
from distributed import Client, LocalCluster, Worker

from conformance.app.cluster_choice import ClusterChoice
from conformance.app.durations import load_durations
from conformance.app.plan import plan_jobs
from conformance.app.session import Session
from conformance.cache_folder import cache_root
from conformance.cluster import connection
from conformance.cluster.dask_worker import NAME, NodePlugin
from conformance.cluster.executor import DaskExecutor
from conformance.cluster.messages import BatchEnd, BatchUpdate, JobReport, encode
from conformance.cluster.node import Node
from conformance.cluster.options import ClusterOptions
from conformance.engine.job import Job, RecordedJob
from conformance.engine.runs.directory import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.cluster.messages import BatchRequest
    from conformance.engine.durations import Durations
    from conformance.engine.workers.preparation import Preparation
    from conformance.model.record import Record

RELEASE = "0.6.2"
FAMILIES = ("shard_map_while", "linearize_transpose", "nnx_vmap_while", "aot_placement",
            "array_api_device")  # fmt: skip
MEASURED = ("seconds", "max_rss_bytes")
"""Fields of a record that differ between two runs of a job."""
NAMES_FRAMES = ("jaxpr", "stablehlo", "hlo")
"""Artifacts with locations, which name frames of the worker: see `tests/faults/killing.py`."""
WARMING = 4
"""Jobs of each cell before anything is measured."""
PROCESSES = 2
"""Processes of simulated workers: one interpreter has one core."""
START = 4.0
"""Seconds to start the worker of a cell, measured by `benchmarks/provisioning.py`."""


class IdleNode(Node):
    """A node that runs nothing: a job takes its recorded duration, or no time.

    Args:
        node: The node that it replaces.
        faster: Divisor of durations; 0 for no time at all.
    """

    def __init__(self, node: Node, faster: float) -> None:
        self.__dict__.update(node.__dict__)
        self._faster = faster
        self._warm: set[str] = set()
        self._seen = threading.Lock()

    def run(self, request: BatchRequest, emit: Callable[[bytes], None]) -> BatchUpdate | None:
        """Return the record of a real job for each job."""
        planned = request.cell.make_cell()
        with self._seen:
            is_cold = planned.cell.id not in self._warm
            self._warm.add(planned.cell.id)
        specs = request.decode_jobs()
        if self._faster:
            jobs = (Job(case=spec.case, planned=planned) for spec in specs)
            seconds = sum(map(load_recorded().estimate, jobs)) + START * is_cold
            time.sleep(seconds / self._faster)
        record = make_record()
        reports = tuple(
            JobReport(dataclasses.replace(record, case=spec.case.id, cell=planned.cell.id))
            for spec in specs
        )
        end = BatchEnd(cells=tuple(self._warm), started=int(is_cold))
        emit(encode(BatchUpdate(key=request.key, jobs=reports, end=end)))
        return None


def install_idle_node(faster: float, dask_worker: Any) -> None:
    """Give a worker a node that runs nothing.

    Args:
        faster: See `IdleNode`.
        dask_worker: The worker, which Dask passes by this name.
    """
    worker = dask_worker
    node = Node(cache_root(), slots=worker.state.nthreads)
    worker.plugins[NAME] = NodePlugin(IdleNode(node, faster))


@cache
def load_recorded() -> Durations:
    """Return the recorded durations of the project."""
    return load_durations(checkout_context())


@cache
def make_record() -> Record:
    """Return the record of a real job, run once on this host."""
    session = Session(context=checkout_context())
    cases = session.context.select_cases([FAMILIES[0]])
    preparation = prepare(RELEASE)
    planned = plan_jobs(session, cases[:1], [preparation.cells[0].cell], (), ())
    with tempfile.TemporaryDirectory() as folder:
        run = session.make_run(planned.plan, RunDirectory(Path(folder)), preparation.locks)
        return run.execute()[0]


def make_many_jobs(preparation: Preparation, number: int) -> list[Job]:
    """Return jobs of all cases in as many cells as it takes."""
    cases = checkout_context().select_cases(())
    (planned,) = preparation.cells
    jobs = []
    for seed in range(-(-number // len(cases))):
        cell = dataclasses.replace(planned.cell, config=(("jax_seed", str(seed)),))
        place = dataclasses.replace(planned, cell=cell)
        jobs += [Job(case=case, planned=place) for case in cases]
    return jobs[:number]


def run_idle(client: Client, jobs: Sequence[Job], faster: float) -> None:
    """Run jobs on idle nodes, and print what it took."""
    client.run(install_idle_node, faster)
    preparation = prepare(RELEASE)
    (lock,) = preparation.locks.values()
    cells = {job.planned.cell.id for job in jobs}
    options = ClusterOptions(scheduler="benchmark", slots=1, cache=checkout_context().cache)
    connection.use_connection(client, "benchmark")
    executor = DaskExecutor(options, dict.fromkeys(cells, lock), load_recorded().estimate)
    start, used = time.perf_counter(), time.process_time()
    ended = sum(isinstance(finished, RecordedJob) for finished in executor.run(jobs))
    seconds = time.perf_counter() - start
    assert ended == len(jobs)
    workers = len(client.scheduler_info(n_workers=-1)["workers"])
    print(f"{ended:,} jobs of {len(cells):,} cells on {workers:,} workers: {seconds:.1f} s")
    here = time.process_time() - used
    print(f"per job: {seconds / ended * 1e3:.3f} ms, {here / ended * 1e3:.3f} ms of them "
          "processor time of this process")  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of scheduler and client, one process: {peak:.0f} MiB")
    print(f"workers of cells started: {executor.started:,}, at least {len(cells):,} "
          f"({executor.started / len(cells):.2f} times)")  # fmt: skip
    if faster:
        work = sum(map(load_recorded().estimate, jobs)) + START * executor.started
        print(f"busy: {100 * work / (seconds * faster * workers):.1f} %")


def measure_overhead(options: argparse.Namespace) -> None:
    """Send jobs that do nothing to two workers."""
    jobs = make_many_jobs(prepare(RELEASE), options.jobs or 200_000)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1",
                     dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        run_idle(client, jobs, 0.0)


def measure_scale(options: argparse.Namespace) -> None:
    """Run with many workers in a few processes."""
    jobs = make_many_jobs(prepare(RELEASE), options.jobs or 1_000_000)
    with (
        dask.config.set(connection.QUIET),
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        processes = [
            multiprocessing.get_context("spawn").Process(
                target=run_workers, args=(cluster.scheduler_address, number), daemon=True
            )
            for number in (len(range(i, options.workers, PROCESSES)) for i in range(PROCESSES))
        ]
        for process in processes:
            process.start()
        client.wait_for_workers(options.workers)
        run_idle(client, jobs, options.faster)
        client.shutdown()
        for process in processes:
            process.join()


def run_workers(scheduler: str, number: int) -> None:
    """Be so many workers of a cluster, until its scheduler ends.

    Args:
        scheduler: Address of the scheduler.
        number: Number of workers.
    """

    async def run() -> None:
        # Without limits of memory: all share that of this process.
        workers = [
            Worker(scheduler, nthreads=1, memory_limit=0, host="127.0.0.1") for _ in range(number)
        ]
        await asyncio.gather(*workers)
        await asyncio.gather(*(worker.finished() for worker in workers))

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # Once, and not in the thread of each worker.
    load_recorded()
    make_record()
    with dask.config.set(connection.QUIET):
        asyncio.run(run())


def measure_agreement(options: argparse.Namespace) -> None:
    """Run cases on this host and on a cluster, in turns, and compare."""
    context = checkout_context()
    cases = context.select_cases(options.select or FAMILIES)
    cells, left_out = context.select_cells(options.matrix, options.cell)
    records, seconds, started = {}, {}, 0
    with tempfile.TemporaryDirectory() as scratch:
        # First a few jobs of each cell, so that every environment and its bytecode exist.
        for number, name in enumerate(("first", "local", "dask")):
            cluster = ClusterChoice() if name == "dask" else None
            session = Session(context=context, fresh=True, cluster=cluster)
            chosen = cases[:: len(cases) // WARMING] if name == "first" else cases
            planned = plan_jobs(session, chosen, cells, (), left_out)
            directory = RunDirectory(Path(scratch) / str(number))
            run = session.make_run(
                planned.plan, directory, planned.preparation.locks, slots=options.jobs or 2
            )
            start = time.perf_counter()
            found = run.execute()
            seconds[name] = time.perf_counter() - start
            records[name] = {(record.case, record.cell): record for record in found}
            print(f"{name}: {len(found):,} jobs in {len(planned.plan.cells)} cells, "
                  f"{seconds[name]:.1f} s", flush=True)  # fmt: skip
            if isinstance(run.executor, DaskExecutor):
                started = run.executor.started
    differences = count_differences(records["local"], records["dask"])
    print(f"fields that differ: {dict(differences) or 'none'}")
    print(f"wall clock: {seconds['dask'] / seconds['local']:.3f} times")
    least = len({cell for _, cell in records["dask"]})
    print(f"workers of cells started: {started}, at least {least} ({started / least:.2f} times)")


def count_differences(
    expected: dict[tuple[str, str], Record], got: dict[tuple[str, str], Record]
) -> Counter[str]:
    """Return how many records differ, by field."""
    differences = Counter[str]()
    differences["jobs"] += len(expected.keys() ^ got.keys())
    for job in expected.keys() & got.keys():
        for name, value in flatten(expected[job]).items():
            differences[name] += value != flatten(got[job]).get(name)
    return +differences


def flatten(record: Record) -> dict[str, Any]:
    """Return the fields of a record, with artifacts as fields; IRs by their forms."""
    fields = msgspec.to_builtins(record)
    artifacts = fields.pop("artifacts")
    contents = {
        f"artifact {name}": blob
        for name, blob in artifacts.items()
        if not name.startswith(NAMES_FRAMES)
    }
    kept = {name: value for name, value in fields.items() if name not in MEASURED}
    return {**kept, **contents, "artifacts": sorted(artifacts)}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    agreement = commands.add_parser("agreement")
    agreement.add_argument("select", nargs="*")
    agreement.add_argument("--matrix", default="releases")
    agreement.add_argument("--cell", action="append", default=[])
    agreement.add_argument("--jobs", type=int)
    agreement.set_defaults(measure=measure_agreement)
    overhead = commands.add_parser("overhead")
    overhead.add_argument("--jobs", type=int)
    overhead.set_defaults(measure=measure_overhead)
    scale = commands.add_parser("scale")
    scale.add_argument("--workers", type=int, default=500)
    scale.add_argument("--jobs", type=int)
    scale.add_argument("--faster", type=float, default=5.0)
    scale.set_defaults(measure=measure_scale)
    options = parser.parse_args()
    options.measure(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
