"""The same work on many things, by several processes where that is worth starting them."""

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
"""Things to be worked on from which processes of their own are worth starting."""


@contextmanager
def map_in_processes(
    work: Callable[[A], B], things: Sequence[A], *, processes: int, new: int, chunk: int
) -> Iterator[Iterator[B]]:
    """Have work done on each thing, by other processes while the caller goes on.

    What the caller has not taken when it leaves is not worked on any more.

    Args:
        work: The work; it and the things can be pickled.
        things: What is worked on.
        processes: How many processes may be started.
        new: How many of the things make real work.
        chunk: Things that a process is handed at once.

    Yields:
        What comes of each, in order; to take one waits for it.
    """
    if new < MANY or processes == 1:
        yield map(work, things)
        return
    # Not forked: the caller may have threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context)
    try:
        yield pool.map(work, things, chunksize=chunk)
    finally:
        pool.shutdown(cancel_futures=True)
