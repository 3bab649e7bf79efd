"""Runs each abusive job with four innocent ones in one worker: is one of these blamed or lost?

`python benchmarks/attack/abusive_jobs.py [--release 0.7.2] [NAME ...]`. A job is abusive when it
kills or stops its worker, takes all memory, writes to descriptors of other processes, leaves
processes behind, or ends in an odd way. Each must have its own outcome, the innocent ones theirs,
and no process and no file may be left. Exit status 1 when that fails for any.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.faults.abuse import ABUSES, INNOCENTS, try_abuse
from tests.workbench import planned_cell


def main() -> int:
    """Try each abuse, a line each, and print how many went well."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--release", default="0.7.2")
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(ABUSES))
    options = parser.parse_args()
    planned, failed = planned_cell(options.release), 0
    begin = time.monotonic()
    for name in options.names:
        with tempfile.TemporaryDirectory(prefix="abuse-") as folder:
            start = time.monotonic()
            abusive, problems = try_abuse(name, planned, Path(folder))
        failed += bool(problems)
        print(f"{name}: {abusive.outcome}, {time.monotonic() - start:.1f} s", flush=True)
        print(*(f"    {problem}\n" for problem in problems), sep="", end="", flush=True)
    number = len(options.names)
    print(
        f"{number} abusive jobs beside {INNOCENTS * number} innocent ones "
        f"on jax {options.release}: {failed} with a problem, {time.monotonic() - begin:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
