"""Work in several threads, and what comes of it as it comes."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from conformance.engine.job import Finished

    Tell = Callable[[Finished], None]


def in_slots(
    work: Callable[[Tell], None], slots: int, abandon: Callable[[], None]
) -> Generator[Finished]:
    """Do the same work in several threads, and yield what they tell, in any order.

    Args:
        work: What each thread does, to its end; it is handed what takes a finished job.
        slots: Number of threads.
        abandon: Makes the work end, called once nobody listens any more.

    Yields:
        The finished jobs. Closing the iterator abandons the work, and waits for its end.

    Raises:
        BaseException: What a thread raised, for that is a fault of ours.
    """
    results: queue.SimpleQueue[Finished | BaseException | None] = queue.SimpleQueue()

    def slot() -> None:
        try:
            work(results.put)
        except BaseException as error:  # noqa: BLE001 - a fault of ours ends the run, loudly
            results.put(error)
        results.put(None)

    threads = [threading.Thread(target=slot, name=f"slot-{n}", daemon=True) for n in range(slots)]
    for thread in threads:
        thread.start()
    ended = 0
    try:
        while ended < len(threads):
            result = results.get()
            if result is None:
                ended += 1
            elif isinstance(result, BaseException):
                raise result
            else:
                yield result
    finally:
        abandon()
        for thread in threads:
            thread.join()
