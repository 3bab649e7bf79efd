"""The placement of jobs on the nodes of a cluster. Pure: it only decides.

A node gets a batch of the cell whose worker it has open; else of a cell that no node serves; else
it helps with the cell that has the most work left, if starting one more worker is worth it.
Batches become smaller towards the end, so that no node holds up a run.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.engine.batches import (
    ROUNDS,
    Batch,
    get_cell_key,
    get_file_key,
    get_required_accelerator,
    take_batch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from conformance.engine.job import Job

    JobId = tuple[str, str]

LONGEST: Final = 45.0
"""Estimated seconds of the longest batch, unless it is a single job."""
SESSION: Final = 20.0
"""Estimated seconds of a batch of tests at the end of a run: each starts a session of pytest."""
SHORTEST: Final = 2.0
"""Estimated seconds of a batch at the end of a run; shorter ones cost more than they balance."""
DISPATCH: Final = 0.02
"""Seconds that the run takes to send a batch and to take its results, while other batches wait.

With hundreds of nodes, shorter batches would end faster than the run can send the next ones.
"""
START: Final = 10.0
"""Estimated seconds to start one more worker of a cell."""
DEATHS: Final = 3
"""Nodes that may end with a job before it runs alone."""


@dataclass(slots=True)
class NodeState:
    """A node as the placement sees it.

    Attributes:
        slots: Batches at the same time.
        machine: Id of its machine; nodes on a machine share its accelerators.
        accelerators: Platforms with an accelerator.
        running: Its batches, by key.
        warm: Cells with an open worker.
        refused: Cells that it does not serve.
    """

    slots: int
    machine: str
    accelerators: frozenset[str] = frozenset()
    running: dict[str, Batch] = field(default_factory=dict)
    warm: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)


class _NodeKind(NamedTuple):
    """State of a node that decides whether there is a batch for its free slot.

    Attributes:
        machine: Id of its machine, empty if no batch there has to wait for another one.
        accelerators: Platforms with an accelerator.
        refused: Cells that it does not serve.
        warm: Cells with an open worker and with jobs that no node has.
    """

    machine: str
    accelerators: frozenset[str]
    refused: frozenset[str]
    warm: frozenset[str]


class _CellQueue:
    """The jobs of a cell that no node has, in order."""

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()
        self.seconds = 0.0
        self.accelerator = ""

    def begin_later(self, part: float) -> None:
        """Begin with another file, and end with those before it.

        If hundreds of nodes ran the files of their cells in the same order, all would come to the
        shortest jobs at the same time, faster than the run can take their results.

        Args:
            part: Part of the files to begin after, 0 or more and less than 1.
        """
        files = groupby(self.jobs, get_file_key)
        sizes = [sum(1 for _ in jobs) for _, jobs in files]
        self.jobs.rotate(-sum(sizes[: int(part * len(sizes))]))


class Placement:
    """Decides which node runs which jobs.

    Args:
        jobs: All jobs, those of a cell and file together.
        estimate: Returns the expected seconds of a job.
    """

    def __init__(self, jobs: Iterable[Job], estimate: Callable[[Job], float]) -> None:
        self._estimate = estimate
        self._cells: dict[str, _CellQueue] = {}
        # Jobs that nothing may run beside: measurements, and those that may have ended nodes.
        self._alone: deque[Job] = deque()
        # Machines that had such a job, or one that needs an accelerator.
        self._guarded: set[str] = set()
        self._nodes: dict[str, NodeState] = {}
        self._left: dict[JobId, Job] = {}
        self._deaths: dict[JobId, int] = {}
        self._keys = count()
        self._seconds = 0.0
        for job in jobs:
            self._left[job.id] = job
            self._enqueue(job)
        for number, queue in enumerate(self._cells.values()):
            queue.begin_later(number / len(self._cells))

    @property
    def left(self) -> int:
        """Number of jobs without a result."""
        return len(self._left)

    @property
    def nodes(self) -> Collection[str]:
        """Addresses of the nodes."""
        return self._nodes.keys()

    @property
    def running(self) -> int:
        """Number of batches on nodes."""
        return sum(len(node.running) for node in self._nodes.values())

    def add_node(
        self, address: str, *, slots: int, machine: str, accelerators: Iterable[str] = ()
    ) -> None:
        """Add a node.

        Args:
            address: Its address.
            slots: Batches at the same time.
            machine: Id of its machine.
            accelerators: Platforms with an accelerator.
        """
        self._nodes[address] = NodeState(slots, machine, frozenset(accelerators))

    def remove_node(self, address: str) -> list[Job]:
        """Remove a node that has ended; its jobs go elsewhere.

        Args:
            address: Its address.

        Returns:
            Jobs that are to blame: nodes ended with them repeatedly, the last one ran nothing else.
        """
        node = self._nodes.pop(address, None)
        blamed = []
        for batch in () if node is None else node.running.values():
            for job in reversed(batch.jobs):
                if job.id not in self._left:
                    continue
                deaths = self._deaths[job.id] = self._deaths.get(job.id, 0) + 1
                if batch.alone and len(batch.jobs) == 1 and deaths > DEATHS:
                    del self._left[job.id]
                    blamed.append(job)
                else:
                    self._enqueue(job, first=True)
        return blamed

    def assign(self) -> Iterator[tuple[str, Batch]]:
        """Yield nodes with batches for their free slots, each already counted as running."""
        # What a node cannot get is not offered to nodes like it: at the end of a run on hundreds of
        # nodes most of them wait, and each batch leaves them less.
        waiting: set[_NodeKind] = set()
        found = self._has_jobs()
        # A batch for each node in turn, so that the nodes share the first cells.
        while found:
            found = False
            for address, node in self._nodes.items():
                if len(node.running) >= node.slots or (kind := self._find_kind(node)) in waiting:
                    continue
                batch = self._take(node)
                if batch is None:
                    waiting.add(kind)
                    continue
                node.running[batch.key] = batch
                node.warm.add(batch.cell)
                if batch.alone or batch.accelerator:
                    self._guarded.add(node.machine)
                found = True
                yield address, batch

    def find_batch(self, address: str, key: str) -> Batch | None:
        """Return a running batch, None if the node does not run it.

        Args:
            address: Node of the batch.
            key: Key of the batch.
        """
        node = self._nodes.get(address)
        return None if node is None else node.running.get(key)

    def finish(self, job: JobId) -> bool:
        """Count a job as finished.

        Args:
            job: Id of the job.

        Returns:
            Whether it had no result before; another one is no result.
        """
        return self._left.pop(job, None) is not None

    def end(self, address: str, key: str, warm: Iterable[str] | None = None) -> None:
        """End a batch; jobs without a result go elsewhere.

        Args:
            address: Node of the batch.
            key: Key of the batch.
            warm: Cells with an open worker on the node, None if unknown.
        """
        node = self._nodes.get(address)
        batch = None if node is None else node.running.pop(key, None)
        if node is None or batch is None:
            return
        if warm is not None:
            # The cells of running batches are about to be open.
            node.warm = {*warm, *(other.cell for other in node.running.values())}
        for job in reversed(batch.jobs):
            if job.id in self._left:
                self._enqueue(job, first=True)

    def refuse(self, address: str, key: str) -> None:
        """Note that a node does not serve the cell of a batch, and end the batch.

        Args:
            address: Node of the batch.
            key: Key of the batch.
        """
        node = self._nodes.get(address)
        if node is not None and key in node.running:
            cell = node.running[key].cell
            node.refused.add(cell)
            self.end(address, key)
            node.warm.discard(cell)

    def take_refused(self) -> list[Job]:
        """Return the jobs that no node serves, and give them up."""
        refused = [
            job
            for queue in (*(cell.jobs for cell in self._cells.values()), self._alone)
            for job in queue
            if self._nodes and not any(_serves(node, job) for node in self._nodes.values())
        ]
        for job in refused:
            del self._left[job.id]
            self._remove(job)
        return refused

    def _enqueue(self, job: Job, *, first: bool = False) -> None:
        if job.measure or self._deaths.get(job.id, 0) >= DEATHS:
            self._alone.append(job)
            return
        queue = self._cells.setdefault(get_cell_key(job), _CellQueue())
        queue.accelerator = get_required_accelerator(job)
        (queue.jobs.appendleft if first else queue.jobs.append)(job)
        seconds = self._estimate(job)
        queue.seconds += seconds
        self._seconds += seconds

    def _remove(self, job: Job) -> None:
        if job in self._alone:
            self._alone.remove(job)
            return
        queue = self._cells[get_cell_key(job)]
        queue.jobs.remove(job)
        seconds = self._estimate(job)
        queue.seconds -= seconds
        self._seconds -= seconds

    def _has_jobs(self) -> bool:
        return bool(self._alone) or any(queue.jobs for queue in self._cells.values())

    def _find_kind(self, node: NodeState) -> _NodeKind:
        warm = (cell for cell in node.warm if cell in self._cells and self._cells[cell].jobs)
        machine = node.machine if self._is_guarded(node) else ""
        return _NodeKind(machine, node.accelerators, frozenset(node.refused), frozenset(warm))

    def _is_guarded(self, node: NodeState) -> bool:
        """Return whether batches on the machine of a node may have to wait for each other."""
        return bool(self._alone) or node.machine in self._guarded

    def _take(self, node: NodeState) -> Batch | None:
        """Return the next batch for a node, None if it has to wait."""
        busy: set[str] = set()
        if self._is_guarded(node):
            neighbours = [one for one in self._nodes.values() if one.machine == node.machine]
            running = [batch for one in neighbours for batch in one.running.values()]
            if any(batch.alone for batch in running):
                return None
            if not running:
                for job in self._alone:
                    if _serves(node, job):
                        self._alone.remove(job)
                        return Batch(str(next(self._keys)), (job,), self._estimate(job), alone=True)
            busy = {batch.accelerator for batch in running} - {""}
        cell = self._choose_cell(node, busy)
        return None if cell is None else self._cut(cell)

    def _choose_cell(self, node: NodeState, busy: Collection[str]) -> str | None:
        waiting = {
            cell: queue
            for cell, queue in self._cells.items()
            if queue.jobs
            and cell not in node.refused
            and queue.accelerator not in busy
            and queue.accelerator in {"", *node.accelerators}
        }
        # Its worker is open, so that the batch starts at once.
        if warm := [cell for cell in waiting if cell in node.warm]:
            return max(warm, key=lambda cell: waiting[cell].seconds)
        serving = dict.fromkeys(waiting, 0)
        for other in self._nodes.values():
            for cell in other.warm & serving.keys():
                serving[cell] += 1
        if cold := [cell for cell, nodes in serving.items() if not nodes]:
            return max(cold, key=lambda cell: waiting[cell].seconds)
        shares = {cell: waiting[cell].seconds / (serving[cell] + 1) for cell in waiting}
        longest = max(shares, key=lambda cell: shares[cell], default="")
        return longest if longest and shares[longest] > START else None

    def _cut(self, cell: str) -> Batch:
        """Take a batch from the jobs of a cell."""
        queue = self._cells[cell]
        slots = sum(node.slots for node in self._nodes.values())
        is_suite = queue.jobs[0].case.kind == "test"
        least = max(SESSION if is_suite else SHORTEST, DISPATCH * slots)
        limit = min(LONGEST, max(least, self._seconds / (ROUNDS * slots)))
        jobs, seconds = take_batch(queue.jobs, limit, self._estimate)
        queue.seconds -= seconds
        self._seconds -= seconds
        if not queue.jobs:
            # Floating-point sums of removed jobs would leave a rest.
            queue.seconds = 0.0
        return Batch(str(next(self._keys)), jobs, seconds)


def _serves(node: NodeState, job: Job) -> bool:
    if get_required_accelerator(job) not in {"", *node.accelerators}:
        return False
    return get_cell_key(job) not in node.refused
