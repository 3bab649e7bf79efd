"""Topologies that a release cannot compile for: one reason, the same in every process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.model.outcome import Outcome
from tests.workbench import OLD, Bench, planned_cell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.cell


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A worker of the old release, which has no plugin installed."""
    with Bench(planned_cell(OLD), tmp_path_factory.mktemp("cases")) as made:
        yield made


def test_topology_without_plugin_is_unsupported(bench: Bench, tmp_path: Path) -> None:
    """The reason has the platform and the message of jax."""
    finished = bench.at(tmp_path).run(
        """
        from conformance.kit.env import get_topology_devices
        get_topology_devices({"platform": "cuda", "topology_name": "h100"})
        """
    )
    assert finished.outcome is Outcome.UNSUPPORTED
    assert finished.error is not None
    assert finished.error.message.startswith("cuda h100 cannot be compiled for: ")
    assert "cuda" in finished.error.message.partition(": ")[2]


def test_reason_has_no_address_and_no_folder(bench: Bench, tmp_path: Path) -> None:
    """They differ between processes and hosts."""
    finished = bench.at(tmp_path).run(
        """
        from conformance.kit.env import make_unsupported
        said = "UNIMPLEMENTED: /home/me/envs/a-b/bin/ptxas ptxas too old, id 0x7f2fcdd2510c, 2/3"
        raise make_unsupported({"platform": "cuda", "topology_name": "b200"}, RuntimeError(said))
        """
    )
    assert finished.error is not None
    assert finished.error.message == (
        "cuda b200 cannot be compiled for: RuntimeError: "
        "UNIMPLEMENTED: ptxas ptxas too old, id 0x..., 2/3"
    )


def test_topology_that_fails_to_compile_is_unsupported(bench: Bench, tmp_path: Path) -> None:
    """The reason is the error of the release."""
    finished = bench.at(tmp_path).run(
        """
        from dataclasses import replace
        from conformance.kit.env import Env
        asked = {"platform": "cuda", "topology_name": "h100"}
        described = Env(replace(env.cell, topology=asked))
        described.devices = [object()]
        described.try_compiling()
        """
    )
    assert finished.outcome is Outcome.UNSUPPORTED
    assert finished.error is not None
    assert finished.error.message.startswith("cuda h100 cannot be compiled for: ")


def test_topology_that_compiles_is_supported(bench: Bench, tmp_path: Path) -> None:
    """One operation, lowered and compiled."""
    finished = bench.at(tmp_path).run("env.try_compiling()\nreturn Observed(1)")
    assert finished.outcome is Outcome.OK
