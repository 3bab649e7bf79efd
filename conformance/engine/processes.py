"""The same work on many things, by several processes where that is worth starting them."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

A = TypeVar("A")
B = TypeVar("B")
MANY: Final = 24
"""Things to be worked on from which processes of their own are worth starting."""


def mapped(
    work: Callable[[A], B], things: Sequence[A], *, processes: int, new: int, chunk: int
) -> Iterator[B]:
    """Yield what comes of the work on each thing, in order.

    Args:
        work: The work; it and the things can be pickled.
        things: What is worked on.
        processes: How many processes may be started.
        new: How many of the things make real work.
        chunk: Things that a process is handed at once.
    """
    if new < MANY or processes == 1:
        yield from map(work, things)
        return
    # Not forked: the caller may have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield from pool.map(work, things, chunksize=chunk)
