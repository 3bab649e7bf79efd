"""Work in several threads: every finished job is yielded, and no thread is left."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.engine.scheduler import run_in_slots

from .worlds import good, job

if TYPE_CHECKING:
    from conformance.engine.scheduler import Emit

JOBS = [job(Path(), f"case{n}") for n in range(20)]


def test_every_emitted_job_is_yielded() -> None:
    """From any thread; in the end the work is abandoned."""
    left, ends = [*JOBS], threading.Event()

    def work(tell: Emit) -> None:
        while left:
            tell(good(left.pop()))

    found = [finished.job for finished in run_in_slots(work, 3, ends.set)]
    assert sorted(one.id for one in found) == sorted(one.id for one in JOBS)
    assert ends.is_set()


def test_an_exception_of_a_thread_is_raised() -> None:
    """After every thread has ended."""

    def work(tell: Emit) -> None:
        tell(good(JOBS[0]))
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        list(run_in_slots(work, 2, lambda: None))


def test_closing_the_iterator_abandons_the_work() -> None:
    """And waits for its end."""
    stop, ended = threading.Event(), threading.Event()

    def work(tell: Emit) -> None:
        tell(good(JOBS[0]))
        stop.wait(30)
        ended.set()

    found = run_in_slots(work, 1, stop.set)
    next(found)
    found.close()
    assert ended.is_set()
