"""Questions to the workers of a cluster: what they are, before any job is sent."""

from __future__ import annotations

import pkgutil
import secrets
import time
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final

from conformance.cluster.connection import connect
from conformance.cluster.dask_worker import NAME, describe_node
from conformance.cluster.messages import (
    ContentPlace,
    NodeFacts,
    NodeQuestion,
    decode,
    encode,
    find_node_problem,
)
from conformance.engine.cache.results import hash_host

if TYPE_CHECKING:
    from distributed import Client, Future

SAMPLE: Final = 16
"""Workers that are asked for their processor."""
PATIENCE: Final = 10.0
"""Seconds that they may take; a busy worker answers after its batch."""


def ask_node(client: Client, address: str, key: str, question: NodeQuestion) -> Future[bytes]:
    """Ask a worker for its facts.

    Args:
        client: Connection to the cluster.
        address: The worker.
        key: Key of the task.
        question: The question.

    Returns:
        The task, whose result are `NodeFacts`.
    """
    # A worker that cannot unpickle a task loses its connection. A function of Python's own finds
    # out whether this one can.
    harness = client.submit(
        pkgutil.resolve_name, f"{describe_node.__module__}:NAME", key=f"{key}-harness",
        workers=[address], allow_other_workers=False, pure=False,
    )  # fmt: skip
    answer: Future[bytes] = client.submit(
        describe_node, encode(question), harness, key=key, workers=[address],
        allow_other_workers=False, pure=False,
    )  # fmt: skip
    return answer


def find_host_hash(scheduler: str) -> str:
    """Return the hash of the host facts that most workers of a cluster have.

    Results are cached for these workers. The machine that starts a run often has another
    processor, and its cache must not mix results of both.

    Args:
        scheduler: Address of the scheduler.

    Returns:
        The hash, see `conformance.engine.cache.results.hash_host`; that of this host if no worker
        answers.

    Raises:
        InfrastructureError: If the scheduler does not answer.
    """
    client = connect(scheduler, 1)
    workers = islice(client.scheduler_info(n_workers=-1)["workers"], SAMPLE)
    question = NodeQuestion(content=ContentPlace(folder="/", token=secrets.token_hex(16)))
    prefix = f"{NAME}-{secrets.token_hex(8)}"
    tasks = [ask_node(client, address, f"{prefix}-{address}", question) for address in workers]
    found = Counter[str]()
    end = time.monotonic() + PATIENCE
    for task in tasks:
        try:
            facts = decode(task.result(timeout=max(0.0, end - time.monotonic())), NodeFacts)
        except Exception:  # noqa: BLE001, S112 - the run reports workers that it cannot use
            continue
        if not find_node_problem(facts):
            found[facts.processor] += 1
    client.cancel(tasks)
    return found.most_common(1)[0][0] if found else hash_host()
