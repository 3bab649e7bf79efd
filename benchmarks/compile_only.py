"""Costs of a compile-only job, alone and in a shared process; whether its IRs are reproducible.

`python benchmarks/compile_only.py [CELL...]`, both in one run; medians over rounds.
Targets: at most 0.6 s a small program for a TPU, 0.8 s for CUDA, the compiler's start included or
shared; the same structure in every process and from every folder.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from common import THROUGHPUT, format_line, make_provider, make_throughput_jobs, prepare, time_call

from conformance.corpus.discovery import discover, find_case_files
from conformance.engine.job import Job
from conformance.ir.analysis import analyse
from conformance.ir.graph import IRS

if TYPE_CHECKING:
    from conformance.engine.job import PlannedCell
    from conformance.engine.workers.client import Worker

CELLS = (
    "jax0.5.3-tpu:v5e:2x2",
    "jax0.10.2-tpu:v5e:2x2",
    "jax0.8.3-cuda:h100:1x1x4",
    "jax0.10.2-cuda:h100:1x1x4",
)
ROUNDS = 3


def exact_fingerprints(worker: Worker, job: Job) -> tuple[str, ...]:
    """Return the exact fingerprint of each IR of a job."""
    blobs = worker.run(job).blobs
    return tuple(analyse(blobs[ir].decode(), ir).exact for ir in IRS)


def make_jobs_elsewhere(planned: PlannedCell, folder: Path) -> list[Job]:
    """Return the timed jobs, from copies of the case files in another folder."""
    shutil.copytree(THROUGHPUT, folder / "copy")
    cases = discover(find_case_files(folder / "copy"))
    return [Job(case=case, planned=planned, alone=True) for case in cases]


def measure(cell: str) -> bool:
    """Print the figures of a cell; return whether every compilation had the same fingerprints."""
    preparation = prepare(cell)
    (planned,) = preparation.cells
    jobs = make_throughput_jobs(planned)
    alone = [replace(job, alone=True) for job in jobs]
    with tempfile.TemporaryDirectory() as folder:
        worker, second = (make_provider(preparation).open(planned) for _ in range(2))
        try:
            first = time_call(partial(worker.run, jobs[0]))
            shared, forked = (
                [time_call(partial(worker.run, job)) for _ in range(ROUNDS) for job in some]
                for some in (jobs, alone[:4])
            )
            moved = make_jobs_elsewhere(planned, Path(folder))
            same = all(
                exact_fingerprints(worker, job)
                == exact_fingerprints(second, repeated)
                == exact_fingerprints(second, copied)
                for job, repeated, copied in zip(jobs, jobs, moved, strict=True)
            )
        finally:
            worker.close()
            second.close()
    times = statistics.median(forked) / statistics.median(shared)
    print(planned.cell.id)
    print(format_line("  in a shared process", shared))
    print(format_line("  in a process of its own, forked", forked))
    print(f"  the first of a worker, which starts the compiler: {first:.2f} s")
    print(f"  shared against its own: {times:.1f} times the throughput")
    print(f"  structure in two processes and from two folders: {'the same' if same else 'DIFFERS'}")
    return same


if __name__ == "__main__":
    alike = [measure(wanted) for wanted in sys.argv[1:] or CELLS]
    sys.exit(0 if all(alike) else 1)
