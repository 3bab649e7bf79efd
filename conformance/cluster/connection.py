"""Connections to Dask clusters: one that is started on this host, or one that runs."""

from __future__ import annotations

import atexit
import logging
from contextlib import ExitStack
from typing import Final

import dask.config
from distributed import Client, LocalCluster, Security

from conformance.errors import InfrastructureError, UsageError

PRIVATE: Final = ("tls://", "wss://")
"""Beginnings of addresses whose connections need a certificate."""
TIMEOUT: Final = 30.0
"""Seconds until a scheduler has to answer."""
LOGGERS: Final = (
    "distributed", "distributed.client", "tornado", "tornado.application", "asyncio",
)  # fmt: skip
"""Loggers with a level of their own in Dask's configuration, and that of the event loop."""
LOCAL_WORKERS: Final = 4
"""Processes of a cluster on this host; with more slots, each has several threads."""
QUIET: Final = {
    "distributed.admin.tick.interval": "10 s",
    "distributed.admin.system-monitor.interval": "600 s",
    "distributed.worker.profile.enabled": False,
}
"""Dask's settings for processes that do not watch themselves.

By default each one samples its own threads and event loop, up to 100 times a second: with two
workers on two cores, that takes about a twentieth of the processor time.
"""
_clients: dict[str, Client] = {}
"""Open connections, by scheduler, or by slots for a cluster on this host: the second run of a
command finds warm workers."""
_stack: Final = ExitStack()
"""Ends the connections, and the clusters of this process."""
close_connections: Final = _stack.close
atexit.register(close_connections)


def connect(scheduler: str, slots: int) -> Client:
    """Return a connection to a cluster, which stays open until the process ends.

    Args:
        scheduler: Address of its scheduler; empty for a new cluster on this host, which ends with
            the process.
        slots: Jobs at the same time in a new cluster.

    Raises:
        InfrastructureError: If the scheduler does not answer, or the cluster does not start.
    """
    key = scheduler or str(slots)
    client = _clients.get(key)
    if client is None or client.status != "running":
        # The end of a worker or scheduler is reported by the run; Dask, and the event loop that it
        # leaves with open tasks, would log it in dozens of lines.
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        client = _connect(scheduler) if scheduler else _start_cluster(slots)
        _clients[key] = client
    return client


def use_connection(client: Client, scheduler: str) -> None:
    """Use an open connection instead of a new one.

    Args:
        client: The connection.
        scheduler: The scheduler that `connect` is asked for.
    """
    _clients[scheduler] = client


def _connect(scheduler: str) -> Client:
    if scheduler.startswith(PRIVATE):
        _check_certificate(scheduler)
    try:
        client = Client(scheduler, timeout=TIMEOUT, set_as_default=False, name="jax-conformance")
    except (OSError, ValueError) as error:  # a ValueError for an unknown protocol
        raise InfrastructureError(
            f"scheduler {scheduler}: does not answer within {TIMEOUT:.0f} s ({error}); start it, "
            "or leave out --scheduler to use this host"
        ) from None
    _stack.enter_context(client)
    return client


def _check_certificate(scheduler: str) -> None:
    """Check that Dask's settings have the certificate for a private connection.

    Without it, the client of Dask raises an error about its own code, and takes a minute to end.

    Raises:
        UsageError: If they have not.
    """
    security = Security()
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except OSError as error:
        found = security.get_tls_config_for_role("client")
        files = ", ".join(str(found[name]) for name in ("ca_file", "cert", "key") if found[name])
        reason = error.strerror or str(error)
        raise UsageError(
            f"scheduler {scheduler}: the settings of Dask for TLS name {files}, of which one "
            f"cannot be used: {reason}"
        ) from None
    if context is None:
        raise UsageError(
            f"scheduler {scheduler}: its protocol needs a certificate; set distributed.comm.tls."
            "ca-file, .client.cert and .client.key of Dask"
        )


def _start_cluster(slots: int) -> Client:
    workers = min(slots, LOCAL_WORKERS)
    # Work is placed by the run: a stolen batch would need one more worker of its cell.
    settings = {**QUIET, "distributed.scheduler.work-stealing": False}
    try:
        with dask.config.set(settings):
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=-(-slots // workers), host="127.0.0.1",
                dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL,
            )  # fmt: skip
        _stack.enter_context(cluster)
        client: Client = _stack.enter_context(Client(cluster, set_as_default=False))
    except (OSError, RuntimeError) as error:
        raise InfrastructureError(f"no cluster starts on this host: {error}") from None
    return client
