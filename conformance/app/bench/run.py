"""`conformance bench`: cases are measured in several cells in turn, and neighbours compared."""

from __future__ import annotations

import os
import platform
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import closing
from typing import TYPE_CHECKING, Final

import psutil

from conformance.app.bench.measurer import CellMeasurer
from conformance.app.bench.result import BenchResult
from conformance.app.context import count_usable_cores
from conformance.app.session import Session
from conformance.bench.comparison import CaseComparison, adjust_comparisons
from conformance.errors import UsageError
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.app.bench.measurer import BenchOptions
    from conformance.app.bench.suspicion import Suspicion
    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell
    from conformance.model.case import Case

TOGETHER: Final = 8
"""Cases that may differ and are measured again together, as they share new workers."""


def describe_host(jobs: int = 1) -> str:
    """Return the processor, the load and what is counted on this host, in a line.

    Args:
        jobs: Cases that are measured at the same time.
    """
    load = os.getloadavg()[0]
    how = "one case at a time" if jobs == 1 else f"{jobs} cases at a time"
    return (
        f"host: {plural(count_usable_cores(), 'core')}, load {load:.1f}, {platform.machine()}; "
        f"processor time and wall-clock time, {how}; two jobs that take turns share a processor, "
        "except to compile"
    )


def run_bench(
    context: ProjectContext,
    cases: Iterable[Case],
    cells: Sequence[Cell],
    options: BenchOptions,
    report: Callable[[CaseComparison], None],
) -> BenchResult:
    """Measure cases in cells, and compare neighbouring cells.

    Args:
        context: The project.
        cases: The cases.
        cells: At least two cells, of which neighbours are compared; one may occur twice.
        options: The options.
        report: Called with each comparison as it is made.

    Returns:
        All comparisons, their p-values adjusted for their number, and what was measured. An
        interrupt ends the measurements, and keeps those of the cases before.

    Raises:
        UsageError: If there are fewer than two cells, or one cannot be installed.
    """
    if len(cells) < 2:  # noqa: PLR2004 - a comparison has two sides
        raise UsageError(f"{len(cells)} cell, expected two or more to compare; add --cell")
    session = Session(context=context)
    locks: dict[str, Lock] = {}
    planned = []
    for cell in cells:
        one, lock = session.prepare_cell(cell)
        planned.append(one)
        locks |= lock
    return measure_cells(session, planned, locks, cases, options=options, report=report)


def measure_cells(
    session: Session,
    planned: Sequence[PlannedCell],
    locks: Mapping[str, Lock],
    cases: Iterable[Case],
    *,
    options: BenchOptions,
    report: Callable[[CaseComparison], None],
) -> BenchResult:
    """Measure cases in cells that are prepared; see `run_bench`.

    Args:
        session: Runs jobs in the project.
        planned: The cells, of which neighbours are compared.
        locks: Lock of each cell, by cell id.
        cases: The cases.
        options: The options.
        report: Called with each comparison as it is made.
    """
    found, complete = [], True
    # Each round needs the workers of all cells; the two jobs that take turns need a slot each.
    memory = psutil.virtual_memory().available * 3 // 4
    with closing(
        session.make_warm_executor(locks, slots=2 * options.jobs, memory=memory)
    ) as executor:
        bench = CellMeasurer(executor, planned, options)
        try:
            for comparison in compare_cases(bench, cases, options.jobs):
                report(comparison)
                found.append(comparison)
        except KeyboardInterrupt:
            complete = False
    releases = {one.cell.id: one.release for one in planned}
    # Cases that are measured at the same time end in any order.
    found.sort(key=lambda one: one.case)
    series = sorted(bench.series, key=lambda one: one.case)
    return BenchResult(releases, adjust_comparisons(found), series, complete)


def compare_cases(
    bench: CellMeasurer, cases: Iterable[Case], jobs: int
) -> Iterator[CaseComparison]:
    """Yield the comparisons of cases: those that may differ later, `TOGETHER` of them at a time.

    Args:
        bench: Measures cases.
        cases: The cases; each is taken only when its turn has come, as minutes may be limited.
        jobs: Cases that are measured at the same time.
    """
    waiting: list[Suspicion] = []
    for one in compare_in_turn(bench, cases, jobs):
        if isinstance(one, CaseComparison):
            yield one
            continue
        waiting.append(one)
        if len(waiting) == TOGETHER:
            yield from bench.decide(waiting)
            waiting = []
    yield from bench.decide(waiting)


def compare_in_turn(
    bench: CellMeasurer, cases: Iterable[Case], jobs: int
) -> Iterator[CaseComparison | Suspicion]:
    """Yield the first comparisons of cases, so many of which are measured at the same time."""
    if jobs == 1:
        for case in cases:
            yield from bench.compare(case)
        return

    def compare(case: Case) -> list[CaseComparison | Suspicion]:
        return list(bench.compare(case))

    threads = ThreadPoolExecutor(jobs, "case")
    running: set[Future[list[CaseComparison | Suspicion]]] = set()
    try:
        for case in cases:
            running.add(threads.submit(compare, case))
            if len(running) == jobs:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (one for future in ended for one in future.result())
        for future in as_completed(running):
            yield from future.result()
    finally:
        # After an interrupt the caller ends the workers, and with them what still runs.
        threads.shutdown(wait=False, cancel_futures=True)
