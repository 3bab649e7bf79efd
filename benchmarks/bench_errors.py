"""How often `conformance bench` errs: false alarms, and planted differences that it misses.

    python benchmarks/bench_errors.py LOG alarms [RUNS] [NAME]    a release against its twin
    python benchmarks/bench_errors.py LOG planted [TRIES] [NAME]  10 % slower, quadratic, 1 MB lost
    python benchmarks/bench_errors.py LOG summary

The planted cases do more on 0.12.0.1 than on 0.12.0, two releases whose compilers are the same.
Each case and try is appended to LOG, one JSON object per line, so that they may be made on several
days and beside each other; `benchmarks/history/bench_errors.jsonl` is the log of the README.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from conformance.app.bench.choice import FAMILY
from conformance.app.bench.measurer import BenchOptions
from conformance.app.bench.run import TOGETHER, run_bench
from conformance.app.context import load_context
from conformance.report.bench.text import describe_comparison

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.bench.comparison import CaseComparison
    from conformance.model.case import Case

BEFORE, AFTER = "0.12.0", "0.12.0.1"
DEFAULTS = (("jax_enable_checks", "False"),)
"""Configuration of a twin, as it is without."""
PLANTED = '''
"""Cases that do more on the newer release."""

import jax
import numpy as np
from jax import lax

from conformance.kit import Program, program

X = np.ones(64, np.float32)
KEPT = []


def is_newer(env):
    """Return whether this is the release with the planted difference."""
    return env.cell.release == "0.12.0.1"


@program()
def slower(env):
    """A loop with 10 percent more steps."""
    steps = 33_000 if is_newer(env) else 30_000
    return Program(lambda x: lax.fori_loop(0, steps, lambda i, x: 0.5 * x + i, x), (X,))


@program(sizes=(16, 32, 64, 128))
def quadratic(env, size):
    """A loop with as many steps as the square of the size."""
    steps = 200 * size * (size // 16 if is_newer(env) else 1)
    return Program(lambda x: lax.fori_loop(0, steps, lambda i, x: 0.5 * x + i, x), (X,))


@program()
def leaking(env):
    """A callback that keeps 1 MB of each call."""
    def keep(x):
        if is_newer(env):
            KEPT.append(np.random.rand(2**17))
        return np.asarray(x)

    return Program(lambda x: jax.pure_callback(keep, x, x), (X,))
'''


def main() -> None:
    """Measure one kind of error, or print all that were measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("kind", choices=["alarms", "planted", "summary"])
    parser.add_argument("count", type=int, nargs="?", default=1)
    parser.add_argument("name", nargs="?", default="*")
    options = parser.parse_args()
    if options.kind == "summary":
        summarize([json.loads(line) for line in options.log.read_text().splitlines()])
        return
    rows = (
        find_alarms(options.count, options.name)
        if options.kind == "alarms"
        else try_planted(options.count, options.name)
    )
    for row in rows:
        print(row, flush=True)
        with options.log.open("a") as file:
            file.write(json.dumps(row) + "\n")


def find_alarms(runs: int, name: str) -> Iterator[dict[str, Any]]:
    """Yield the alarms of a release against its twin, `runs` comparisons of each case.

    The twin is a cell of its own, with workers of its own: addresses differ from process to
    process, and with them the time of a call.
    """
    context = load_context()
    cases = [case for case in context.select_cases([FAMILY]) if fnmatch(case.id, f"*{name}")]
    (cell,) = context.select_cells(None, ["latest"])[0]
    twin = replace(cell, config=DEFAULTS)
    for part in (part for _ in range(runs) for part in split(random.sample(cases, len(cases)))):
        load, start = os.getloadavg()[0], perf_counter()
        found = run_bench(context, part, [cell, twin], BenchOptions(), print_nothing).comparisons
        seconds = (perf_counter() - start) / len(part)
        for one in found:
            yield {
                "kind": "alarms", "release": cell.release, "case": one.case,
                "phases": len(one.time), "problem": one.problem,
                "alarm": describe_comparison(one) if one.alarms else "",
                "seconds": round(seconds, 1), "load": round(load, 1),
            }  # fmt: skip


def split(cases: list[Case]) -> Iterator[list[Case]]:
    """Yield so many cases at a time that an interrupt loses few."""
    for start in range(0, len(cases), TOGETHER):
        yield cases[start : start + TOGETHER]


def try_planted(tries: int, name: str) -> Iterator[dict[str, Any]]:
    """Yield whether each planted difference was found, in each try."""
    context = load_context()
    cells = [context.select_cells(None, [release])[0][0] for release in (BEFORE, AFTER)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "planted" / "planted.py"
        file.parent.mkdir()
        file.write_text(PLANTED)
        cases = [case for case in context.select_cases([str(file)]) if fnmatch(case.name, name)]
        for case in (case for _ in range(tries) for case in cases):
            load, start = os.getloadavg()[0], perf_counter()
            (one,) = run_bench(context, [case], cells, BenchOptions(), print_nothing).comparisons
            yield {
                "kind": case.name, "found": is_found(one), "text": describe_comparison(one),
                "seconds": round(perf_counter() - start, 1), "load": round(load, 1),
            }  # fmt: skip


def summarize(rows: list[dict[str, Any]]) -> None:
    """Print how often each kind of error was made."""
    compared = [row for row in rows if row["kind"] == "alarms"]
    if compared:
        alarms = sum(bool(row["alarm"]) for row in compared)
        loads = [row["load"] for row in compared]
        print(f"a release against its twin: {alarms} alarms in {len(compared)} comparisons of "
              f"{len({row['case'] for row in compared})} cases, "
              f"{100 * alarms / len(compared):.2f} %; {sum(row['phases'] for row in compared)} "
              f"phases; {sum(bool(row['problem']) for row in compared)} not measured; "
              f"median {median(row['seconds'] for row in compared):.0f} s; "
              f"load {min(loads)} to {max(loads)}")  # fmt: skip
    for kind in sorted({row["kind"] for row in rows} - {"alarms"}):
        tries = [row for row in rows if row["kind"] == kind]
        seconds = [row["seconds"] for row in tries]
        loads = [row["load"] for row in tries]
        print(f"{kind}: {sum(row['found'] for row in tries)} of {len(tries)} found, "
              f"median {median(seconds):.0f} s, at most {max(seconds):.0f} s; "
              f"load {min(loads)} to {max(loads)}")  # fmt: skip


def is_found(comparison: CaseComparison) -> bool:
    """Return whether the alarm of a planted case is the planted one."""
    time = {(one.phase, one.clock) for one in comparison.time if one.alarm}
    growth = {one.phase for one in comparison.growth if one.alarm}
    memory = {one.name for one in comparison.memory if one.alarm}
    return {
        # On a CPU a call of the loop returns when it has run.
        "planted/slower": bool(time & {("run", "cpu"), ("run", "wall"), ("dispatch", "cpu")}),
        "planted/quadratic": bool(growth & {"run", "dispatch"}),
        "planted/leaking": "leak" in memory,
    }[comparison.case]


def print_nothing(_: CaseComparison) -> None:
    """Print nothing: the comparisons are not adjusted yet."""


if __name__ == "__main__":
    main()
