"""Work in several threads: all that is told comes out, and nothing goes on unheard."""

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


def test_all_that_is_told_comes_out() -> None:
    """Whichever thread tells it; and in the end the work is abandoned, for there is none left."""
    left, ends = [*JOBS], threading.Event()

    def work(tell: Emit) -> None:
        while left:
            tell(good(left.pop()))

    found = [finished.job for finished in run_in_slots(work, 3, ends.set)]
    assert sorted(one.id for one in found) == sorted(one.id for one in JOBS)
    assert ends.is_set()


def test_a_fault_of_ours_is_raised() -> None:
    """Once every thread has ended."""

    def work(tell: Emit) -> None:
        tell(good(JOBS[0]))
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        list(run_in_slots(work, 2, lambda: None))


def test_who_does_not_listen_any_more() -> None:
    """Abandons the work, and waits for its end."""
    stop, ended = threading.Event(), threading.Event()

    def work(tell: Emit) -> None:
        tell(good(JOBS[0]))
        stop.wait(30)
        ended.set()

    found = run_in_slots(work, 1, stop.set)
    next(found)
    found.close()
    assert ended.is_set()
