"""Cells that cannot be served: one reason, found before the first job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.cache_folder import cache_root
from conformance.cells.accelerators import DeviceLock
from conformance.engine.local_executor import CellWorker
from conformance.engine.workers.preparation import Provider
from conformance.engine.workers.probes import UnsupportedCellError, check_cell, needs_check
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome, Stage
from conformance.worker.processes import find_refused_flags
from tests.workbench import OLD, Bench, leaf_of, lock_of, planned_cell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.engine.job import PlannedCell

ABORT = "import os; os.write(2, b'F1121 17:11:51.4 11112 plugin.cc:7] no such chip\\n'); os.abort()"


def cell_with(**fields: Any) -> PlannedCell:
    """Return a planned cell with some options."""
    planned = planned_cell(OLD)
    return replace(planned, cell=replace(planned.cell, **fields))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A worker of the old release."""
    with Bench(planned_cell(OLD), tmp_path_factory.mktemp("cases")) as made:
        yield made


def test_only_cells_that_may_be_refused_are_checked() -> None:
    """The plain cells of a matrix cost nothing."""
    assert not needs_check(cell_with())
    assert not needs_check(cell_with(platform="cpu-mp2", x64=True))
    assert needs_check(cell_with(config=(("jax_a", "1"),)))
    assert needs_check(cell_with(xla_flags=("--xla_a=1",)))
    assert needs_check(cell_with(platform="tpu:v5e:2x2"))
    assert needs_check(cell_with(platform="gpu"))


@pytest.mark.cell
def test_accepted_config_and_flags_pass(bench: Bench) -> None:
    """Known config, a known flag."""
    config = (("jax_threefry_partitionable", "true"),)
    flags = ("--xla_cpu_enable_fast_math=false",)
    check_cell(bench.worker, cell_with(config=config, xla_flags=flags))


@pytest.mark.cell
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"config": (("jax_no_such", "true"),)}, "config: .*jax_no_such"),
        ({"config": (("jax_default_matmul_precision", "3"),)}, "config: .*got 3"),
        ({"xla_flags": ("--xla_no_such=1",)}, "Unknown flag in XLA_FLAGS: --xla_no_such=1$"),
        (
            {"xla_flags": ("--xla_cpu_enable_fast_math=maybe",)},
            "Couldn't interpret value maybe for flag xla_cpu_enable_fast_math$",
        ),
        ({"platform": "tpu:v5e:2x2"}, "tpu v5e:2x2 cannot be compiled for: "),
        ({"platform": "gpu"}, "it sees no GPU here, only CPUs"),
    ],
)
def test_refused_config_and_flags_are_unsupported(
    bench: Bench, fields: dict[str, Any], reason: str
) -> None:
    """The reason is one line; the worker continues."""
    with pytest.raises(UnsupportedCellError, match=f"jax {OLD}: .*{reason}") as raised:
        check_cell(bench.worker, cell_with(**fields))
    assert "\n" not in str(raised.value)
    assert leaf_of(bench.run("return 1", topic="after")).data == b"1"


@pytest.mark.cell
def test_a_plugin_that_aborts_as_it_is_loaded_is_infra(bench: Bench, tmp_path: Path) -> None:
    """With one line of its output."""
    plugin = tmp_path / "aborting.py"
    plugin.write_text(ABORT)
    job = bench.at(tmp_path).job(
        f"""
        from conformance.worker.cell_probes import check_devices
        class Aborting:
            @property
            def devices(self):
                exec(open({str(plugin)!r}).read())
        return check_devices(Aborting(), 1)
        """
    )
    finished = bench.worker.run(job)
    assert finished.error is not None
    assert finished.error.message == "the process was ended by SIGABRT: no such chip"


@pytest.mark.cell
def test_a_host_with_fewer_accelerators_than_the_cell_is_unsupported(bench: Bench) -> None:
    """One device is here, four are asked for."""
    body = "from conformance.worker.cell_probes import check_devices; return check_devices(env, 4)"
    finished = bench.run(body, topic="few")
    assert finished.outcome is Outcome.UNSUPPORTED
    assert finished.error is not None
    assert finished.error.message == "the cell has 4 devices, here are 1"


@pytest.mark.long(keep=1)
@pytest.mark.cell
@pytest.mark.parametrize("required", [False, True])
def test_a_cell_is_checked_once_for_all_its_jobs(tmp_path: Path, required: bool) -> None:
    """If refused, its jobs are unsupported, or infra for a required platform."""
    planned = cell_with(platform="gpu", devices=4)
    provider = Provider(
        {planned.cell.id: lock_of(planned.cell)}, cache_root(), require_platform=required
    )
    bench = Bench.__new__(Bench)
    bench.planned, bench.folder = planned, tmp_path
    worker = CellWorker(planned, provider.open, DeviceLock(tmp_path))
    found = [worker.run(bench.job("return 1", topic=f"t{n}")) for n in range(3)]
    worker.close()
    expected = Outcome.INFRA if required else Outcome.UNSUPPORTED
    assert {(f.outcome, f.stage) for f in found} == {(expected, Stage.PROVISION)}
    (reason,) = {f.error.message for f in found if f.error is not None}
    assert "sees no GPU here" in reason


@pytest.mark.parametrize("required", [False, True])
def test_a_missing_accelerator_is_reported_before_provisioning(
    tmp_path: Path, required: bool
) -> None:
    """No lock, no environment, no worker."""
    planned = replace(cell_with(platform="gpu"), missing="no GPU on this host")
    provider = Provider({}, tmp_path, require_platform=required)
    kind = InfrastructureError if required else UnsupportedCellError
    with pytest.raises(kind, match="no GPU on this host"):
        provider.open(planned)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.cell
def test_a_flag_of_a_case_that_xla_does_not_know_is_unsupported(bench: Bench) -> None:
    """XLA ends the process; the job has one clear outcome."""
    body = "import jax; return len(jax.devices())"
    finished = bench.run(body, 'probe(xla_flags=["--xla_no_such=1"])', topic="flag")
    assert finished.outcome is Outcome.UNSUPPORTED
    assert finished.error is not None
    assert finished.error.message == "Unknown flag in XLA_FLAGS: --xla_no_such=1"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "F1 x.cc:1] Unknown flags in XLA_FLAGS: --a --b \n",
            "Unknown flags in XLA_FLAGS: --a --b",
        ),
        ("Couldn't interpret value 3 for flag a.\nusage:", "Couldn't interpret value 3 for flag a"),
        ("RuntimeError: bad shape", ""),
        ("", ""),
    ],
)
def test_refused_flags_are_read_from_xlas_log(said: str, expected: str) -> None:
    """With any text before and after."""
    assert find_refused_flags(said) == expected
