"""Compares several runs of the same jobs: outcomes, values, IRs, time and memory.

    for n in 1 2 3 4 5; do conformance run --matrix releases --fresh --run RUNS/$n; done
    python benchmarks/repeats.py RUNS/*

Prints the number of jobs, of those that all runs have, that differ between runs: in outcome, error
or verdict, in the bits of the value, and in the canonical form of an IR, which only runs with the
same version of the normal forms share. Lists jobs of the first two kinds with the results of each
run, and jobs that took more seconds or memory than a case may.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.engine.runs.directory import RunDirectory
from conformance.engine.runs.loader import load_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.model.record import Record

SECONDS, MEGABYTES = 3.0, 600.0
"""Limits of a job."""


def describe_outcome(record: Record) -> str:
    """Return the outcome, error and verdict of a job."""
    error = f" {record.error.type} {record.error.signature}" if record.error else ""
    return f"{record.outcome}{error}, {record.verdict}"


def value_hash(record: Record) -> str:
    """Return the hash of a job's value."""
    return record.artifacts.get("value", "")


def canonical_fingerprints(record: Record) -> str:
    """Return the canonical fingerprints of the IRs of a job."""
    return " ".join(f"{name} {ir.canonical}" for name, ir in sorted(record.ir.items()))


def print_differences(
    what: str, jobs: Sequence[Sequence[Record]], describe: Callable[[Record], str]
) -> None:
    """Print the number of jobs that differ between runs; list them unless they differ in hashes."""
    other = [runs for runs in jobs if len(set(map(describe, runs))) > 1]
    print(f"{what}: {len(other)} of {len(jobs):,} jobs differ")
    for runs in other if describe is not canonical_fingerprints else ():
        print(f"  {runs[0].case} in {runs[0].cell}: {' | '.join(map(describe, runs))}")


def print_excesses(
    what: str, jobs: Sequence[Sequence[Record]], took: Callable[[Record], float], limit: float
) -> None:
    """Print the jobs that exceed a limit, with the figure of each run, and the maximum."""
    print(f"most {what}: {max(took(record) for runs in jobs for record in runs):.1f}")
    for runs in jobs:
        if max(map(took, runs)) > limit:
            each = " | ".join(f"{took(record):.1f}" for record in runs)
            print(f"  {runs[0].case} in {runs[0].cell}: {each}")


def main() -> None:
    """Read runs, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", nargs="+", type=Path, help="directory of a run of the same matrix")
    runs = [
        {
            (record.case, record.cell): record
            for record in load_run(RunDirectory(path.absolute())).records
        }
        for path in parser.parse_args().run
    ]
    shared = set(runs[0]).intersection(*runs[1:])
    jobs = [[run[job] for run in runs] for job in sorted(shared)]
    print(f"{len(runs)} runs of {', '.join(f'{len(run):,}' for run in runs)} jobs")
    print_differences("ending", jobs, describe_outcome)
    print_differences("value", jobs, value_hash)
    print_differences("IR", jobs, canonical_fingerprints)
    print_excesses("seconds", jobs, lambda record: record.seconds.get("job", 0.0), SECONDS)
    print_excesses("MB", jobs, lambda record: record.max_rss_bytes / 10**6, MEGABYTES)


if __name__ == "__main__":
    main()
