"""The accelerators of this host: detection, and a lock so that runs take turns."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.cells.platforms import Platform

DEVICE_FILES: Final = {
    "gpu": ("dev/nvidia[0-9]*", "dev/kfd", "dev/dxg"),
    # A number is required: the container device /dev/vfio/vfio exists on hosts without any TPU.
    "tpu": ("dev/accel[0-9]*", "dev/vfio/[0-9]*"),
}
"""Device files by platform: for GPUs those of NVIDIA, of AMD and of Windows under WSL."""
POLL_INTERVAL: Final = 0.2
"""Seconds between two calls of `check` while waiting for an accelerator."""
PATIENCE: Final = 3600.0
"""Seconds to wait for an accelerator."""


def find_missing_accelerator(platform: Platform, root: Path = Path("/")) -> str:
    """Return why a platform's accelerator is missing, empty if it seems to be present.

    Only device files are checked, so the check works before anything is installed.

    Args:
        platform: Platform of a cell.
        root: Root of the file system.
    """
    if not platform.real:
        return ""
    patterns = DEVICE_FILES[platform.name]
    # Present is enough: whether the release can use the device is found by its worker.
    if any(any(root.glob(pattern)) for pattern in patterns):
        return ""
    checked = ", ".join(f"/{pattern.replace('[0-9]*', 'N')}" for pattern in patterns)
    return f"no {platform.name.upper()} on this host: none of {checked} exists"


class DeviceLock:
    """A lock for each platform (GPU, TPU) that admits one job at a time on this host, across runs.

    Args:
        cache: Cache folder, which is the same for all runs on a host.
    """

    def __init__(self, cache: Path) -> None:
        # Named as in earlier versions: a run of one of them takes turns with a run of this one.
        self._folder = cache / "turns"

    @contextmanager
    def acquire(self, platform: Platform, check: Callable[[], None]) -> Iterator[None]:
        """Hold the accelerator of a platform; platforms without one are not locked.

        Args:
            platform: Platform of a cell.
            check: Called repeatedly while waiting; an exception that it raises ends the wait.

        Raises:
            InfrastructureError: If another run holds it for too long, or the disk fails.
        """
        if not platform.real:
            yield
            return
        path = self._folder / f"{platform.name}.lock"
        lock = FileLock(path)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _wait_for(lock, check)
        except OSError as error:
            raise InfrastructureError(f"{path}: cannot be locked: {error}") from error
        try:
            yield
        finally:
            lock.release()


def _wait_for(lock: FileLock, check: Callable[[], None]) -> None:
    # FileLock cannot be woken: short waits let `check` end the wait, e.g. after an interrupt.
    for _ in range(int(PATIENCE / POLL_INTERVAL)):
        check()
        try:
            lock.acquire(timeout=POLL_INTERVAL)
        except Timeout:
            continue
        return
    raise InfrastructureError(
        f"{lock.lock_file}: held for {PATIENCE:.0f} s by another run; end that run and try again"
    )
