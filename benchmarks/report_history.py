"""Costs of the history pages of a year of nightly runs. No jax is started.

`python benchmarks/report_history.py RUN [--runs 365] [--results 1034] [--distinct 365]`, RUN a real
run's directory whose records are written again under the names of as many jobs as asked for.
Targets: 365 runs in 60 s, one more in 5 s.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice, pairwise, product
from pathlib import Path

from conformance.engine.runs.digests import DigestStore
from conformance.engine.runs.directory import RESULTS, RUN, RunDirectory
from conformance.report.history import make_history
from conformance.report.report import Report
from conformance.report.site.history_page import (
    make_case_history,
    render_feed,
    render_history_pages,
)

CASES_PER_FAMILY = 30
BROKEN = 0.004
"""Share of the cases that break each night, in all cells, for some days."""
START = datetime(2025, 1, 1, 3, tzinfo=UTC)


def make_names(results: int) -> tuple[list[str], list[str]]:
    """Return ids of cases and cells, for at least as many jobs as requested."""
    cells = max(4, round((results / 2.5) ** 0.5))
    cases = -(-results // cells)
    return (
        [f"family_{n // CASES_PER_FAMILY:02d}/case_{n}[argument]" for n in range(cases)],
        [f"jax0.{n}.0-py311-cpu8" for n in range(cells)],
    )


class Nights:
    """Writes runs one night after another: most jobs match, a few break and are mended.

    Args:
        template: A real run's directory.
        results: Jobs of a run.
    """

    def __init__(self, template: Path, results: int) -> None:
        cases, cells = make_names(results)
        self._jobs = list(islice(product(cases, cells), results))
        lines = (template / RESULTS).read_bytes().splitlines()
        spread = islice(cycle(lines[:: max(1, len(lines) // 2000)]), results)
        self._records = [json.loads(line) for line in spread]
        info = json.loads((template / RUN).read_bytes())
        versions = info["cells"][0]["versions"]
        self._info = {
            **info,
            "cells": [{"id": c, "versions": {**versions, "jax": c[3:8]}} for c in cells],
            "plan": self._jobs,
        }
        self._cases = cases
        self._random = random.Random(0)  # noqa: S311 - the same nights each time
        self._until: dict[str, int] = {}

    def write(self, folder: Path, night: int, results: Path | None = None) -> RunDirectory:
        """Write a run; with `results`, its results are a hard link to those of another run."""
        begun = START + timedelta(days=night)
        path = folder / f"{begun:%Y%m%d-%H%M%S}-000"
        path.mkdir(parents=True)
        times = {"started": begun.isoformat(), "finished": (begun + timedelta(hours=1)).isoformat()}
        (path / RUN).write_text(json.dumps({**self._info, **times, "exit": 0}), encoding="utf-8")
        if results is not None:
            os.link(results, path / RESULTS)
            return RunDirectory(path)
        for case in self._cases:
            if self._until.get(case, -1) < night and self._random.random() < BROKEN:
                self._until[case] = night + self._random.randrange(1, 9)
        with (path / RESULTS).open("w", encoding="utf-8") as out:
            for record, (case, cell) in zip(self._records, self._jobs, strict=True):
                broken = self._until.get(case, -1) >= night
                more: dict[str, object] = {"case": case, "cell": cell}
                if broken:
                    reason = f"out {night} of 256 elements differ, worst at [3]: 0.5 against 0.25"
                    more |= {"verdict": "regressed", "outcome": "ok", "reasons": [reason]}
                out.write(json.dumps({**record, **more}, separators=(",", ":")) + "\n")
        return RunDirectory(path)


def read_peak_memory() -> float:
    """Return the peak resident memory of this process in MiB."""
    # Not ru_maxrss, which a process inherits from its parent.
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) / 1024


def read_cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the processes it waited for."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def build(runs: Path, kept: Path) -> None:
    """Build a history and its pages, and print the time of each step."""
    marks = [("", time.perf_counter())]
    digests, problems = DigestStore(kept, processes=2).get_all(
        [RunDirectory(p) for p in sorted(runs.iterdir())]
    )
    marks.append(("digests", time.perf_counter()))
    made = make_history(digests.values())
    marks.append(("history", time.perf_counter()))
    pages = [*render_history_pages(made, Report(())), *render_feed(made)]
    marks.append(("page and feed", time.perf_counter()))
    cases = [make_case_history(made, case) for case in made.cases]
    marks.append(("case histories", time.perf_counter()))
    spent = ", ".join(f"{name} {at - before:.2f}" for (_, before), (name, at) in pairwise(marks))
    sizes = ", ".join(f"{path} {len(data) / 1e6:.2f} MB" for path, data in pages)
    print(
        f"  {marks[-1][1] - marks[0][1]:7.2f} s ({spent}), {read_cpu_seconds():.1f} CPU s, "
        f"{read_peak_memory():.0f} MiB; {sizes}; "
        f"{len(made.regressions)} regressions, {len(problems)} problems, {len(cases)} cases"
    )


def run_build(what: str, runs: Path, kept: Path) -> None:
    """Build in a separate process, so that the peak memory is that of this build."""
    print(what, flush=True)
    subprocess.run([sys.executable, __file__, "--build", str(runs), str(kept)], check=True)


def main() -> None:
    """Measure a first build, a build with one new run, and a build without one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=365)
    parser.add_argument("--results", type=int, default=1034)
    parser.add_argument("--distinct", type=int, default=365, help="runs with different results")
    parser.add_argument("--build", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build:
        build(*options.build)
        return
    with tempfile.TemporaryDirectory() as temporary:
        runs, kept = Path(temporary, "runs"), Path(temporary, "kept")
        nights = Nights(options.run, options.results)
        written: list[RunDirectory] = []
        for night in range(options.runs):
            linked = None
            if night >= options.distinct:
                linked = written[night % options.distinct].path / RESULTS
            written.append(nights.write(runs, night, linked))
        size = sum((run.path / RESULTS).stat().st_size for run in written)
        print(f"{options.runs} runs of {options.results} results, {size / 1e9:.2f} GB read")
        run_build("first build", runs, kept)
        nights.write(runs, options.runs)
        run_build("one new run", runs, kept)
        run_build("nothing new", runs, kept)
        kept_size = sum(file.stat().st_size for file in kept.iterdir())
        print(f"digests: {kept_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
