"""Measures a case in several cells, as often as it takes to tell whether neighbours differ."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from conformance.app.bench.rounds import CaseRounds
from conformance.app.bench.suspicion import LAYOUT, Suspicion
from conformance.bench.comparison import (
    SUSPICIOUS,
    CaseComparison,
    compare_growth,
    compare_memory,
)
from conformance.bench.measured import (
    LEAK_CALLS,
    MEASUREMENTS,
    SECONDS,
    Clock,
    Measured,
    decode_measured,
    make_settings,
)
from conformance.bench.series import Series, collect_series
from conformance.engine.job import Job
from conformance.engine.plan import find_exclusion_reason
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.bench.comparison import TimeComparison
    from conformance.engine.job import FinishedJob, PlannedCell
    from conformance.engine.workers.warm import WarmExecutor
    from conformance.model.case import Case

SCREENING: Final = 4
"""Rounds of all cells, after which most cases are done."""
SIZE_ROUNDS: Final = 5
"""Rounds before a larger size is an alarm."""
MORE: Final = 4
"""Rounds more of two cells that may differ, before new workers decide."""
SECOND_LOOK: Final = 3
"""Rounds of two cells before a suspicion of them is decided, if all cells have fewer rounds."""
CONFIRMING: Final = 40
"""Rounds at most that decide about a suspicion, of its two cells alone."""
CONFIRMING_SECONDS: Final = 45.0
"""Seconds after which no further round of a case begins."""
HIDDEN: Final = 0.02
"""Part of a difference that the addresses of the two workers of the first rounds may hide."""
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
        threshold: Distance of a ratio from 1 that is looked for; somewhat less of it in the first
            rounds asks for more.
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
    """Measures cases in cells; at each time one job works.

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

    def compare(self, case: Case) -> Iterator[CaseComparison | Suspicion]:
        """Measure a case, and yield the comparison of each two neighbouring cells.

        A small difference is a suspicion for now; `decide` tells whether it is one.

        The two cells of a comparison take turns. Many cells are measured one after the other first:
        all of them at once would take too much memory, and two at a time twice as long.
        """
        everywhere = range(len(self._cells))
        is_few = len(self._cells) < MANY
        screened: list[tuple[Sequence[int], CaseRounds]] = []
        largest: dict[int, list[Measured]] = {}
        for group in pairwise(everywhere) if is_few else [everywhere]:
            rounds = CaseRounds(case, in_turns=is_few)
            self._screen(rounds, group)
            screened.append((group, rounds))
            for index in group:
                largest.setdefault(index, []).extend(rounds.select_largest(index))
        # Before the first comparison, after which an interrupt may end everything.
        places = [(one.cell.id, one.release) for one in self._cells]
        self.series += collect_series(case.id, places, largest)
        for cells, rounds in screened:
            for pair in pairwise(cells):
                one = self._compare_neighbours(rounds, pair)
                if isinstance(one, Suspicion) and not one.is_small:
                    yield from self.decide([one])
                else:
                    yield one

    def _screen(self, rounds: CaseRounds, group: Sequence[int]) -> None:
        """Measure cells as often as it takes to suspect differences of neighbours."""
        for index in group:
            if reason := find_exclusion_reason(rounds.case, self._cells[index]):
                rounds.problems[index] = reason
        for number in range(self._options.screening):
            self._measure_round(rounds, group, number)
        for number in range(self._options.screening, SIZE_ROUNDS):
            pairs = [one for one in pairwise(group) if rounds.problems.keys().isdisjoint(one)]
            # One measurement of a size is no difference yet: allocators have several states. A slow
            # one among those of many cells is not worth the rounds that decide.
            larger = {i for pair in pairs if rounds.has_memory_alarm(pair) for i in pair}
            again = pairs if number < SECOND_LOOK else []
            slower = {i for pair in again if self._find_suspected(rounds, pair) for i in pair}
            self._measure_round(rounds, sorted(larger), number % LEAK_ROUNDS, only_largest=True)
            self._measure_round(
                rounds, sorted(slower - larger), LEAK_ROUNDS + number, only_largest=True
            )
        # Noise raises most suspicions, and a round costs less than new workers do.
        if rounds.in_turns and any(self._find_suspected(rounds, pair) for pair in pairwise(group)):
            for number in range(MORE):
                self._measure_round(rounds, group, LEAK_ROUNDS + number, only_largest=True)

    def _compare_neighbours(
        self, rounds: CaseRounds, pair: tuple[int, int]
    ) -> CaseComparison | Suspicion:
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
        suspected = self._select_suspected(found.time)
        if not suspected:
            return found
        # Beside a large difference, small ones are not worth new workers in each round.
        large = {one.key for one in suspected if not one.is_within(LAYOUT)}
        others = rounds.list_differences() if len(self._cells) >= MANY else {}
        return Suspicion(
            found=found, pair=pair, suspected=large or {one.key for one in suspected},
            others=others, rounds=CaseRounds(case, in_turns=True),
        )  # fmt: skip

    def _find_suspected(self, rounds: CaseRounds, pair: tuple[int, int]) -> list[TimeComparison]:
        """Return the phases and clocks in which two cells may differ."""
        if not rounds.problems.keys().isdisjoint(pair):
            return []
        return self._select_suspected(rounds.compare_times(pair))

    def _select_suspected(self, compared: Iterable[TimeComparison]) -> list[TimeComparison]:
        threshold = max(self._options.threshold - HIDDEN, self._options.threshold / 2)
        return [
            one
            for one in compared
            if one.is_suspicious(threshold)
            # Jobs beside each other wait for one another.
            and (self._options.jobs == 1 or one.clock is not Clock.WALL)
        ]

    def decide(self, suspicions: Sequence[Suspicion]) -> Iterator[CaseComparison]:
        """Measure cases until it is clear whether they differ, and yield each comparison then.

        Small differences need new workers in each round, which all of these cases share: the jobs
        of a worker have its addresses, and some workers take a fifth longer for each call than
        others of the same release.
        """
        undecided = list(suspicions)
        # Two thirds of the time of one case are for new workers, which all of them share.
        end = time.monotonic() + self._options.confirming * (2 + len(undecided)) / 3
        for number in range(CONFIRMING):
            if any(one.is_small for one in undecided):
                for index in sorted({index for one in undecided for index in one.pair}):
                    self._executor.renew(self._cells[index])
            for one in undecided.copy():
                self._measure_round(
                    one.rounds, one.pair, LEAK_ROUNDS + number, only_largest=not one.grows
                )
                if one.is_over(
                    threshold=self._options.threshold, precision=self._options.precision,
                    is_late=time.monotonic() >= end or number + 1 == CONFIRMING,
                ):  # fmt: skip
                    undecided.remove(one)
                    yield one.conclude()
            if not undecided:
                return

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
            calls=LEAK_CALLS if number < LEAK_ROUNDS else 0,
            only_largest=only_largest, only_needed=self._options.only_needed,
        )  # fmt: skip
        order = [index for index in cells if index not in rounds.problems]
        if number % 2:
            order.reverse()
        if rounds.in_turns and len(order) > 1 and self._can_take_turns:
            self._measure_in_turns(rounds, order, settings)
        else:
            for index in order:
                self._run(rounds, {index: settings})

    @property
    def _can_take_turns(self) -> bool:
        """Whether two jobs may run at the same time, each in one process."""
        places = [one.cell.place for one in self._cells]
        return not any(place.real or place.processes > 1 for place in places)

    def _measure_in_turns(
        self, rounds: CaseRounds, pair: Sequence[int], settings: dict[str, Any]
    ) -> None:
        """Measure a case in two cells at the same time: one job works, the other one waits."""
        with TemporaryDirectory(prefix="conformance-") as folder:
            path = f"{folder}/turns"
            both = {**settings, "seconds": 2 * settings["seconds"]}
            self._run(
                rounds,
                {i: {**both, "turns": {"path": path, "first": i == pair[0]}} for i in pair},
            )

    def _run(self, rounds: CaseRounds, settings: Mapping[int, dict[str, Any]]) -> None:
        """Measure a case in cells at the same time, each with settings of its own."""
        # Jobs that take turns wait for each other.
        case = replace(rounds.case, timeout=len(settings) * rounds.case.timeout)
        jobs = {
            Job(case=case, planned=self._cells[index], alone=True, measure=own): index
            for index, own in settings.items()
        }
        for finished in self._executor.run(jobs):
            index, found = jobs[finished.job], read_measured(finished)
            if isinstance(found, str):
                rounds.problems[index] = found
            else:
                rounds.measured.setdefault(index, []).append(found)


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
