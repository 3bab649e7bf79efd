"""Seconds of `conformance scan` against those of parsing the same files.

    python benchmarks/scan_speed.py PATH... [--from RELEASE] [--rounds N]

Both are measured in turn, in this process: the scan starts its own processes, parsing takes one.
Prints medians, and the seconds of 100,000 lines.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
from pathlib import Path
from statistics import median
from time import perf_counter

from conformance.app.scan.changes import list_files, scan


def main() -> None:
    """Measure both, and print how they compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--from", dest="old", default="0.4.30")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    result = scan(options.paths, options.old, "latest")
    scans, parses = [], []
    for _ in range(options.rounds):
        start = perf_counter()
        scan(options.paths, options.old, "latest")
        scans.append(perf_counter() - start)
        start = perf_counter()
        for file in list_files(options.paths):
            with contextlib.suppress(SyntaxError, ValueError):
                ast.parse(file.read_bytes())
        parses.append(perf_counter() - start)
    ratios = [one / other for one, other in zip(scans, parses, strict=True)]
    print(
        f"{result.files} files, {result.lines} lines, {result.uses} uses, {len(result.hits)} hits"
    )
    print(f"scan {median(scans):.2f} s ({min(scans):.2f} to {max(scans):.2f}), "
          f"{median(ratios):.2f} times as long as parsing the files in one process; "
          f"{median(scans) * 100_000 / result.lines:.2f} s per 100,000 lines; "
          f"load {os.getloadavg()[0]:.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
