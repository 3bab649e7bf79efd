"""The Dask side of a node: the tasks of a run, and the plugin that keeps the node of a worker."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from distributed import WorkerPlugin, get_worker
from distributed.utils import sync

from conformance.cache_folder import cache_root
from conformance.cluster.messages import BatchRequest, NodeQuestion, decode, encode
from conformance.cluster.node import Node

if TYPE_CHECKING:
    from distributed import Worker

NAME: Final = "jax-conformance"
"""Name of the plugin on a worker."""
_lock: Final = threading.Lock()
"""Held while a worker gets its node; several runs may ask for it at the same time."""


class NodePlugin(WorkerPlugin):
    """Keeps the node of a Dask worker, with its warm workers of cells, until the worker ends.

    Args:
        node: The node.
    """

    name = NAME

    def __init__(self, node: Node) -> None:
        self.node = node

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - the signature of Dask
        """End the workers of cells."""
        self.node.close()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Stop a batch that was cancelled: its run was interrupted, or has ended.

        Args:
            key: Key of the task.
            start: Its former state.
            finish: The state that Dask asks for. A task that has ended goes to "memory" or
                "error" first; one that is released while it runs gets the state "cancelled".
        """
        if start == "executing" and finish == "released":
            self.node.abandon(str(key))


def describe_node(question: bytes, harness: str) -> bytes:  # noqa: ARG001 - see below
    """Return the facts of the node that runs the task.

    Args:
        question: A `NodeQuestion`.
        harness: Result of a task that has to succeed before this one.

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
    """Return the node of a worker, which the first task makes and the next runs find warm.

    The scheduler could give every worker the plugin. But it would also give it to workers that
    cannot import it: the registration would fail for all, and such a worker could not join.

    Raises:
        InfrastructureError: If the cache folder cannot be written.
    """
    with _lock:
        if NAME not in worker.plugins:
            limit = worker.memory_manager.memory_limit
            node = Node(
                cache_root(), slots=worker.state.nthreads, memory=limit or 0,
                resources=worker.state.total_resources,
            )  # fmt: skip
            sync(worker.loop, worker.plugin_add, NodePlugin(node))
        plugin = worker.plugins[NAME]
    assert isinstance(plugin, NodePlugin)  # noqa: S101 - nothing else has this name
    return plugin.node
