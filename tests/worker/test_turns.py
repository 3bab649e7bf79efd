"""Turns of two jobs: one works while the other one waits."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from conformance.worker import turns
from conformance.worker.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

T = TypeVar("T")


def run_both(folder: Path, work: Callable[[Turns, str], T]) -> list[T]:
    """Run a function in two jobs, each with its turns and its name, and return both results."""

    def run(name: str) -> T:
        own = Turns({"path": str(folder / "turns"), "first": name == "a"})
        try:
            return work(own, name)
        finally:
            own.close()

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(run, "ab"))


def test_one_works_while_the_other_one_waits(tmp_path: Path) -> None:
    """Pieces of work alternate, whatever each of them takes."""
    done: list[str] = []
    alone = threading.Lock()

    def work(own: Turns, name: str) -> None:
        for _ in range(5):
            assert alone.acquire(blocking=False)
            done.append(name)
            alone.release()
            own.hand_over()

    run_both(tmp_path, work)
    assert done == ["a", "b"] * 5


def test_both_decide_by_the_larger_value(tmp_path: Path) -> None:
    """Each of them, so that they go on in the same way."""
    values = {"a": [1.0, 4.0, 2.0], "b": [3.0, 0.5, 2.0]}

    def work(own: Turns, name: str) -> list[float]:
        found = []
        for value in values[name]:
            found.append(own.agree(value))
            own.hand_over()
        return found

    assert run_both(tmp_path, work) == [[3.0, 4.0, 2.0]] * 2


def test_the_other_job_may_end_earlier(tmp_path: Path) -> None:
    """What it raised is its own; this one goes on alone."""

    def work(own: Turns, name: str) -> tuple[float, bool] | None:
        own.hand_over()
        if name == "a":
            return None
        own.hand_over()
        return own.agree(7.0), own.together

    assert run_both(tmp_path, work) == [None, (7.0, False)]


def test_a_job_that_nobody_meets_works_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one failed before it was to be measured."""
    monkeypatch.setattr(turns, "PATIENCE", 0.05)
    for is_first in (True, False):
        own = Turns({"path": str(tmp_path / f"{is_first}"), "first": is_first})
        own.hand_over()
        assert (own.together, own.agree(2.0)) == (False, 2.0)
    assert not Turns(None).together


def test_both_work_on_the_same_processor(tmp_path: Path) -> None:
    """On that of the first one, and on all of them in between."""
    everywhere = os.sched_getaffinity(0)

    def work(own: Turns, _: str) -> set[int]:
        with own.on_shared_processor():
            inside = os.sched_getaffinity(0)
        assert os.sched_getaffinity(0) == everywhere
        own.hand_over()
        return inside

    first, second = run_both(tmp_path, work)
    assert first == second
    assert first < everywhere or len(everywhere) == 1
