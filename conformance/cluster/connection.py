"""Connections to Dask clusters: one that is started on this machine, or one that runs."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import dask.config
from distributed import Client, LocalCluster

from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT: Final = 30.0
"""Seconds until a scheduler has to answer."""
LOCAL_WORKERS: Final = 4
"""Processes of a cluster on this machine; with more slots, each has several threads."""


@contextmanager
def connect(address: str, slots: int) -> Iterator[Client]:
    """Connect to a cluster.

    Args:
        address: Address of its scheduler; empty for a new cluster on this machine, which ends with
            the connection.
        slots: Jobs at the same time in a new cluster.

    Yields:
        The client.

    Raises:
        InfrastructureError: If the scheduler does not answer, or the cluster does not start.
    """
    # The end of a worker is reported by the run; Dask would log it in a dozen lines.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if address:
        try:
            client = Client(address, timeout=TIMEOUT, set_as_default=False, name="jax-conformance")
        except OSError as error:
            raise InfrastructureError(
                f"scheduler {address}: does not answer within {TIMEOUT:.0f} s ({error}); start "
                "it, or leave out --scheduler to use this machine"
            ) from None
        with client:
            yield client
        return
    workers = min(slots, LOCAL_WORKERS)
    # Work is placed by the run: a stolen batch would need one more worker of its cell.
    with dask.config.set({"distributed.scheduler.work-stealing": False}):
        try:
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=-(-slots // workers), host="127.0.0.1",
                dashboard_address=None, silence_logs=logging.CRITICAL,
            )  # fmt: skip
        except (OSError, RuntimeError) as error:
            raise InfrastructureError(f"no cluster starts on this machine: {error}") from None
        with cluster, Client(cluster, set_as_default=False) as client:
            yield client
