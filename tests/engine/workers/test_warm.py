"""The warm workers of a node: one per cell, ended by least use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from conformance.engine.workers.warm import WarmWorkers

if TYPE_CHECKING:
    from conformance.engine.local_executor import CellWorker


class Maker:
    """Makes workers that use memory, and records those that were closed."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.closed: list[str] = []
        self.failed = False

    def make(self, name: str) -> Any:
        """Return a worker of a cell."""
        self.made.append(name)
        cell = SimpleNamespace(cell=SimpleNamespace(id=name))
        return SimpleNamespace(
            planned=cell, resident_bytes=100, failed=self.failed,
            close=lambda: self.closed.append(name), interrupt=lambda: self.closed.append(name),
        )  # fmt: skip

    def use(self, workers: WarmWorkers, *names: str) -> None:
        """Use the workers of cells one after another."""
        for name in names:
            with workers.lease(name, lambda name=name: self.make(name)) as worker:  # type: ignore[misc]  # bound now
                used: CellWorker = worker
                assert used.planned.cell.id == name


def test_a_worker_stays_open_for_the_next_batch() -> None:
    """It is started once."""
    maker, workers = Maker(), WarmWorkers(1000, 60.0)
    maker.use(workers, "a", "b", "a", "b")
    assert maker.made == ["a", "b"]
    assert workers.cells == ("a", "b")


def test_the_worker_used_least_recently_is_closed_when_memory_is_scarce() -> None:
    """Idle ones only."""
    maker, workers = Maker(), WarmWorkers(250, 60.0)
    maker.use(workers, "a", "b", "a", "c")
    assert maker.closed == ["b"]
    with workers.lease("a", lambda: maker.make("a")), workers.lease("c", lambda: maker.make("c")):
        maker.use(workers, "d")
    assert maker.closed == ["b", "d"]


def test_an_idle_worker_is_closed_after_a_while() -> None:
    """A node of nobody keeps no memory."""
    maker, workers = Maker(), WarmWorkers(1000, 0.0)
    maker.use(workers, "a")
    assert maker.closed == ["a"]


def test_a_worker_that_could_not_start_is_tried_again() -> None:
    """What failed may work the next time, e.g. because a disk has room again."""
    maker, workers = Maker(), WarmWorkers(1000, 60.0)
    maker.failed = True
    maker.use(workers, "a")
    maker.failed = False
    maker.use(workers, "a")
    assert maker.made == ["a", "a"]


def test_a_worker_that_is_retired_ends_with_its_last_batch() -> None:
    """The next one gets a new worker."""
    maker, workers = Maker(), WarmWorkers(1000, 60.0)
    maker.use(workers, "a")
    workers.retire("a")
    assert maker.closed == ["a"]
    with workers.lease("a", lambda: maker.make("a")):
        workers.retire("a")
        assert maker.closed == ["a"]
        maker.use(workers, "a")
    assert maker.made == ["a"] * 3
    assert maker.closed == ["a"] * 2
    workers.retire("unknown")


def test_closing_ends_all() -> None:
    """Also those in use."""
    maker, workers = Maker(), WarmWorkers(1000, 60.0)
    with workers.lease("a", lambda: maker.make("a")):
        workers.close()
    assert maker.closed == ["a"]
