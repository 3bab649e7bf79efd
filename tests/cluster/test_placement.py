"""The placement of jobs on nodes: every job ends once, on a node that serves it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from conformance.cluster.placement import (
    DEATHS,
    DISPATCH,
    LONGEST,
    SHORTEST,
    START,
    NodeState,
    Placement,
)
from conformance.engine.batches import MOST
from tests.engine.worlds import job, planned

if TYPE_CHECKING:
    from conformance.engine.batches import Batch
    from conformance.engine.job import Job

FOLDER = Path("cases")


def jobs_of(*cells: tuple[str, int], platform: str = "cpu", file: str = "topic") -> list[Job]:
    """Return jobs, so many in each cell of a release."""
    made = []
    for release, number in cells:
        place = planned(release, platform=platform)
        for n in range(number):
            one = job(FOLDER, f"{file}{n}", place)
            made.append(replace(one, case=replace(one.case, file=FOLDER / "family" / f"{file}.py")))
    return made


def placed(jobs: list[Job], *nodes: str, seconds: float = 1.0, slots: int = 1) -> Placement:
    """Return the placement of jobs on nodes of different machines."""
    placement = Placement(jobs, lambda _: seconds)
    for node in nodes:
        placement.add_node(node, slots=slots, machine=node)
    return placement


def finish(placement: Placement, address: str, batch: Batch) -> None:
    """End a batch with a result of each of its jobs."""
    for one in batch.jobs:
        assert placement.finish(one.id)
    placement.end(address, batch.key)


def run_all(placement: Placement) -> list[tuple[str, Batch]]:
    """Return the batches of a run in which every batch takes the same time."""
    ran = []
    while placement.left:
        batches = list(placement.assign())
        assert batches
        ran += batches
        for address, batch in batches:
            finish(placement, address, batch)
    return ran


def test_a_batch_has_jobs_of_one_cell() -> None:
    """In the order of the jobs."""
    jobs = jobs_of(("0.6.0", 5), ("0.6.1", 5))
    ran = run_all(placed(jobs, "a"))
    assert all(len({one.planned.cell.id for one in batch.jobs}) == 1 for _, batch in ran)
    assert [one.id for _, batch in ran for one in batch.jobs] == [one.id for one in jobs]


def test_nodes_share_the_cells() -> None:
    """Each cell is started on one node only, as long as there is other work."""
    jobs = jobs_of(*((f"0.6.{n}", 20) for n in range(6)))
    ran = run_all(placed(jobs, "a", "b", "c", seconds=0.4))
    assert len({(address, batch.cell) for address, batch in ran}) == 6


def test_a_long_cell_gets_help() -> None:
    """If its work is worth starting another worker."""
    long, short = 4 * START, START
    assert {a for a, _ in run_all(placed(jobs_of(("0.6.0", 40)), "a", "b", seconds=long / 40))} == {
        "a", "b",
    }  # fmt: skip
    assert {
        a for a, _ in run_all(placed(jobs_of(("0.6.0", 40)), "a", "b", seconds=short / 40))
    } == {"a"}


def test_nodes_that_wait_are_not_considered_one_by_one() -> None:
    """At the end of a run nearly all of hundreds of nodes wait, and every batch would ask them."""
    considered = []

    class Watched(Placement):
        def _take(self, node: NodeState) -> Batch | None:
            considered.append(node)
            return super()._take(node)

    placement = Watched(jobs_of(("0.6.0", 3 * MOST)), lambda _: START / 4 / MOST)
    for n in range(500):
        placement.add_node(f"node{n}", slots=1, machine=f"machine{n}")
    ran = run_all(placement)
    assert {address for address, _ in ran} == {"node0"}
    assert len(considered) <= 3 * len(ran)


def test_batches_become_smaller_towards_the_end() -> None:
    """So that no node holds up the run."""
    ran = run_all(placed(jobs_of(("0.6.0", 2000)), "a", "b", seconds=0.5))
    sizes = [batch.seconds for _, batch in ran]
    assert max(sizes) <= LONGEST
    assert max(len(batch.jobs) for _, batch in ran) <= MOST
    assert sizes[-1] <= max(sizes) / 10


def test_batches_of_hundreds_of_nodes_are_longer_at_the_end() -> None:
    """They end one after the other, and the run sends the next batch of each."""
    nodes = [f"node{n}" for n in range(600)]
    *sizes, _ = sorted(
        (batch.seconds for _, batch in run_all(placed(jobs_of(("0.6.0", 9000)), *nodes))),
        reverse=True,
    )
    assert sizes[-1] == DISPATCH * len(nodes) > 5 * SHORTEST


def test_a_batch_does_not_begin_another_file_when_it_has_enough_work() -> None:
    """Another file is another import."""
    jobs = [*jobs_of(("0.6.0", 30), file="one"), *jobs_of(("0.6.0", 300), file="two")]
    (_, first), *_ = run_all(placed(jobs, "a"))
    assert {one.case.file.name for one in first.jobs} == {"one.py"}


def test_cells_begin_with_different_files() -> None:
    """Otherwise all nodes would come to the shortest jobs at the same time."""
    files = ("one", "two", "three")
    jobs = [one for n in range(3) for file in files for one in jobs_of((f"0.6.{n}", 2), file=file)]
    ran = run_all(placed(jobs, "a", "b", "c", seconds=LONGEST))
    orders: dict[str, list[str]] = {}
    for _, batch in ran:
        orders.setdefault(batch.cell, []).extend(one.case.file.stem for one in batch.jobs)
    assert sorted(orders.values()) == sorted(
        [name for name in files[n:] + files[:n] for _ in range(2)] for n in range(3)
    )


def test_jobs_of_a_node_that_ended_go_elsewhere() -> None:
    """Those without a result; a second result is none."""
    placement = placed(jobs_of(("0.6.0", 3)), "a", "b", seconds=0.1)
    ((_, batch),) = placement.assign()
    assert placement.finish(batch.jobs[0].id)
    assert placement.remove_node("a") == []
    ((address, again),) = placement.assign()
    assert (address, again.jobs) == ("b", batch.jobs[1:])
    assert not placement.finish(batch.jobs[0].id)


def test_only_the_job_that_ends_nodes_is_blamed() -> None:
    """Its batch ends some nodes; then each of its jobs runs alone."""
    jobs = jobs_of(("0.6.0", 4))
    placement = Placement(jobs, lambda _: 0.1)
    guilty, blamed, ended = jobs[2], [], 0
    placement.add_node("n0", slots=2, machine="m")
    while placement.left:
        for address, batch in list(placement.assign()):
            if guilty in batch.jobs:
                blamed += placement.remove_node(address)
                ended += 1
                placement.add_node(f"n{ended}", slots=2, machine="m")
                break
            finish(placement, address, batch)
    assert (blamed, ended) == ([guilty], DEATHS + 1)


def test_nothing_runs_beside_a_measurement() -> None:
    """On no node of the same machine."""
    jobs = jobs_of(("0.6.0", 2))
    jobs[0] = replace(jobs[0], measure={"sizes": [1]})
    placement = Placement(jobs, lambda _: 1.0)
    for node in "ab":
        placement.add_node(node, slots=1, machine="same")
    ((first, measured),) = placement.assign()
    assert (measured.alone, measured.jobs) == (True, (jobs[0],))
    finish(placement, first, measured)
    ((second, other),) = placement.assign()
    assert other.jobs == (jobs[1],)
    finish(placement, second, other)
    assert placement.left == 0


def test_an_accelerator_has_one_batch() -> None:
    """Also if several nodes are on its machine; nodes without one have none."""
    jobs = jobs_of(("0.6.0", 40), ("0.6.1", 40), platform="gpu")
    placement = Placement(jobs, lambda _: 1.0)
    placement.add_node("none", slots=1, machine="x")
    for node in "ab":
        placement.add_node(node, slots=2, machine="y", accelerators=["gpu"])
    batches = list(placement.assign())
    assert len(batches) == 1
    assert batches[0][0] in {"a", "b"}


def test_a_cell_that_every_node_refuses_is_given_up() -> None:
    """Its jobs are returned; the others run."""
    jobs = jobs_of(("0.6.0", 2), ("0.6.1", 2))
    placement = placed(jobs, "a", "b")
    while batches := list(placement.assign()):
        for address, batch in batches:
            if batch.cell == jobs[0].planned.cell.id:
                placement.refuse(address, batch.key)
            else:
                finish(placement, address, batch)
    assert placement.take_refused() == jobs[:2]
    assert placement.left == 0


class Cluster(RuleBasedStateMachine):
    """A cluster to which anything happens."""

    @initialize(
        sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5),
        seconds=st.floats(0.01, 100),
        measured=st.booleans(),
    )
    def begin(self, sizes: list[int], seconds: float, measured: bool) -> None:
        """Plan the jobs."""
        self.jobs = jobs_of(*((f"0.6.{n}", size) for n, size in enumerate(sizes)))
        if measured:
            self.jobs[0] = replace(self.jobs[0], measure={"sizes": [1]})
        self.placement = Placement(self.jobs, lambda _: seconds)
        self.running: dict[tuple[str, str], Batch] = {}
        self.machines: dict[str, str] = {}
        self.ended: list[tuple[str, str]] = []
        self.count = 0

    @rule(slots=st.integers(1, 3), machine=st.sampled_from("xy"))
    def join(self, slots: int, machine: str) -> None:
        """A node joins."""
        self.count += 1
        address = f"n{self.count}"
        self.machines[address] = machine
        self.placement.add_node(address, slots=slots, machine=machine)

    @rule()
    def assign(self) -> None:
        """Free slots get batches."""
        for address, batch in self.placement.assign():
            self.running[address, batch.key] = batch

    @rule(data=st.data(), results=st.integers(0, 40), refuses=st.booleans())
    def end(self, data: st.DataObject, results: int, refuses: bool) -> None:
        """A batch ends, with results of all jobs or fewer."""
        if not self.running:
            return
        address, key = data.draw(st.sampled_from(sorted(self.running)))
        batch = self.running.pop((address, key))
        for one in batch.jobs[:results]:
            if self.placement.finish(one.id):
                self.ended.append(one.id)
        if refuses:
            self.placement.refuse(address, key)
        else:
            self.placement.end(address, key, [batch.cell])

    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """A node ends with its batches."""
        if not self.machines:
            return
        address = data.draw(st.sampled_from(sorted(self.machines)))
        del self.machines[address]
        self.running = {pair: one for pair, one in self.running.items() if pair[0] != address}
        self.ended += [one.id for one in self.placement.remove_node(address)]

    @rule()
    def give_up(self) -> None:
        """What every node refuses is given up."""
        self.ended += [one.id for one in self.placement.take_refused()]

    @invariant()
    def every_job_is_somewhere(self) -> None:
        """None ends twice, and none is lost."""
        assert len(set(self.ended)) == len(self.ended)
        assert self.placement.left == len(self.jobs) - len(self.ended)

    @invariant()
    def nothing_runs_twice(self) -> None:
        """No two running batches have the same job, and nothing runs beside a lone one."""
        running = [one.id for batch in self.running.values() for one in batch.jobs]
        assert len(set(running)) == len(running)
        for (address, _), batch in self.running.items():
            if batch.alone:
                machine = self.machines[address]
                assert sum(self.machines[a] == machine for a, _ in self.running) == 1

    def teardown(self) -> None:
        """With a new node that serves everything, every job ends."""
        if not hasattr(self, "placement"):
            return
        for address, key in list(self.running):
            self.placement.end(address, key)
        for address in list(self.machines):
            self.ended += [one.id for one in self.placement.remove_node(address)]
        self.placement.add_node("last", slots=2, machine="z")
        for _ in range(10 * len(self.jobs)):
            for address, batch in self.placement.assign():
                finish(self.placement, address, batch)
        assert self.placement.left == 0


TestCluster = Cluster.TestCase
