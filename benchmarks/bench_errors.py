"""How often `conformance bench` errs: false alarms, and planted differences that it misses.

    python benchmarks/bench_errors.py alarms [RUNS]      a release against itself, all cases
    python benchmarks/bench_errors.py planted [TRIES]    10 % slower, quadratic, 1 MB lost a call

The planted cases do more on 0.12.0.1 than on 0.12.0, two releases whose compilers are the same.
Prints each alarm of equal releases, and each planted difference that was missed, with the seconds
that a try takes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from conformance.app.bench import BenchOptions, run_bench
from conformance.app.bench_choice import FAMILY
from conformance.app.context import load_context
from conformance.report.bench_text import describe_comparison

if TYPE_CHECKING:
    from conformance.bench.comparison import CaseComparison

BEFORE, AFTER = "0.12.0", "0.12.0.1"
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
    """Measure one kind of error."""
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind == "alarms":
        count_alarms(int(sys.argv[2]) if len(sys.argv) > 2 else 1)  # noqa: PLR2004
    elif kind == "planted":
        count_missed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)  # noqa: PLR2004
    else:
        raise SystemExit(__doc__)


def count_alarms(runs: int) -> None:
    """Print the alarms of a release against itself."""
    context = load_context()
    cases = context.select_cases([FAMILY])
    cell = context.select_cells(None, ["latest"])[0][0]
    alarms = total = 0
    for number in range(runs):
        start = perf_counter()
        found = run_bench(context, cases, [cell, cell], BenchOptions(), print_nothing).comparisons
        alarmed = [one for one in found if one.alarms]
        alarms, total = alarms + len(alarmed), total + len(found)
        for one in alarmed:
            print(f"  {describe_comparison(one)}")
        seconds = perf_counter() - start
        print(
            f"run {number + 1}: {len(alarmed)} of {len(found)} cases, {seconds:.0f} s", flush=True
        )
    print(f"false alarms: {alarms} of {total}, {100 * alarms / total:.2f} %")


def count_missed(tries: int) -> None:
    """Print how often each planted difference was found."""
    context = load_context()
    cells = [context.select_cells(None, [name])[0][0] for name in (BEFORE, AFTER)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "planted" / "planted.py"
        file.parent.mkdir()
        file.write_text(PLANTED)
        for case in context.select_cases([str(file)]):
            found, longest = 0, 0.0
            for _ in range(tries):
                start = perf_counter()
                (one,) = run_bench(
                    context, [case], cells, BenchOptions(), print_nothing
                ).comparisons
                longest = max(longest, perf_counter() - start)
                found += is_found(one)
                if not is_found(one):
                    print(f"  missed: {describe_comparison(one)}")
            print(f"{case.id}: {found} of {tries}, at most {longest:.0f} s", flush=True)


def is_found(comparison: CaseComparison) -> bool:
    """Return whether the alarm of a planted case is the planted one."""
    time = {(one.phase, one.clock) for one in comparison.time if one.alarm}
    growth = {one.phase for one in comparison.growth if one.alarm}
    memory = {one.name for one in comparison.memory if one.alarm}
    return {
        "planted/slower": bool(time & {("run", "cpu"), ("run", "wall")}),
        "planted/quadratic": bool(growth & {"run", "dispatch"}),
        "planted/leaking": "leak" in memory,
    }[comparison.case]


def print_nothing(_: CaseComparison) -> None:
    """Print nothing: the comparisons are not adjusted yet."""


if __name__ == "__main__":
    main()
