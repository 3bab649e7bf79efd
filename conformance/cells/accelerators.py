"""The accelerators of this host: is there one, and whose turn is it."""

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
    "tpu": ("dev/accel[0-9]*", "dev/vfio/[0-9]*"),
}
"""What a driver makes for each accelerator: NVIDIA's, AMD's, that of Windows beneath Linux."""
LOOK_AGAIN: Final = 0.2
"""Seconds between two looks at whether a turn is still wanted."""
PATIENCE: Final = 3600.0
"""Seconds that a turn is waited for."""


def find_missing_accelerator(platform: Platform, root: Path = Path("/")) -> str:
    """Return why an accelerator cannot be run on here, empty when it may be there.

    Only files are looked at: nothing need be installed to tell that there is none.

    Args:
        platform: A platform.
        root: Root of the file system.
    """
    if not platform.real:
        return ""
    patterns = DEVICE_FILES[platform.name]
    if any(any(root.glob(pattern)) for pattern in patterns):
        return ""
    looked = ", ".join(f"/{pattern.replace('[0-9]*', 'N')}" for pattern in patterns)
    return f"no {platform.name.upper()} on this host: none of {looked} is there"


class DeviceLock:
    """One job at a time on each accelerator of this host, whatever run it belongs to.

    Args:
        cache: Cache folder, which runs on one host have in common.
    """

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "turns"

    @contextmanager
    def of(self, platform: Platform, check: Callable[[], None]) -> Iterator[None]:
        """Wait for the accelerator of a platform, and hold it; others are not waited for.

        Args:
            platform: A platform.
            check: Called now and then while waiting; what it raises ends the wait.

        Raises:
            InfrastructureError: If another run holds it for too long, or the disk refuses.
        """
        if not platform.real:
            yield
            return
        path = self._folder / f"{platform.name}.lock"
        lock = FileLock(path)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _acquire(lock, check)
        except OSError as error:
            raise InfrastructureError(f"{path}: cannot be locked: {error}") from error
        try:
            yield
        finally:
            lock.release()


def _acquire(lock: FileLock, check: Callable[[], None]) -> None:
    for _ in range(int(PATIENCE / LOOK_AGAIN)):
        check()
        try:
            lock.acquire(timeout=LOOK_AGAIN)
        except Timeout:
            continue
        return
    raise InfrastructureError(
        f"{lock.lock_file}: held for {PATIENCE:.0f} s by another run; end that run and try again"
    )
