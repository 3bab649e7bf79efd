"""Control of Python's cyclic garbage collector."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ALLOCATIONS: Final = 100_000
"""Objects that are made between two collections of the youngest generation; fewer by default."""


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
    """Exempt the objects that exist from garbage collection, and collect others less often.

    For long work beside many objects that stay alive: the collector walks a million jobs in about a
    second, and frees nothing. It is less often useful, too, where the work decodes messages: each
    is thousands of objects without a cycle.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
