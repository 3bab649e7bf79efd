"""The executor that runs jobs on a Dask cluster."""

from __future__ import annotations

import secrets
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from conformance.cluster.connection import connect
from conformance.cluster.content import get_token_file, remove_old_entries
from conformance.cluster.dispatcher import Dispatcher
from conformance.cluster.messages import ContentPlace
from conformance.engine.batches import order_by_cell
from conformance.engine.local_executor import make_unstarted
from conformance.files import write_atomically
from conformance.garbage_collection import exempt_from_garbage_collection
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from conformance.cells.lock import Lock
    from conformance.cluster.options import ClusterOptions
    from conformance.cluster.suite_batch import SuiteSpec
    from conformance.engine.job import FinishedJob, Job, RecordedJob


class DaskExecutor:
    """Runs jobs on the workers of a Dask cluster.

    Args:
        options: The options.
        locks: Lock of each cell, by cell id; may grow.
        estimate: Returns the expected seconds of a job.
        describe: Returns the suite of a test; None if the jobs are cases.
    """

    def __init__(
        self,
        options: ClusterOptions,
        locks: Mapping[str, Lock],
        estimate: Callable[[Job], float],
        *,
        describe: Callable[[Job], SuiteSpec] | None = None,
    ) -> None:
        self._describe = describe
        self._options = options
        self._locks = locks
        self._estimate = estimate
        self._identities: dict[str, Mapping[str, Any]] = {}
        self.started = 0
        """Number of workers of cells that were started."""

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """Identities that the workers reported, by cell id."""
        return self._identities

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob | RecordedJob]:
        """Run jobs and yield each as it ends; see `Executor.run`.

        Raises:
            InfrastructureError: If the scheduler goes away, or no worker of the cluster can be
                used.
        """
        runnable = []
        for job in order_by_cell(jobs):
            if job.planned.failure:  # known before anything runs: no node can provide the cell
                yield make_unstarted(job, Outcome.INFRA, job.planned.failure)
            else:
                runnable.append(job)
        if not runnable:
            return
        with ExitStack() as stack:
            client = connect(self._options.scheduler, self._options.slots)
            content = stack.enter_context(_share_content(self._options))
            dispatcher = Dispatcher(
                client, runnable, options=self._options, locks=self._locks, content=content,
                estimate=self._estimate, describe=self._describe,
            )  # fmt: skip
            stack.callback(dispatcher.close)
            stack.enter_context(exempt_from_garbage_collection())
            try:
                yield from dispatcher.run()
            finally:
                self._identities.update(dispatcher.identities)
                self.started += dispatcher.started


@contextmanager
def _share_content(options: ClusterOptions) -> Iterator[ContentPlace]:
    """Write a token to the cache folder, by which nodes recognise it, and remove it at the end.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    content = ContentPlace(
        folder=str(options.cache.absolute()), token=secrets.token_hex(16), url=options.shared_cache
    )
    file = get_token_file(content)
    # A run that is killed leaves its token.
    remove_old_entries(file.parent)
    write_atomically(file, content.token.encode())
    try:
        yield content
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)
