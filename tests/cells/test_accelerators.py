"""Accelerators of a host: whether there is one, and one turn at a time."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from conformance.cells.accelerators import DeviceLock, find_missing_accelerator
from conformance.cells.platforms import get_platform
from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from pathlib import Path

GPU, TPU = get_platform("gpu"), get_platform("tpu")


def go_on() -> None:
    """Wait as long as it takes."""


@pytest.mark.parametrize("name", ["gpu", "tpu"])
def test_a_host_without_the_files_of_a_driver_lacks_the_accelerator(
    tmp_path: Path, name: str
) -> None:
    """The reason names what was looked for."""
    reason = find_missing_accelerator(get_platform(name), tmp_path)
    assert reason.startswith(f"no {name.upper()} on this host: none of /dev/")


@pytest.mark.parametrize(
    ("name", "file"),
    [("gpu", "nvidia0"), ("gpu", "kfd"), ("gpu", "dxg"), ("tpu", "accel3"), ("tpu", "vfio/0")],
)
def test_a_file_of_a_driver_is_an_accelerator(tmp_path: Path, name: str, file: str) -> None:
    """Whether it serves is for the release to say."""
    path = tmp_path / "dev" / file
    path.parent.mkdir(parents=True)
    path.touch()
    assert find_missing_accelerator(get_platform(name), tmp_path) == ""


@pytest.mark.parametrize("name", ["cpu", "cpu-mp2", "tpu:v5e:2x2", "cuda:h100:1x1x4"])
def test_what_needs_no_hardware_is_never_missing(tmp_path: Path, name: str) -> None:
    """Compile-only platforms are for hosts that have none."""
    assert find_missing_accelerator(get_platform(name), tmp_path) == ""


def test_turns_on_an_accelerator_do_not_overlap(tmp_path: Path) -> None:
    """Two holders, as two runs are: one waits for the other."""
    seen: list[str] = []

    def work(name: str) -> None:
        with DeviceLock(tmp_path).acquire(GPU, go_on):
            seen.append(f"{name} in")
            time.sleep(0.05)
            seen.append(f"{name} out")

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen in (["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"])


def test_turns_on_different_accelerators_and_on_none_overlap(tmp_path: Path) -> None:
    """A GPU's job does not wait for a TPU's, and nothing waits for a CPU."""
    locks, cpu = DeviceLock(tmp_path), get_platform("cpu")
    with (
        locks.acquire(GPU, go_on),
        locks.acquire(TPU, go_on),
        locks.acquire(cpu, go_on),
        locks.acquire(cpu, go_on),
    ):
        pass


def test_a_wait_can_be_ended(tmp_path: Path) -> None:
    """As by an interrupt of the run."""

    def interrupted() -> None:
        raise InfrastructureError("interrupted")

    locks = DeviceLock(tmp_path)
    with (
        locks.acquire(GPU, go_on),
        pytest.raises(InfrastructureError, match="interrupted"),
        locks.acquire(GPU, interrupted),
    ):
        pass


def test_a_turn_that_the_disk_refuses_is_infra(tmp_path: Path) -> None:
    """One line that names the file."""
    (tmp_path / "turns").write_text("in the way")
    with (
        pytest.raises(InfrastructureError, match=r"gpu\.lock: cannot be locked"),
        DeviceLock(tmp_path).acquire(GPU, go_on),
    ):
        pass
