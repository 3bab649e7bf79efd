"""Connections that cannot be made: an error before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dask.config
import pytest

from conformance.cluster.connection import close_connections, connect
from conformance.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

TLS = "distributed.comm.tls"


def test_tls_without_a_certificate() -> None:
    """The message names the settings."""
    unset = {f"{TLS}.ca-file": None, f"{TLS}.client.cert": None}
    with dask.config.set(unset), pytest.raises(UsageError, match=r"set distributed\.comm\.tls\."):
        connect("tls://127.0.0.1:1", 1)


def test_a_certificate_that_cannot_be_read(tmp_path: Path) -> None:
    """Missing, or no certificate at all."""
    file = tmp_path / "ca.pem"
    files = {f"{TLS}.ca-file": str(file), f"{TLS}.client.cert": str(file)}
    with dask.config.set(files):
        with pytest.raises(UsageError, match=r"ca\.pem, .*cannot be used: No such file"):
            connect("tls://127.0.0.1:1", 1)
        file.write_text("no certificate")
        with pytest.raises(UsageError, match="cannot be used: "):
            connect("tls://127.0.0.1:1", 1)


def test_an_unknown_protocol() -> None:
    """An error of Dask becomes one of the connection."""
    with pytest.raises(InfrastructureError, match=r"scheduler far://127.0.0.1:1: .*far"):
        connect("far://127.0.0.1:1", 1)


@pytest.mark.cell
def test_workers_on_this_host_do_not_watch_themselves() -> None:
    """The processor is for jobs; the settings of this process stay as they are."""
    name = "distributed.worker.profile.enabled"
    before = dask.config.get(name)
    try:
        found = connect("", 1).run(dask.config.get, name)
    finally:
        close_connections()
    assert list(found.values()) == [False]
    assert dask.config.get(name) == before
