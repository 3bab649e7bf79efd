"""The choice of the executor, and which connections are private."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.app.cluster_choice import ClusterChoice, check_address, choose_cluster
from conformance.errors import UsageError


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory without settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)


def test_this_host_is_the_default() -> None:
    """Without any option."""
    assert choose_cluster(None, "", insecure=False) is None


def test_a_cluster_on_this_host() -> None:
    """`--executor dask` alone starts one."""
    assert choose_cluster("dask", "", insecure=False) == ClusterChoice(scheduler="")


def test_a_scheduler_implies_dask() -> None:
    """Its address is enough."""
    chosen = choose_cluster(None, "tls://far:8786", insecure=False)
    assert chosen == ClusterChoice(scheduler="tls://far:8786")


def test_the_scheduler_of_the_settings() -> None:
    """For `--executor dask` only: without it a run stays on this host."""
    Path("pyproject.toml").write_text('[tool.conformance]\nscheduler = "tls://set:8786"\n')
    assert choose_cluster("dask", "", insecure=False) == ClusterChoice(scheduler="tls://set:8786")
    assert choose_cluster(None, "", insecure=False) is None


def test_the_scheduler_of_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask's own configuration counts, too."""
    config = pytest.importorskip("dask.config")
    with config.set({"scheduler-address": "tls://dask:8786"}):
        chosen = choose_cluster("dask", "", insecure=False)
    assert chosen == ClusterChoice(scheduler="tls://dask:8786")


def test_contradicting_options() -> None:
    """One of them has to go."""
    with pytest.raises(UsageError, match="contradict"):
        choose_cluster("local", "tls://far:8786", insecure=False)


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'jax-conformance\[dask\]'"):
        choose_cluster("dask", "", insecure=False)


@pytest.mark.parametrize(
    "address", ["tls://far:8786", "wss://far:1", "127.0.0.1:8786", "tcp://[::1]:8786",
                "tcp://localhost:8786"],
)  # fmt: skip
def test_private_connections(address: str) -> None:
    """TLS, or this host."""
    check_address(address, insecure=False)


@pytest.mark.parametrize("address", ["tcp://far:8786", "10.0.0.1:8786", "ws://far:80"])
def test_a_connection_that_is_not_private(address: str) -> None:
    """It needs `--insecure`."""
    with pytest.raises(UsageError, match="give --insecure"):
        check_address(address, insecure=False)
    check_address(address, insecure=True)


@pytest.mark.parametrize("address", ["far", "tcp://", "tcp://far", "tcp://far:port", "tls://:8786"])
def test_a_malformed_address(address: str) -> None:
    """Even with `--insecure`."""
    with pytest.raises(UsageError, match="expected the address of a Dask scheduler"):
        check_address(address, insecure=True)
