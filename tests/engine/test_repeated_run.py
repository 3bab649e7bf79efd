"""Runs with several attempts of each test: orders, rates and caching."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.cache.results import ResultCache
from conformance.engine.job import RecordedJob
from conformance.engine.plan import Plan
from conformance.engine.record_judge import Judge, store_artifacts
from conformance.engine.runner import ATTEMPTS, RepeatedRun, shuffle_jobs
from conformance.engine.runs.directory import RunDirectory
from conformance.model.case import Deviation
from conformance.model.outcome import Outcome, Verdict

from .worlds import Script, bad, good, job

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from conformance.engine.job import Job
    from conformance.model.record import Record


def a_test(folder: Path, name: str, **more: Any) -> Job:
    """Return a test as a job."""
    one = job(folder, name)
    return replace(one, case=replace(one.case, kind="test", **more))


def run(folder: Path, jobs: Sequence[Job], script: Script, times: int = 5) -> dict[str, Record]:
    """Run tests several times; return their records, by name."""
    plan = Plan(jobs=tuple(jobs), exclusions=(), cells=(jobs[0].planned,))
    directory = RunDirectory(folder / "run")
    repeated = RepeatedRun(
        plan=plan, directory=directory, executor=script, cache=ResultCache(folder / "cache"),
        judge=Judge(directory.blobs), times=times, seed=3, progress=lambda _: None,
    )  # fmt: skip
    records = repeated.execute()
    assert [record.case for record in records] == [one.case.id for one in jobs]
    assert [record.case for record in repeated.directory.read_records()][-len(jobs) :] == [
        record.case for record in records
    ]
    return {record.case.rpartition("/")[2]: record for record in records}


def test_disagreeing_attempts_are_flaky_with_their_rate(tmp_path: Path) -> None:
    """Also two errors; each attempt is stored."""
    names = ("fine", "fails", "now_and_then", "either")
    jobs = [a_test(tmp_path, name) for name in names]
    other = partial(bad, message="another")
    answers: dict[str, list[Any]] = {
        "fails": [bad], "now_and_then": [good, good, bad, good, good], "either": [bad, other],
    }  # fmt: skip
    script = Script(answers=answers)
    records = run(tmp_path, jobs, script)
    assert {name: record.verdict for name, record in records.items()} == {
        "fine": Verdict.MATCH, "fails": Verdict.REGRESSED,
        "now_and_then": Verdict.FLAKY, "either": Verdict.FLAKY,
    }  # fmt: skip
    assert records["now_and_then"].reasons[-1] == "of 5 attempts: 4 match, 1 regressed"
    assert records["now_and_then"].error is not None, "the failure has the evidence"
    assert {record.attempts for record in records.values()} == {5}
    told = RunDirectory(tmp_path / "run").blobs.get(records["now_and_then"].artifacts[ATTEMPTS])
    seen = [one["outcome"] for one in json.loads(told)]
    assert seen == ["ok", "ok", "raised", "ok", "ok"]
    assert len(script.asked) == 5 * len(names)


def test_stable_jobs_are_cached_and_flaky_ones_removed(tmp_path: Path) -> None:
    """A run that finds a test flaky takes back what an earlier one knew of it."""
    jobs = [a_test(tmp_path, name) for name in ("fine", "now_and_then")]
    blobs = RunDirectory(tmp_path / "other").blobs
    run(tmp_path / "a", jobs, Script(), times=2)
    cache = ResultCache(tmp_path / "a" / "cache")
    assert all(cache.take(one, blobs) for one in jobs)
    run(tmp_path / "a", jobs, Script(answers={"now_and_then": [good, bad]}), times=2)
    assert [cache.take(one, blobs) is not None for one in jobs] == [True, False]


def test_a_failure_that_may_pass_is_known(tmp_path: Path) -> None:
    """It is not flaky."""
    known = Deviation(error="ValueError", may_pass=True, reason="by chance")
    jobs = [a_test(tmp_path, "chance", deviations=(known,))]
    records = run(tmp_path, jobs, Script(answers={"chance": [good, bad]}), times=3)
    assert records["chance"].verdict is Verdict.KNOWN


def test_unobserved_attempts_are_no_disagreement(tmp_path: Path) -> None:
    """An attempt that the host spoilt is no disagreement."""
    jobs = [a_test(tmp_path, "one")]
    lost = partial(bad, outcome=Outcome.INFRA)
    record = run(tmp_path, jobs, Script(answers={"one": [lost, good]}), times=3)["one"]
    assert (record.verdict, record.attempts) == (Verdict.MATCH, 2)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_each_attempt_has_its_order(tmp_path: Path, number: int) -> None:
    """The first as planned, the others shuffled, the same for the same seed."""
    jobs = [a_test(tmp_path, f"t{n}") for n in range(30)]
    order = shuffle_jobs(jobs, 7, number)
    assert (order == jobs) is (number == 0)
    assert order == shuffle_jobs(jobs, 7, number)
    assert order != shuffle_jobs(jobs, 7, number + 1)


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(), st.integers(0, 5))
def test_tests_of_a_file_stay_together(files: Iterable[int], seed: int, number: int) -> None:
    """And none is lost."""
    one = job(Path("cases"))
    jobs = [
        replace(one, case=replace(one.case, id=f"f/{n}", file=Path(f"test_{file}.py")))
        for n, file in enumerate(sorted(files))
    ]
    order = shuffle_jobs(jobs, seed, number)
    assert sorted(j.case.id for j in order) == sorted(j.case.id for j in jobs)
    seen = [j.case.file for j in order]
    assert sum(a != b for a, b in pairwise(seen)) == max(len({*seen}) - 1, 0)


class Elsewhere(Script):
    """A script whose jobs run on a host with another processor."""

    def run(self, jobs: Iterable[Job]) -> Generator[RecordedJob]:  # type: ignore[override]  # also an `Executor`
        """Yield records of the results."""
        for one in super().run(jobs):
            record = store_artifacts(one, self.blobs)
            yield RecordedJob(job=one.job, record=record, source=self.blobs, same_host=False)

    blobs: BlobStore


def test_attempts_on_another_processor_are_not_cached(tmp_path: Path) -> None:
    """Its last digits may differ from those of this host."""
    one = a_test(tmp_path, "far")
    script = Elsewhere()
    script.blobs = BlobStore(tmp_path / "far")
    assert run(tmp_path, [one], script)["far"].verdict is Verdict.MATCH
    cache = ResultCache(tmp_path / "cache")
    assert cache.take(one, BlobStore(tmp_path / "again")) is None
    run(tmp_path / "here", [one], Script())
    cache = ResultCache(tmp_path / "here" / "cache")
    assert cache.take(one, BlobStore(tmp_path / "again")) is not None
