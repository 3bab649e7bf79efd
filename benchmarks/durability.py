"""Costs of syncing each record and its blobs to the disk before the next record.

`python benchmarks/durability.py [--jobs 200]`. Jobs with six artifacts each are recorded in turn
with and without waiting for the disk, five times. Prints milliseconds a job, and their ratio to a
job of 100 ms, which is short.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from common import format_line, time_call

sys.path.append(str(Path(__file__).resolve().parent.parent))

from conformance.engine.runs.directory import Results, RunDirectory
from tests.engine.written_runs import A, record

SIZES = (100_000, 20_000, 5_000, 3_000, 1_000, 300)
"""Bytes of the artifacts of a job: texts of three IRs, facts, a value, a reference."""
ROUNDS = 5
JOB = 0.1
"""Seconds of a short job."""


def time_recording(jobs: int, *, sync: bool) -> float:
    """Return the seconds per job that recording takes."""
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run")
        results = Results(run)

        def write() -> None:
            for number in range(jobs):
                names = {str(size): run.blobs.put(secrets.token_bytes(size)) for size in SIZES}
                made = replace(record(f"f/{number}", A), artifacts=names, seconds={"job": JOB})
                results.append(made, sync=sync)

        took = time_call(write) / jobs
        results.close()
        return took


def main() -> None:
    """Print both, and their difference as a share of a job."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=200)
    jobs = parser.parse_args().jobs
    pairs = [
        (time_recording(jobs, sync=False), time_recording(jobs, sync=True)) for _ in range(ROUNDS)
    ]
    print(format_line("recorded, not waited for", [1e3 * without for without, _ in pairs], "ms"))
    print(format_line("recorded and on the disk", [1e3 * durable for _, durable in pairs], "ms"))
    shares = [100 * (durable - without) / JOB for without, durable in pairs]
    print(format_line("difference, of a job of 100 ms", shares, "%"))


if __name__ == "__main__":
    main()
