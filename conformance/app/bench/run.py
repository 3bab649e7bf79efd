"""`conformance bench`: cases are measured in several cells in turn, and neighbours compared."""

from __future__ import annotations

import os
import platform
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import psutil

from conformance.app.bench.result import BenchResult
from conformance.app.bench.rounds import CaseRounds
from conformance.app.context import count_usable_cores
from conformance.app.session import Session
from conformance.bench.comparison import (
    SUSPICIOUS,
    CaseComparison,
    Clock,
    adjust_comparisons,
    compare_growth,
    compare_memory,
    compare_times,
)
from conformance.bench.measured import (
    LEAK_CALLS,
    MEASUREMENTS,
    SECONDS,
    Measured,
    decode_measured,
    make_settings,
)
from conformance.bench.series import Series, collect_series
from conformance.engine.job import Job
from conformance.errors import UsageError
from conformance.model.outcome import Outcome
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.app.context import ProjectContext
    from conformance.bench.comparison import TimeComparison
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import FinishedJob, PlannedCell
    from conformance.engine.workers.warm import WarmExecutor
    from conformance.model.case import Case

SCREENING: Final = 5
"""Rounds of all cells, after which most cases are done; of a larger size before it is an alarm."""
SECOND_LOOK: Final = 3
"""Rounds of two cells before a suspicion of them is decided, if all cells have fewer rounds."""
CONFIRMING: Final = 40
"""Rounds at most that decide about a suspicion, of its two cells alone."""
CONFIRMING_SECONDS: Final = 60.0
"""Seconds after which no further round of a case begins."""
LEAST: Final = 10
"""Rounds that decide, at least."""
GLANCE: Final = 4
"""Rounds that decide after which a difference is looked for no longer if it is gone or certain."""
CERTAIN: Final = 1e-3
"""P-value of a difference that remains one when all p-values are adjusted for their number."""
MANY: Final = 10
"""Cells whose first measurements show how large differences usually are."""
LEAK_ROUNDS: Final = 3
"""Rounds that look for a leak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """Options of `conformance bench`.

    Attributes:
        precision: Half of the width of the interval of a ratio, relative to it, below which no
            other round is needed.
        seconds: Seconds of a job within which its passes are to end.
        screening: Rounds of all cells.
        jobs: Cases that are measured at the same time, each with one job at a time.
        threshold: Distance of the first estimate of a ratio from 1 that asks for more rounds.
        scale: Whether cases without sizes are measured with arguments of several lengths.
        only_needed: Whether as many sizes of a case are enough as its growth needs.
        confirming: Seconds of the rounds of two cells after which no further one begins.
    """

    precision: float = 0.02
    seconds: float = SECONDS
    scale: bool = False
    screening: int = SCREENING
    jobs: int = 1
    threshold: float = SUSPICIOUS
    only_needed: bool = False
    confirming: float = CONFIRMING_SECONDS


OVERVIEW: Final = BenchOptions(
    precision=0.1, seconds=0.15, screening=1, threshold=0.5, only_needed=True, confirming=15.0
)
"""Options that show what became half as slow again in any of many cells."""


class CellMeasurer:
    """Measures cases in cells, one job at a time.

    Args:
        executor: Runs the jobs in workers that stay open.
        cells: The cells; neighbours are compared.
        options: The options.

    Attributes:
        series: What was measured in the first rounds, of each case and phase.
    """

    def __init__(
        self, executor: WarmExecutor, cells: Sequence[PlannedCell], options: BenchOptions
    ) -> None:
        self._executor = executor
        self._cells = cells
        self._options = options
        self.series: list[Series] = []

    def compare(self, case: Case) -> Iterator[CaseComparison]:
        """Measure a case, and yield the comparison of each two neighbouring cells."""
        rounds = CaseRounds(case)
        everywhere = range(len(self._cells))
        for number in range(self._options.screening):
            self._measure_round(rounds, everywhere, number)
        for number in range(self._options.screening, SCREENING):
            pairs = [one for one in pairwise(everywhere) if rounds.problems.keys().isdisjoint(one)]
            # One measurement of a size is no difference yet: allocators have several states. A slow
            # one among those of many cells is not worth the rounds that decide.
            larger = {i for pair in pairs if rounds.has_memory_alarm(pair) for i in pair}
            again = pairs if number < SECOND_LOOK else []
            slower = {i for pair in again if self._find_suspected(rounds, pair) for i in pair}
            self._measure_round(rounds, sorted(larger), number % LEAK_ROUNDS, only_largest=True)
            self._measure_round(
                rounds, sorted(slower - larger), LEAK_ROUNDS + number, only_largest=True
            )
        largest = {index: rounds.select_largest(index) for index in rounds.measured}
        places = [(one.cell.id, one.release) for one in self._cells]
        self.series += collect_series(case.id, places, largest)
        for pair in pairwise(everywhere):
            yield self._compare_neighbours(rounds, pair)

    def _compare_neighbours(self, rounds: CaseRounds, pair: tuple[int, int]) -> CaseComparison:
        case = rounds.case
        ids = (self._cells[pair[0]].cell.id, self._cells[pair[1]].cell.id)
        size = case.sizes[-1] if case.sizes else None
        found = CaseComparison(case=case.id, size=size, cells=ids)
        if problems := [
            f"{cell}: {rounds.problems[i]}"
            for cell, i in zip(ids, pair, strict=True)
            if i in rounds.problems
        ]:
            return replace(found, problem="; ".join(problems))
        found = replace(
            found,
            time=rounds.compare_times(pair),
            memory=compare_memory(*map(rounds.select_largest, pair)),
            growth=compare_growth(*(rounds.group_sizes(i) for i in pair)),
        )
        suspected = self._find_suspected(rounds, pair)
        return self._confirm(rounds, pair, found, suspected) if suspected else found

    def _find_suspected(self, rounds: CaseRounds, pair: tuple[int, int]) -> set[tuple[str, Clock]]:
        """Return the phases and clocks in which two cells may differ."""
        if not rounds.problems.keys().isdisjoint(pair):
            return set()
        return {
            (one.phase, one.clock)
            for one in rounds.compare_times(pair)
            if one.is_suspicious(self._options.threshold)
            # Jobs beside each other wait for one another.
            and (self._options.jobs == 1 or one.clock is not Clock.WALL)
        }

    def _confirm(
        self,
        rounds: CaseRounds,
        pair: tuple[int, int],
        found: CaseComparison,
        suspected: set[tuple[str, Clock]],
    ) -> CaseComparison:
        """Measure two cells again, and compare what is new alone: the old pairs were selected."""
        fresh = CaseRounds(rounds.case)
        others = rounds.list_differences() if len(self._cells) >= MANY else {}
        decided: tuple[TimeComparison, ...] = ()
        grows = any(one.is_suspicious for one in found.growth)
        end = time.monotonic() + self._options.confirming
        for number in range(CONFIRMING):
            self._measure_round(fresh, pair, number + LEAK_ROUNDS, only_largest=not grows)
            if fresh.problems:
                return replace(found, problem="; ".join(fresh.problems.values()))
            is_late = time.monotonic() >= end
            if number + 1 < LEAST and number + 1 != GLANCE and not is_late:
                continue
            sides = (fresh.select_largest(i) for i in pair)
            decided = compare_times(*sides, confirm=suspected, others=others)
            open_ones = [one for one in decided if one.is_suspicious(self._options.threshold)]
            is_clear = all(one.ratio.p <= CERTAIN for one in open_ones)
            if is_late or (number + 1 == GLANCE and is_clear):
                break
            if number + 1 >= LEAST and all(map(self._is_settled, decided)):
                break
        rest = [one for one in found.time if (one.phase, one.clock) not in suspected]
        again = compare_growth(*(fresh.group_sizes(i) for i in pair)) if grows else found.growth
        return replace(found, time=(*decided, *rest), growth=again)

    def _is_settled(self, one: TimeComparison) -> bool:
        # What differs by less than was asked for needs no precision.
        return one.is_decided(self._options.precision) or not one.is_suspicious(
            self._options.threshold
        )

    def _measure_round(
        self,
        rounds: CaseRounds,
        cells: Iterable[int],
        number: int,
        *,
        only_largest: bool = False,
    ) -> None:
        """Measure a case once in each cell: there and, in the next round, back (ABBA)."""
        settings = make_settings(
            rounds.case, seconds=self._options.seconds, scale=self._options.scale,
            calls=LEAK_CALLS if number < LEAK_ROUNDS else 0, only_largest=only_largest,
            only_needed=self._options.only_needed,
        )  # fmt: skip
        order = [index for index in cells if index not in rounds.problems]
        for index in order if number % 2 == 0 else reversed(order):
            job = Job(case=rounds.case, planned=self._cells[index], alone=True, measure=settings)
            found = self._measure(job)
            if isinstance(found, str):
                rounds.problems[index] = found
            else:
                rounds.measured.setdefault(index, []).append(found)

    def _measure(self, job: Job) -> tuple[Measured, ...] | str:
        (finished,) = self._executor.run([job])
        return read_measured(finished)


def read_measured(finished: FinishedJob) -> tuple[Measured, ...] | str:
    """Return what a job measured, or why it measured nothing.

    Args:
        finished: A job with `measure`.
    """
    if finished.outcome is not Outcome.OK or MEASUREMENTS not in finished.blobs:
        error = finished.error
        reason = f"{error.type}: {error.message}".splitlines()[0] if error else "no measurements"
        return f"{finished.outcome}: {reason}"
    try:
        return decode_measured(finished.blobs[MEASUREMENTS])
    except ValueError as error:
        return str(error)


def describe_host(jobs: int = 1) -> str:
    """Return the processor, the load and what is counted on this host, in a line.

    Args:
        jobs: Cases that are measured at the same time.
    """
    load = os.getloadavg()[0]
    how = "one job at a time" if jobs == 1 else f"{jobs} cases at a time"
    return (
        f"host: {plural(count_usable_cores(), 'core')}, load {load:.1f}, {platform.machine()}; "
        f"processor time and wall-clock time, {how}, nothing pinned"
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
    # Each round needs the workers of all cells.
    memory = psutil.virtual_memory().available * 3 // 4
    with closing(session.make_warm_executor(locks, slots=options.jobs, memory=memory)) as executor:
        bench = CellMeasurer(executor, planned, options)
        try:
            for comparison in compare_in_turn(bench, cases, options.jobs):
                report(comparison)
                found.append(comparison)
        except KeyboardInterrupt:
            complete = False
    releases = {one.cell.id: one.release for one in planned}
    # Cases that are measured at the same time end in any order.
    found.sort(key=lambda one: one.case)
    series = sorted(bench.series, key=lambda one: one.case)
    return BenchResult(releases, adjust_comparisons(found), series, complete)


def compare_in_turn(
    bench: CellMeasurer, cases: Iterable[Case], jobs: int
) -> Iterator[CaseComparison]:
    """Yield the comparisons of cases, so many of which are measured at the same time.

    A case is taken only when its turn has come: a limit of minutes ends the cases.
    """
    if jobs == 1:
        for case in cases:
            yield from bench.compare(case)
        return

    def compare(case: Case) -> list[CaseComparison]:
        return list(bench.compare(case))

    threads = ThreadPoolExecutor(jobs, "case")
    running: set[Future[list[CaseComparison]]] = set()
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
