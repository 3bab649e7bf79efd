"""Handing out the jobs of cells to slots: one scheduler for cases and for tests of suites."""

from __future__ import annotations

import queue
import threading
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from conformance.engine.job import Finished, Job, PlannedCell

    Emit = Callable[[Finished], None]


class JobUnits:
    """Jobs of a cell that no slot works on yet, in units that one process is to run in a row.

    Args:
        units: The units, in the order in which they are to be taken.
    """

    def __init__(self, units: Iterable[Sequence[Job]]) -> None:
        self._units = deque(list(unit) for unit in units if unit)
        self._lock = threading.Lock()

    def take(self) -> list[Job] | None:
        """Take the next unit, None where there is none."""
        with self._lock:
            return self._units.popleft() if self._units else None

    def give_back(self, jobs: Iterable[Job]) -> None:
        """Give back jobs that could not be run, to be taken next."""
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
        """Say whether one more slot is of use, in addition to some others."""
        ...

    def work(self, units: JobUnits) -> Iterator[Finished]:
        """Run units until none is left, and yield each job as it ends.

        Args:
            units: Where units are taken from, by other slots as well.
        """
        ...

    def interrupt(self) -> None:
        """End what is running, and let nothing start again."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


@dataclass(slots=True)
class CellQueue:
    """The jobs that are left of one cell, and how many slots work on them."""

    pool: WorkerPool
    units: JobUnits
    slots: int = 0

    @property
    def accelerator(self) -> str:
        """The accelerator it runs on, which has room for one slot; empty for none."""
        place = self.pool.planned.cell.place
        return place.name if place.real else ""


def schedule(queues: Sequence[CellQueue], slots: int) -> Generator[Finished]:
    """Run the jobs of cells and yield each as it ends; see `Executor.run`.

    Each slot takes the next cell that no slot works on, and helps with the longest queue when
    there is none: starting a cell's worker overlaps with another cell's jobs. An accelerator has
    one slot for all of its cells.

    Args:
        queues: The cells.
        slots: Threads that work on them.
    """
    board = _Board(queues)
    yield from run_in_slots(partial(_work, board), slots, board.abandon)


def _work(board: _Board, tell: Emit) -> None:
    while (cell := board.take_cell()) is not None:
        for finished in cell.pool.work(cell.units):
            if not board.abandoned:
                tell(finished)
        board.leave(cell)


class _Board:
    """Which cells have jobs left, and which slots work on them."""

    def __init__(self, queues: Sequence[CellQueue]) -> None:
        self._cells = queues
        self._lock = threading.Lock()
        self.abandoned = False

    def take_cell(self) -> CellQueue | None:
        with self._lock:
            taken = {cell.accelerator for cell in self._cells if cell.slots} - {""}
            waiting = [
                cell
                for cell in self._cells
                if cell.units and cell.accelerator not in taken and cell.pool.has_room(cell.slots)
            ]
            if not waiting:
                return None
            idle = [cell for cell in waiting if cell.slots == 0]
            cell = idle[0] if idle else max(waiting, key=lambda cell: len(cell.units))
            cell.slots += 1
            return cell

    def leave(self, cell: CellQueue) -> None:
        with self._lock:
            cell.slots -= 1
            last = cell.slots == 0
        if last:
            cell.pool.close()

    def abandon(self) -> None:
        """Drop what has not begun and end what is running."""
        with self._lock:
            self.abandoned = True
            for cell in self._cells:
                cell.units.clear()
        for cell in self._cells:
            cell.pool.interrupt()


def run_in_slots(
    work: Callable[[Emit], None], slots: int, abandon: Callable[[], None]
) -> Generator[Finished]:
    """Do the same work in several threads, and yield what they tell, in any order.

    Args:
        work: What each thread does, to its end; it is handed what takes a finished job.
        slots: Number of threads.
        abandon: Makes the work end, called once nobody listens any more.

    Yields:
        The finished jobs. Closing the iterator abandons the work, and waits for its end.

    Raises:
        BaseException: What a thread raised, for that is a fault of ours.
    """
    results: queue.SimpleQueue[Finished | BaseException | None] = queue.SimpleQueue()

    def slot() -> None:
        try:
            work(results.put)
        except BaseException as error:  # noqa: BLE001 - a fault of ours ends the run, loudly
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
