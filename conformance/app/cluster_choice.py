"""The choice of the executor: this host, or the workers of a Dask cluster."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from conformance.app.context import load_context
from conformance.errors import UsageError

PRIVATE: Final = frozenset({"tls", "wss"})
"""Protocols that only holders of a certificate can use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """A cluster that a command runs its jobs on.

    Attributes:
        scheduler: Address of its Dask scheduler, empty for a cluster that is started on this host.
    """

    scheduler: str = ""


def choose_cluster(executor: str | None, scheduler: str, *, insecure: bool) -> ClusterChoice | None:
    """Return the cluster of a command, None for this host.

    Args:
        executor: `local` or `dask`; None for `dask` if there is a scheduler.
        scheduler: Address of a scheduler, empty for that of the project's settings or of Dask's
            configuration, if there is one.
        insecure: Whether the connection to another host may be without TLS.

    Raises:
        UsageError: If Dask is not installed, the address is malformed, or others on the network
            could use the connection.
    """
    executor = executor or ("dask" if scheduler else "local")
    if executor == "local":
        if scheduler:
            raise UsageError("--scheduler and --executor local contradict each other; leave one")
        return None
    if importlib.util.find_spec("distributed") is None:
        raise UsageError(
            "--executor dask: Dask is not installed; install it with: "
            "pip install 'jax-conformance[dask]'"
        )
    address = scheduler or load_context().settings.scheduler or _find_configured_scheduler()
    if address:
        check_address(address, insecure=insecure)
    return ClusterChoice(scheduler=address)


def _find_configured_scheduler() -> str:
    """Return the scheduler in Dask's own configuration, e.g. DASK_SCHEDULER_ADDRESS."""
    config = importlib.import_module("dask.config")
    return str(config.get("scheduler-address", None) or "")


def check_address(address: str, *, insecure: bool) -> None:
    """Check that the connection to a scheduler is private.

    Args:
        address: Address of the scheduler, e.g. `tls://scheduler:8786`.
        insecure: Whether the user accepts a connection that is not.

    Raises:
        UsageError: If the address is malformed, or anybody on the network could read the jobs or
            send others.
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is no number
        host = port = None
    if not (host and port):
        raise UsageError(
            f"scheduler {address}: expected the address of a Dask scheduler, e.g. tls://HOST:8786"
        )
    if parts.scheme in PRIVATE or insecure or _is_loopback(host):
        return
    raise UsageError(
        f"scheduler {address}: anybody on its network can read the jobs and send code to its "
        "workers; use a tls:// address with the TLS settings of Dask, or give --insecure"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
