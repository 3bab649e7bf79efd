"""A concurrent writer that holds the lock of a folder for some time."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from conformance.locking import lock_folders

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def another_writer(folder: Path, seconds: float = 0.3) -> Iterator[threading.Event]:
    """Hold the lock of a folder for some time, as another process would.

    Args:
        folder: The folder.
        seconds: Time until the lock is released.

    Yields:
        An event that is set as soon as the lock is released.
    """
    held, released = threading.Event(), threading.Event()

    def hold() -> None:
        with lock_folders([folder], print):
            held.set()
            time.sleep(seconds)
            released.set()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(10)
    try:
        yield released
    finally:
        holder.join()
