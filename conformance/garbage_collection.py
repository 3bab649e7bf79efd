"""Control of Python's cyclic garbage collector."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause the cyclic garbage collector.

    For work that creates many objects that stay alive and few cycles: the collector would walk
    all of them again and again and free nothing, which takes up to a tenth of the time.
    """
    # Blocks may be nested: only the outermost enables it again.
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def exempt_from_garbage_collection() -> Iterator[None]:
    """Exempt the objects that exist from garbage collection.

    For long work beside many objects that stay alive: the collector walks a million jobs in about a
    second, and frees nothing.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
