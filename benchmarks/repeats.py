"""Whether the same jobs, run again and again, end the same way.

    for n in 1 2 3 4 5; do conformance run --matrix releases --fresh --run RUNS/$n; done
    python benchmarks/repeats.py RUNS/*

Printed is, over the jobs that all runs have, how many end in one way in one run and in another in
the next: by outcome, error or verdict, by the bits of the value, and by an IR in the form
`neutral`, which runs of one version of it share; each job of the first two with what the runs say;
and what took more seconds or memory than a case may.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.engine.run_directory import RunDirectory
from conformance.engine.run_loader import load_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.model.record import Record

SECONDS, MEGABYTES = 3.0, 600.0
"""What a job may take."""


def ending(record: Record) -> str:
    """Return how a job ended and what is thought of it."""
    error = f" {record.error.type} {record.error.signature}" if record.error else ""
    return f"{record.outcome}{error}, {record.verdict}"


def value(record: Record) -> str:
    """Return the name of the bits that a job gave."""
    return record.artifacts.get("value", "")


def irs(record: Record) -> str:
    """Return what the IRs of a job mean, in digests."""
    return " ".join(f"{name} {ir.canonical}" for name, ir in sorted(record.ir.items()))


def told(what: str, jobs: Sequence[Sequence[Record]], said: Callable[[Record], str]) -> None:
    """Print how many jobs differ in something, and in what, unless that is a row of digests."""
    other = [runs for runs in jobs if len(set(map(said, runs))) > 1]
    print(f"{what}: {len(other)} of {len(jobs):,} jobs differ")
    for runs in other if said is not irs else ():
        print(f"  {runs[0].case} in {runs[0].cell}: {' | '.join(map(said, runs))}")


def limits(
    what: str, jobs: Sequence[Sequence[Record]], took: Callable[[Record], float], limit: float
) -> None:
    """Print which jobs took more than they may, in each run, and the most that one took."""
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
    told("ending", jobs, ending)
    told("value", jobs, value)
    told("IR", jobs, irs)
    limits("seconds", jobs, lambda record: record.seconds.get("job", 0.0), SECONDS)
    limits("MB", jobs, lambda record: record.max_rss_bytes / 10**6, MEGABYTES)


if __name__ == "__main__":
    main()
