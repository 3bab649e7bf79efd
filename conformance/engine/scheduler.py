"""The scheduler: assigns the jobs of cells to slots, for cases and for tests of suites."""

from __future__ import annotations

import queue
import threading
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from conformance.engine.job import FinishedJob, Job, PlannedCell

    Emit = Callable[[FinishedJob], None]


class JobUnits:
    """The jobs of a cell that have not started, in units that one process runs in sequence.

    Args:
        units: The units, in order.
    """

    def __init__(self, units: Iterable[Sequence[Job]]) -> None:
        self._units = deque(list(unit) for unit in units if unit)
        self._lock = threading.Lock()

    def take(self) -> list[Job] | None:
        """Take the next unit, None if there is none."""
        with self._lock:
            return self._units.popleft() if self._units else None

    def give_back(self, jobs: Iterable[Job]) -> None:
        """Return jobs that could not run; they are taken next."""
        with self._lock:
            self._units.extendleft(filter(None, [list(jobs)]))

    def clear(self) -> None:
        """Drop all units."""
        with self._lock:
            self._units.clear()

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs of all units."""
        with self._lock:
            return tuple(job for unit in self._units for job in unit)

    def __len__(self) -> int:
        return len(self._units)


class WorkerPool(Protocol):
    """The workers of one cell, in which several slots run jobs."""

    @property
    def planned(self) -> PlannedCell:
        """The cell."""
        ...

    def has_room(self, slots: int) -> bool:
        """Return whether one more slot is useful in addition to `slots` others."""
        ...

    def work(self, units: JobUnits) -> Iterator[FinishedJob]:
        """Run units until none is left, and yield each job as it ends.

        Args:
            units: The units, which other slots take as well.
        """
        ...

    def interrupt(self) -> None:
        """End the running jobs, and let nothing start again."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


@dataclass(slots=True)
class CellQueue:
    """The remaining jobs of one cell, and the number of slots that work on them."""

    pool: WorkerPool
    units: JobUnits
    slots: int = 0

    @property
    def accelerator(self) -> str:
        """The accelerator of the cell, which has room for one slot; empty for none."""
        # By name: cells of several releases run on the same accelerator.
        place = self.pool.planned.cell.place
        return place.name if place.real else ""


def schedule(queues: Sequence[CellQueue], slots: int) -> Generator[FinishedJob]:
    """Run the jobs of cells and yield each as it ends; see `Executor.run`.

    Each slot takes the next cell that no slot works on, else it joins the longest queue: so the
    start of a cell's worker overlaps with the jobs of another cell. An accelerator has one slot for
    all of its cells.

    Args:
        queues: Cells with their jobs.
        slots: Number of threads.
    """
    board = _Board(queues)
    yield from run_in_slots(partial(_work, board), slots, board.abandon)


def _work(board: _Board, emit: Emit) -> None:
    # The same slot goes from cell to cell until no cell has jobs left.
    while (cell := board.take_cell()) is not None:
        for finished in cell.pool.work(cell.units):
            # The ends of interrupted jobs are no results.
            if not board.abandoned:
                emit(finished)
        board.leave(cell)


class _Board:
    """The cells with remaining jobs, and the slots that work on them."""

    def __init__(self, queues: Sequence[CellQueue]) -> None:
        self._cells = queues
        self._lock = threading.Lock()
        self.abandoned = False

    def take_cell(self) -> CellQueue | None:
        with self._lock:
            # An interrupted slot gives back what it had taken after the queues were cleared.
            if self.abandoned:
                return None
            busy = {cell.accelerator for cell in self._cells if cell.slots} - {""}
            candidates = [
                cell
                for cell in self._cells
                if cell.units and cell.accelerator not in busy and cell.pool.has_room(cell.slots)
            ]
            if not candidates:
                return None
            idle = [cell for cell in candidates if cell.slots == 0]
            cell = idle[0] if idle else max(candidates, key=lambda cell: len(cell.units))
            cell.slots += 1
            return cell

    def leave(self, cell: CellQueue) -> None:
        with self._lock:
            cell.slots -= 1
            last = cell.slots == 0
        # Outside the lock, because ending a worker takes up to seconds.
        if last:
            cell.pool.close()

    def abandon(self) -> None:
        """Drop the jobs that have not started, and end those that are running."""
        with self._lock:
            self.abandoned = True
            for cell in self._cells:
                cell.units.clear()
        for cell in self._cells:
            cell.pool.interrupt()


def run_in_slots(
    work: Callable[[Emit], None], slots: int, abandon: Callable[[], None]
) -> Generator[FinishedJob]:
    """Do the same work in several threads, and yield the jobs that they finish, in any order.

    Args:
        work: Work of each thread; it calls its argument with each finished job.
        slots: Number of threads.
        abandon: Ends the work early; called when the iterator is closed or exhausted.

    Yields:
        The finished jobs. Closing the iterator abandons the work, and waits for its end.

    Raises:
        BaseException: The exception of a thread, which is a bug in the harness.
    """
    results: queue.SimpleQueue[FinishedJob | BaseException | None] = queue.SimpleQueue()

    def slot() -> None:
        try:
            work(results.put)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that reads the results
            results.put(error)
        results.put(None)

    threads = [threading.Thread(target=slot, name=f"slot-{n}", daemon=True) for n in range(slots)]
    for thread in threads:
        thread.start()
    ended = 0
    try:
        while ended < len(threads):
            result = results.get()
            if result is None:
                ended += 1
            elif isinstance(result, BaseException):
                raise result
            else:
                yield result
    finally:
        abandon()
        for thread in threads:
            thread.join()
