"""The dispatcher of a run: sends batches to nodes, takes their updates, and bears their faults."""

from __future__ import annotations

import logging
import queue
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from conformance.cluster.dask_worker import NAME, run_batch
from conformance.cluster.messages import (
    BatchUpdate,
    MessageError,
    NodeFacts,
    NodeQuestion,
    decode,
    encode,
    find_node_problem,
)
from conformance.cluster.nodes import ask_node
from conformance.cluster.placement import DEATHS, Placement
from conformance.cluster.requests import RequestMaker
from conformance.engine.batches import get_cell_key
from conformance.engine.cache.blobs import BLOBS, BlobStore
from conformance.engine.job import FinishedJob, RecordedJob, relocate_error
from conformance.engine.local_executor import make_unstarted
from conformance.engine.workers.transcript import make_error
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.outcome import Outcome, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from distributed import Client, Future

    from conformance.cells.lock import Lock
    from conformance.cluster.messages import BatchEnd, ContentPlace, JobReport
    from conformance.cluster.options import ClusterOptions
    from conformance.cluster.suite_batch import SuiteSpec
    from conformance.engine.batches import Batch
    from conformance.engine.job import Job

    Result = FinishedJob | RecordedJob

_LOG: Final = logging.getLogger("conformance.cluster")
WAIT: Final = 120.0
"""Seconds to wait for a node that can be used: a cluster may have to start one."""
REFUSED_WAIT: Final = 20.0
"""Seconds to wait for another node if all of them are refused."""
LOOK: Final = 5.0
"""Seconds between two looks at the workers of the cluster, in addition to its events."""
TICK: Final = 0.5
"""Seconds between two looks at the connection."""
GATHER: Final = 60.0
"""Seconds that a node may take to hand over its facts, or a batch with artifacts."""


class _Event(NamedTuple):
    """An event of the cluster.

    Attributes:
        kind: `facts` or `end` for the end of a task, `update` for finished jobs of a batch, `nodes`
            for a worker that joined or left.
        address: Node of the task.
        key: Key of the task.
        body: The task, or the bytes of the update.
    """

    kind: Literal["facts", "end", "update", "nodes"]
    address: str = ""
    key: str = ""
    body: Any = None


class Dispatcher:
    """Sends batches of one run to the nodes of a cluster.

    Every task is bound to the node that the placement has chosen. Dask transports it, reports its
    end, and notices the end of a node; a batch of such a node is placed again.

    Args:
        client: Connection to the cluster.
        jobs: The jobs, those of a cell and file together.
        options: The options.
        locks: Lock of each cell, by cell id.
        content: Place of artifacts.
        estimate: Returns the expected seconds of a job.
        describe: Returns the suite of a test; None if the jobs are cases.

    Attributes:
        identities: Identities that the workers of cells reported, by cell id.
        started: Number of workers of cells that were started.
    """

    def __init__(
        self,
        client: Client,
        jobs: Sequence[Job],
        *,
        options: ClusterOptions,
        locks: Mapping[str, Lock],
        content: ContentPlace,
        estimate: Callable[[Job], float],
        describe: Callable[[Job], SuiteSpec] | None = None,
    ) -> None:
        self._describe = describe
        self._client = client
        self._options = options
        self._content = content
        self._question = NodeQuestion(content=content)
        self._jobs = {job.id: job for job in jobs}
        self._placement = Placement(jobs, estimate)
        self._blobs = BlobStore(Path(content.folder) / BLOBS)
        self._topic = f"{NAME}-{secrets.token_hex(8)}"
        self._requests = RequestMaker(
            self._topic, locks, content, spawn=options.spawn,
            require_platform=options.require_platform,
        )  # fmt: skip
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._tasks: dict[str, Future[bytes]] = {}
        self._batches: dict[str, tuple[str, str]] = {}
        """Node and key of the placement by key of the task."""
        self._facts: dict[str, NodeFacts | None] = {}
        """Facts of every worker of the cluster; None while they are unknown, or it is refused."""
        self._problems: dict[str, str] = {}
        """Why workers cannot be used at all, by address."""
        self._refusals: dict[str, dict[str, BatchEnd]] = {}
        """Ends of refused batches, by cell and node."""
        self._looked = 0.0
        self._usable = time.monotonic()
        self.identities: dict[str, Mapping[str, Any]] = {}
        self.started = 0

    def run(self) -> Iterator[Result]:
        """Run the jobs and yield each as it ends.

        Raises:
            InfrastructureError: If the scheduler goes away, or no node can be used.
        """
        self._client.subscribe_topic(self._topic, self._receive_update)
        # Workers that join or leave; Dask has no other message about them.
        self._client.subscribe_topic("all", self._receive_node_event)
        while self._placement.left:
            yield from self._look_at_nodes()
            for address, batch in self._placement.assign():
                self._send(address, batch)
            yield from self._give_up_refused()
            self._check_connection()
            try:
                event = self._events.get(timeout=TICK)
            except queue.Empty:
                continue
            yield from self._handle(event)

    def close(self) -> None:
        """Cancel what is still running."""
        self._client.unsubscribe_topic("all")
        self._client.unsubscribe_topic(self._topic)
        if self._tasks and self._client.status == "running":
            self._client.cancel(list(self._tasks.values()), force=True)

    # Called in the thread of the client.

    def _receive_update(self, event: tuple[float, bytes]) -> None:
        self._events.put(_Event("update", body=event[1]))

    def _receive_node_event(self, event: tuple[float, Any]) -> None:
        body = event[1]
        if isinstance(body, dict) and "worker" in str(body.get("action")):
            self._events.put(_Event("nodes"))

    def _watch(
        self, kind: Literal["facts", "end"], address: str, key: str, task: Future[bytes]
    ) -> None:
        """Make an event of the end of a task."""
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._events.put(_Event(kind, address, key, done)))

    def _look_at_nodes(self) -> Iterator[Result]:
        """Ask new workers for their facts, and place the jobs of those that left elsewhere."""
        if time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        current = set(self._client.scheduler_info(n_workers=-1)["workers"])
        for address in self._facts.keys() - current:
            yield from self._lose(address)
        for address in current - self._facts.keys():
            self._facts[address] = None
            key = f"{self._topic}-{address}"
            self._watch("facts", address, key, ask_node(self._client, address, key, self._question))

    def _lose(self, address: str) -> Iterator[Result]:
        """Place the jobs of a node that has ended elsewhere."""
        for key in [key for key, (node, _) in self._batches.items() if node == address]:
            self._forget(key)
        self._facts.pop(address, None)
        self._problems.pop(address, None)
        for job in self._placement.remove_node(address):
            text = (
                f"{DEATHS + 1} workers of the cluster ended with this job, the last one ran no "
                "other job"
            )
            yield FinishedJob(
                job=job, outcome=Outcome.CRASHED, stage=Stage.IMPORT,
                error=make_error("worker", text, job),
            )  # fmt: skip

    def _forget(self, key: str) -> None:
        """Give up a task."""
        self._batches.pop(key, None)
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel(force=True)

    def _send(self, address: str, batch: Batch) -> None:
        key = f"{self._topic}-{batch.key}"
        try:
            suite = None if self._describe is None else self._describe(batch.jobs[0])
            request = self._requests.make_request(key, batch.jobs, suite)
        except OSError as error:
            raise InfrastructureError(f"a case file cannot be read: {error}") from None
        self._batches[key] = (address, batch.key)
        # Another user of the cluster may have asked for the same accelerator.
        resource = batch.accelerator.upper()
        facts = self._facts[address]
        declared = facts is not None and resource in facts.resources
        task = self._client.submit(
            run_batch, encode(request), key=key, workers=[address], allow_other_workers=False,
            pure=False, resources={resource: 1} if declared else None,
        )  # fmt: skip
        self._watch("end", address, key, task)

    def _handle(self, event: _Event) -> Iterator[Result]:
        if event.kind == "nodes":
            self._looked = 0.0
        elif event.kind == "update":
            try:
                update = decode(event.body, BatchUpdate)
            except MessageError as error:
                _LOG.warning("an update is ignored: %s", error)
            else:
                yield from self._take_update(update)
        elif event.key in self._tasks:  # else given up
            task = self._tasks.pop(event.key)
            if event.kind == "facts":
                self._accept(event.address, task)
            else:
                yield from self._take_end(event.address, event.key, task)

    def _accept(self, address: str, task: Future[bytes]) -> None:
        """Use a worker of the cluster, unless its facts forbid it."""
        if address not in self._facts:  # it has ended in the meantime
            return
        try:
            facts = decode(task.result(timeout=GATHER), NodeFacts)
        except Exception as error:  # noqa: BLE001 - a task raises what the other host raises
            self._reject(address, self._explain(task, error))
            return
        if problem := find_node_problem(facts):
            self._reject(address, problem)
            return
        self._facts[address] = facts
        self._usable = time.monotonic()
        self._placement.add_node(
            address, slots=facts.slots, machine=facts.machine, accelerators=facts.accelerators
        )

    def _reject(self, address: str, problem: str) -> None:
        self._problems[address] = problem
        _LOG.warning("worker %s: not used: %s", address, problem)

    def _explain(self, task: Future[bytes], error: Exception) -> str:
        """Return why a task did not end as it should."""
        if task.status == "cancelled" or isinstance(error, TimeoutError):
            return "does not answer"
        prefix = "" if isinstance(error, ConformanceError) else f"{type(error).__name__}: "
        return prefix + " ".join(str(error).split())

    def _take_end(self, address: str, key: str, task: Future[bytes]) -> Iterator[Result]:
        """Take the end of a task whose batch has not ended by an update."""
        if key not in self._batches:
            return
        try:
            content = task.result(timeout=GATHER)
            update = decode(content, BatchUpdate) if content else None
        except Exception as error:  # noqa: BLE001 - a task raises what the other host raises
            self._check_connection(task)
            # The harness itself failed there, so it would fail with each batch.
            if task.status == "error":
                yield from self._stop_using(address, self._explain(task, error))
                return
            update = None
        yield from () if update is None else self._take_update(update)
        if key in self._batches:  # the update with its end is lost
            self._placement.end(*self._batches.pop(key))

    def _take_update(self, update: BatchUpdate) -> Iterator[Result]:
        # An update of a batch that was given up may still be in transit.
        if update.key not in self._batches:
            return
        address, batch = self._batches[update.key]
        facts = self._facts.get(address)
        for report in update.jobs:
            job = self._jobs.get((report.record.case, report.record.cell))
            # A batch that was placed twice may end twice: the first result counts.
            if job is not None and facts is not None and self._placement.finish(job.id):
                yield self._make_result(job, report, facts)
        if update.end is not None:
            del self._batches[update.key]
            yield from self._end_batch(address, batch, update.end)

    def _end_batch(self, address: str, key: str, end: BatchEnd) -> Iterator[Result]:
        self.started += end.started
        batch = self._placement.find_batch(address, key)
        if batch is not None and end.identity:
            self.identities[batch.jobs[0].planned.cell.id] = end.identity
        if end.broken:
            yield from self._stop_using(address, end.refusal)
        elif end.refusal and batch is not None:
            cell = batch.jobs[0].planned.cell.id
            _LOG.warning("worker %s: does not run %s: %s", address, cell, end.refusal)
            self._refusals.setdefault(batch.cell, {})[address] = end
            self._placement.refuse(address, key)
        else:
            self._placement.end(address, key, end.cells)

    def _stop_using(self, address: str, problem: str) -> Iterator[Result]:
        """Use a node no more; its jobs go elsewhere."""
        if address in self._problems or address not in self._facts:
            return
        yield from self._lose(address)
        # Still a worker of the cluster: it is not asked again.
        self._facts[address] = None
        self._reject(address, problem)

    def _make_result(self, job: Job, report: JobReport, facts: NodeFacts) -> RecordedJob:
        record = report.record
        # Case files may lie elsewhere on the node; a suite is where this host has it.
        if self._describe is None and record.error is not None:
            record = replace(record, error=relocate_error(record.error, job.case))
        return RecordedJob(
            job=job,
            record=record,
            artifacts=report.artifacts,
            source=self._blobs if facts.shares_files else None,
            origin=self._content.url if report.uploaded else "",
            same_host=facts.processor == self._options.host_hash,
        )

    def _give_up_refused(self) -> Iterator[Result]:
        """Yield the jobs of cells that every node refuses."""
        unknown = {address for address, facts in self._facts.items() if facts is None}
        if self._placement.running or unknown - self._problems.keys():
            return
        for job in self._placement.take_refused():
            ends = self._refusals.get(get_cell_key(job), {})
            lacking = all(end.lacks_accelerator for end in ends.values())
            reasons = dict.fromkeys(end.refusal for end in ends.values())
            place = job.planned.cell.place
            reason = "; ".join(reasons) or f"no worker of the cluster has a {place.name.upper()}"
            unsupported = lacking and not self._options.require_platform
            outcome = Outcome.UNSUPPORTED if unsupported else Outcome.INFRA
            yield make_unstarted(job, outcome, reason)
        # A cluster that has workers is not waited for as long as one that may still start them.
        patience = REFUSED_WAIT if self._problems else WAIT
        if not self._placement.nodes and time.monotonic() - self._usable > patience:
            problems = "; ".join(f"{node} {why}" for node, why in self._problems.items())
            raise InfrastructureError(
                f"no worker of the cluster can be used, after {patience:.0f} s: "
                f"{problems or 'it has none'}"
            )

    def _check_connection(self, task: Future[bytes] | None = None) -> None:
        lost = task is not None and task.status == "cancelled"
        if self._client.status != "running" or lost:
            where = self._options.scheduler or "on this host"
            raise InfrastructureError(f"scheduler {where}: the connection to it is lost")
