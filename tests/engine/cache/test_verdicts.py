"""Cached verdicts are used until something that they depend on changes."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.engine.cache.results import ResultCache
from conformance.engine.cache.verdicts import VerdictCache, group_by_file
from conformance.engine.runs.directory import RunDirectory
from conformance.golden.accept import apply, plan_accept
from conformance.golden.accept_plan import Candidate
from conformance.golden.store import GoldenStore
from conformance.model.case import Deviation
from conformance.model.outcome import Outcome, Verdict
from tests.builders import f32, ok
from tests.engine.worlds import World, bad, good, planned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.engine.job import Job
    from conformance.model.record import Record


class SettledWorld(World):
    """A case file of two cases in a cell, run again and again with one cache."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "one", "two")
        self.runs = 0

    def again(self, *, fresh: bool = False) -> list[Record]:
        """Run the jobs in a new directory; `script.asked` has the executed cases."""
        self.runs += 1
        return self.run(f"run{self.runs}", fresh=fresh)

    @property
    def settled(self) -> VerdictCache:
        """Cache of the verdicts."""
        return ResultCache(self.folder / "cache").verdicts

    def holds(self, jobs: Sequence[Job] = ()) -> bool:
        """Say whether the verdicts of jobs are taken as they were."""
        blobs = RunDirectory(self.folder / "looked").blobs
        return self.settled.take(jobs or self.jobs, blobs) is not None


@pytest.fixture
def world(tmp_path: Path) -> SettledWorld:
    """Of two cases."""
    return SettledWorld(tmp_path)


def test_an_unchanged_run_gives_the_same_records(world: SettledWorld) -> None:
    """Nothing is executed, and the run directory is complete."""
    first = world.again()
    assert world.holds()
    second = world.again()
    assert world.script.asked == []
    assert second == [replace(record, cached=True) for record in first]
    assert world.directory.read_records() == second
    assert all(world.directory.blobs.get(b) for r in second for b in r.artifacts.values())


def test_each_run_gets_the_blobs(world: SettledWorld) -> None:
    """Although one cache may serve several runs."""
    (record, _) = world.again()
    settled = world.settled
    for name in ("a", "b"):
        blobs = RunDirectory(world.folder / name).blobs
        assert settled.take(world.jobs, blobs) is not None
        assert blobs.get(record.artifacts["value"])


def test_a_fresh_run_takes_no_verdicts(world: SettledWorld) -> None:
    """It stores them for the next run."""
    world.again(fresh=True)
    world.again(fresh=True)
    assert world.script.asked == ["one", "two"]
    assert world.holds()


def test_a_new_golden_invalidates_verdicts(world: SettledWorld) -> None:
    """A new job then matches without being run."""
    world.again()
    case = world.jobs[0].case
    seen = Candidate(case=case, variant="cpu", release="0.6.0", observation=ok(f32(9, 9)))
    apply(plan_accept(GoldenStore(case.families), [seen], ["0.6.0"]), {})
    assert not world.holds()
    one, two = world.again()
    assert world.script.asked == ["one"]  # what is unexpected is seen once more
    assert (one.verdict, two.verdict) == (Verdict.CHANGED, Verdict.NEW)
    assert world.holds()


def test_a_changed_case_is_judged_again(world: SettledWorld) -> None:
    """With any change of its description."""
    world.again()
    first, second = world.jobs
    for other in (
        replace(first.case, content_hash="i" * 8),
        replace(first.case, deviations=(Deviation(releases="<0.7"),)),
        replace(first.case, rtol=0.1),
    ):
        assert not world.holds([replace(first, case=other), second])


def test_another_cell_is_judged_again(world: SettledWorld) -> None:
    """So is another selection of the cases of a file."""
    world.again()
    assert not world.holds(world.jobs[:1])
    other = planned("0.6.1")
    assert not world.holds([replace(one, planned=other) for one in world.jobs])


def test_possible_faults_of_the_host_have_no_cached_verdict(world: SettledWorld) -> None:
    """It is seen again."""
    world.script.answers["one"] = [partial(bad, outcome=Outcome.TIMED_OUT)]
    world.again()
    assert not world.holds()


def test_flaky_jobs_have_no_cached_verdict(world: SettledWorld) -> None:
    """It is flaky, and tried again the next time."""
    world.script.answers["one"] = [lambda one: good(one, 9, 9), good, good, good, good]
    assert world.again()[0].verdict is Verdict.FLAKY
    assert not world.holds()


def test_a_missing_blob_invalidates_verdicts(world: SettledWorld) -> None:
    """The job runs again."""
    record = world.again()[0]
    (world.folder / "cache" / "blobs" / record.artifacts["value"]).unlink()
    world.again()
    assert world.script.asked == ["one", "two"]  # both gave the same value


def test_a_damaged_blob_invalidates_verdicts(world: SettledWorld) -> None:
    """Contents are hashed before a verdict is used."""
    record = world.again()[0]
    blob = world.folder / "cache" / "blobs" / record.artifacts["value"]
    before = blob.stat()
    blob.unlink()
    blob.write_bytes(b"garbage")
    os.utime(blob, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not world.holds()
    assert [record.verdict for record in world.again()] == [Verdict.NEW] * 2
    assert world.holds()


def test_an_unreadable_entry_is_judged_again(world: SettledWorld) -> None:
    """It is replaced."""
    world.again()
    for kept in (world.folder / "cache" / "settled").rglob("*.jsonl"):
        kept.write_bytes(b"nothing")
    assert not world.holds()
    assert [record.verdict for record in world.again()] == [Verdict.NEW] * 2
    assert world.holds()


def test_jobs_are_grouped_by_file_and_cell(world: SettledWorld) -> None:
    """In the order of the plan."""
    elsewhere = [replace(one, planned=planned("0.6.1")) for one in world.jobs]
    assert [*group_by_file([*world.jobs, *elsewhere])] == [world.jobs, elsewhere]
