"""Accelerators of a host: detection, and a lock that admits one job at a time."""

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
def test_accelerator_is_missing_without_device_files(tmp_path: Path, name: str) -> None:
    """The reason names the device files that were checked."""
    reason = find_missing_accelerator(get_platform(name), tmp_path)
    assert reason.startswith(f"no {name.upper()} on this host: none of /dev/")


@pytest.mark.parametrize(
    ("name", "file"),
    [("gpu", "nvidia0"), ("gpu", "kfd"), ("gpu", "dxg"), ("tpu", "accel3"), ("tpu", "vfio/0")],
)
def test_device_file_counts_as_accelerator(tmp_path: Path, name: str, file: str) -> None:
    """Whether the release can use the device is not checked."""
    path = tmp_path / "dev" / file
    path.parent.mkdir(parents=True)
    path.touch()
    assert find_missing_accelerator(get_platform(name), tmp_path) == ""


@pytest.mark.parametrize("name", ["cpu", "cpu-mp2", "tpu:v5e:2x2", "cuda:h100:1x1x4"])
def test_cpu_and_compile_only_platforms_are_never_missing(tmp_path: Path, name: str) -> None:
    """They need no hardware."""
    assert find_missing_accelerator(get_platform(name), tmp_path) == ""


def test_device_lock_excludes_a_second_run(tmp_path: Path) -> None:
    """Two holders, as two runs are: the second waits for the first."""
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


def test_device_locks_of_different_platforms_are_independent(tmp_path: Path) -> None:
    """A job on a GPU does not wait for one on a TPU, and a CPU has no lock."""
    locks, cpu = DeviceLock(tmp_path), get_platform("cpu")
    with (
        locks.acquire(GPU, go_on),
        locks.acquire(TPU, go_on),
        locks.acquire(cpu, go_on),
        locks.acquire(cpu, go_on),
    ):
        pass


def test_check_ends_the_wait_for_an_accelerator(tmp_path: Path) -> None:
    """As an interrupt of the run does."""

    def interrupted() -> None:
        raise InfrastructureError("interrupted")

    locks = DeviceLock(tmp_path)
    with (
        locks.acquire(GPU, go_on),
        pytest.raises(InfrastructureError, match="interrupted"),
        locks.acquire(GPU, interrupted),
    ):
        pass


def test_unwritable_lock_of_an_accelerator_is_infra(tmp_path: Path) -> None:
    """The message is one line that names the file."""
    (tmp_path / "turns").write_text("in the way")
    with (
        pytest.raises(InfrastructureError, match=r"gpu\.lock: cannot be locked"),
        DeviceLock(tmp_path).acquire(GPU, go_on),
    ):
        pass
