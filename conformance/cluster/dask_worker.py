"""The Dask side of a node: the plugin that every worker of the cluster gets, and its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from distributed import WorkerPlugin, get_worker

from conformance.cache_folder import cache_root
from conformance.cluster.messages import BatchRequest, NodeQuestion, decode, encode
from conformance.cluster.node import Node

if TYPE_CHECKING:
    from distributed import Worker

NAME: Final = "jax-conformance"
"""Name of the plugin on a worker."""


class NodePlugin(WorkerPlugin):
    """Keeps the node of a Dask worker, with its warm workers of cells, until the worker ends."""

    name = NAME
    # A second run on the same cluster must find the warm workers of the first.
    idempotent = True

    def setup(self, worker: Worker) -> None:
        """Make the node.

        Args:
            worker: The Dask worker.

        Raises:
            InfrastructureError: If its cache folder cannot be written.
        """
        limit = worker.memory_manager.memory_limit
        self.node = Node(
            cache_root(), slots=worker.state.nthreads, memory=limit or 0,
            resources=worker.state.total_resources,
        )  # fmt: skip

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - the signature of Dask
        """End the workers of cells."""
        self.node.close()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Stop a batch that was cancelled: its run was interrupted, or has ended.

        Args:
            key: Key of the task.
            start: Its former state.
            finish: Its state.
        """
        if start == "executing" and finish == "cancelled":
            self.node.abandon(str(key))


def describe_node(question: bytes) -> bytes:
    """Return the facts of the node that runs the task.

    Args:
        question: A `NodeQuestion`.

    Returns:
        The `NodeFacts`.
    """
    content = decode(question, NodeQuestion).content
    return encode(_get_node(get_worker()).describe(content))


def run_batch(request: bytes) -> bytes:
    """Run a batch on the node that runs the task.

    Args:
        request: A `BatchRequest`. Updates while it runs are events of its topic.

    Returns:
        The last `BatchUpdate`, empty if it was an event: the result of a task is lost with its
        worker, and Dask would run the task again.
    """
    worker = get_worker()
    batch = decode(request, BatchRequest)
    last = _get_node(worker).run(batch, lambda update: worker.log_event(batch.topic, update))
    return b"" if last is None else encode(last)


def _get_node(worker: Worker) -> Node:
    plugin = worker.plugins[NAME]
    assert isinstance(plugin, NodePlugin)  # noqa: S101 - nothing else has this name
    return plugin.node
