"""A map over many items, by several processes if there is enough work to start them."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

A = TypeVar("A")
B = TypeVar("B")
MANY: Final = 24
"""Number of new items from which starting processes saves time."""


@contextmanager
def map_in_processes(
    work: Callable[[A], B], items: Sequence[A], *, processes: int, new: int, chunk: int
) -> Iterator[Iterator[B]]:
    """Apply a function to each item, in other processes while the caller continues.

    Items whose results the caller has not taken when it leaves are cancelled.

    Args:
        work: The function; it and the items can be pickled.
        items: Arguments of the function.
        processes: Maximum number of processes.
        new: Number of items that need real work, e.g. are not cached.
        chunk: Items that a process gets at once.

    Yields:
        An iterator over the results in the order of the items; it waits for each result.
    """
    if new < MANY or processes == 1:
        yield map(work, items)
        return
    # Not forked: the caller may have threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context)
    try:
        yield pool.map(work, items, chunksize=chunk)
    finally:
        # Without `cancel_futures` an interrupted command would wait for all items.
        pool.shutdown(cancel_futures=True)
