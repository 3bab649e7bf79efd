"""The run: recorded, cached, executed, judged, confirmed, written."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.engine.cache.results import ResultCache
from conformance.engine.calibration import Calibration, UnstableJob
from conformance.engine.exit_policy import compute_exit_code
from conformance.engine.job import FinishedJob, Job
from conformance.engine.plan import Plan
from conformance.engine.record_judge import Judge
from conformance.engine.runner import Run
from conformance.engine.runs.directory import RunDirectory
from conformance.golden.accept import apply, plan_accept
from conformance.golden.accept_plan import Candidate
from conformance.golden.store import GoldenStore
from conformance.model.case import Deviation
from conformance.model.outcome import Conformance, ExitCode, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from tests.builders import f32, ok

from .worlds import World, bad, good, planned

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def wrong(one: Job) -> object:
    """End well with another value than the reference."""
    return good(one, 9, 9)


def accept_golden(one: Job, *numbers: float) -> None:
    """Accept a value as the golden of a job."""
    candidate = Candidate(
        case=one.case, variant="cpu", release="0.6.0", observation=ok(f32(*numbers))
    )
    apply(plan_accept(GoldenStore(one.case.families), [candidate], ["0.6.0"]), {})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Three cases in one cell."""
    return World(tmp_path, "one", "two", "three")


def verdicts(records: list[Record]) -> list[str]:
    """Return the verdicts of records."""
    return [str(record.verdict) for record in records]


def test_every_job_of_the_plan_has_a_record_in_its_order(world: World) -> None:
    """Judged and written."""
    records = world.run()
    assert [record.case for record in records] == ["family/one", "family/two", "family/three"]
    assert verdicts(records) == ["new"] * 3
    assert {record.conformance for record in records} == {Conformance.CONFORMS}
    assert sorted(r.case for r in world.directory.read_records()) == sorted(r.case for r in records)


def test_recorded_jobs_do_not_run_again(world: World) -> None:
    """A resumed run executes only missing jobs, and has the same results."""
    world.script.answers["two"] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        world.run()
    world.script.answers.clear()
    records = world.run()
    assert world.script.asked == ["two", "three"]
    assert [replace(r, seconds={}) for r in records] == [
        replace(r, seconds={}) for r in world.run("new")
    ]


@pytest.mark.parametrize("change", ["case", "cell", "infra", "blob"])
def test_outdated_records_run_again(world: World, change: str) -> None:
    """A changed case or cell, a fault of the host, a missing blob."""
    if change == "infra":
        world.script.answers["one"] = [partial(bad, outcome=Outcome.INFRA)]
    record, *_ = world.run()
    world.script.answers.clear()
    first = world.jobs[0]
    if change == "case":
        world.jobs[0] = Job(case=replace(first.case, content_hash="new"), planned=first.planned)
    elif change == "cell":
        world.jobs[0] = Job(case=first.case, planned=replace(first.planned, cell_hash="new"))
    elif change == "blob":
        (world.directory.blobs.folder / record.artifacts["value"]).write_bytes(b"garbage")
    records = world.run()
    assert "one" in world.script.asked
    assert verdicts(records) == ["new"] * 3


def test_unchanged_jobs_come_from_the_cache(world: World) -> None:
    """Another run directory, no execution, the same verdicts, its blobs in place."""
    first = world.run("a")
    again = world.run("b", fresh=False)
    assert world.script.asked == []
    assert [replace(record, cached=False) for record in again] == first
    assert all(record.cached for record in again)
    assert world.directory.blobs.get(again[0].artifacts["value"])


def test_fresh_runs_every_job_and_caches_it(world: World) -> None:
    """`--fresh` takes nothing from the cache."""
    world.run("a")
    world.run("b", fresh=True)
    assert world.script.asked == ["one", "two", "three"]


def test_a_changed_case_misses_the_cache(world: World) -> None:
    """The other cases do not."""
    world.run("a")
    first = world.jobs[0]
    world.jobs[0] = Job(case=replace(first.case, content_hash="new"), planned=first.planned)
    world.run("b", fresh=False)
    assert world.script.asked == ["one"]


def test_a_development_build_is_never_cached(world: World) -> None:
    """The packages of a `path:` cell can change under the same name."""
    place = planned(release="0.6.0")
    place = replace(place, cell=replace(place.cell, release="path:/opt/dev/bin/python"))
    world.jobs = [Job(case=one.case, planned=place) for one in world.jobs]
    world.run("a")
    world.run("b", fresh=False)
    assert world.script.asked == ["one", "two", "three"]


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.INFRA])
def test_possible_faults_of_the_host_are_not_cached(world: World, outcome: Outcome) -> None:
    """It is seen again the next time."""
    world.script.answers["two"] = [partial(bad, outcome=outcome)]
    world.run("a")
    world.run("b", fresh=False)
    assert set(world.script.asked) == {"two"}


@pytest.mark.parametrize(("signal", "asked"), [("SIGABRT", []), ("SIGKILL", ["two"])])
def test_a_declared_crash_is_cached(world: World, signal: str, asked: list[str]) -> None:
    """Except SIGKILL, which comes from outside."""

    def crash(one: Job) -> FinishedJob:
        error = ErrorInfo(type=signal, message="", signature=signal)
        return FinishedJob(job=one, outcome=Outcome.CRASHED, stage=Stage.EXECUTE, error=error)

    two = world.jobs[1]
    declared = Deviation(outcome="crashed", reason="XLA aborts")
    world.jobs[1] = replace(two, case=replace(two.case, deviations=(declared,)))
    world.script.answers["two"] = [crash]
    assert verdicts(world.run("a"))[1] == "known"
    world.run("b", fresh=False)
    assert world.script.asked == asked


@pytest.mark.parametrize("damage", ["record", "blob", "missing"])
def test_a_broken_cache_entry_is_replaced(world: World, damage: str) -> None:
    """The job runs again, and the cache is complete afterwards."""
    record, *_ = world.run("a")
    (stored,) = [
        file
        for file in (world.folder / "cache" / "results").rglob("*.json")
        if b"family/one" in file.read_bytes()
    ]
    blob = world.folder / "cache" / "blobs" / record.artifacts["value"]
    if damage == "record":
        stored.write_bytes(b"{")
        shutil.rmtree(world.folder / "cache" / "settled")
    else:
        content = None if damage == "missing" else b"garbage"
        blob.unlink()
        if content:
            blob.write_bytes(content)
    assert verdicts(world.run("b", fresh=False)) == ["new"] * 3
    assert "one" in world.script.asked
    world.run("c", fresh=False)
    assert world.script.asked == []


def test_a_regression_is_confirmed(world: World) -> None:
    """By a second attempt before it is reported."""
    world.script.answers["two"] = [wrong]
    records = world.run()
    assert world.script.asked == ["one", "two", "three", "two"]
    assert records[1].verdict is Verdict.REGRESSED
    assert records[1].attempts == 2


def test_every_unexpected_job_is_confirmed(world: World) -> None:
    """Also a new job without a reference; in another order and in separate processes."""
    world.script.answers |= {name: [partial(good, reference=False)] for name in ("one", "three")}
    records = world.run()
    assert world.script.asked == ["one", "two", "three", "three", "one"]
    assert [record.attempts for record in records] == [2, 1, 2]


@pytest.mark.parametrize(
    ("first", "second", "rate"),
    [
        (wrong, good, "of 5 attempts: 4 new, 1 regressed"),
        (wrong, bad, "of 5 attempts: 4 new, 1 regressed"),
        (partial(bad, outcome=Outcome.CRASHED), good, "of 5 attempts: 4 new, 1 crashed"),
        (partial(bad, outcome=Outcome.TIMED_OUT), good, "of 5 attempts: 4 new, 1 timed_out"),
    ],
)
def test_attempts_that_disagree_are_flaky(
    world: World, first: object, second: object, rate: str
) -> None:
    """Three more attempts give the rate."""
    world.script.answers["two"] = [first, second]
    records = world.run()
    assert verdicts(records) == ["new", "flaky", "new"]
    assert records[1].attempts == 5
    assert records[1].reasons[-1] == rate
    assert world.script.asked.count("two") == 5


def test_a_fault_of_the_host_confirms_nothing(world: World) -> None:
    """Such an attempt is not counted."""
    world.script.answers["two"] = [wrong, partial(bad, outcome=Outcome.INFRA)]
    records = world.run()
    assert (records[1].verdict, records[1].attempts) == (Verdict.REGRESSED, 1)


def test_a_flaky_job_stays_flaky_when_resumed(world: World) -> None:
    """It is not judged again from its only stored attempt."""
    world.script.answers["two"] = [wrong, good]
    world.run()
    assert verdicts(world.run()) == ["new", "flaky", "new"]
    assert world.script.asked == []


def test_a_confirmed_regression_is_not_confirmed_again(world: World) -> None:
    """It comes from the cache with its number of attempts."""
    world.script.answers["two"] = [wrong]
    world.run("a")
    records = world.run("b", fresh=False)
    assert (records[1].verdict, records[1].attempts) == (Verdict.REGRESSED, 2)
    assert world.script.asked == []


def test_a_job_that_a_new_golden_makes_unexpected_runs_again(world: World) -> None:
    """It was observed only once, as expected."""
    world.run("a")
    accept_golden(world.jobs[1], 7, 7)
    records = world.run("b", fresh=False)
    assert (records[1].verdict, records[1].attempts) == (Verdict.CHANGED, 2)
    assert world.script.asked == ["two"]


def test_only_jobs_that_must_equal_a_golden_may_share_a_process(world: World) -> None:
    """Not those without a golden."""
    accept_golden(world.jobs[0], 1, 2)
    world.run()
    assert world.script.sharing == ["one"]


@pytest.mark.parametrize("first", [wrong, bad])
def test_a_neighbour_in_a_shared_process_cannot_change_a_verdict(
    world: World, first: Callable[[Job], object]
) -> None:
    """A job that ends in another way than its golden runs again alone, and only this counts."""
    accept_golden(world.jobs[0], 1, 2)
    world.script.answers["one"] = [first, good]
    record, *_ = world.run()
    assert (record.verdict, record.attempts) == (Verdict.MATCH, 1)
    assert world.script.asked == ["one", "two", "three", "one"]
    assert world.script.sharing == ["one"]


def test_other_last_digits_in_a_shared_process_count(world: World) -> None:
    """They come from the processor, not from a neighbour."""
    accept_golden(world.jobs[0], 1, 2)
    world.script.answers["one"] = [lambda one: good(one, 1, 2.0000002)]
    record, *_ = world.run()
    assert record.verdict is Verdict.DRIFTED
    assert world.script.asked == ["one", "two", "three"]


def test_an_unexpected_result_is_confirmed_by_two_attempts_alone(world: World) -> None:
    """That of the shared process is no attempt."""
    accept_golden(world.jobs[0], 1, 2)
    world.script.answers["one"] = [bad, wrong]
    record, *_ = world.run()
    assert (record.verdict, record.outcome, record.attempts) == (
        Verdict.REGRESSED, Outcome.OK, 2,
    )  # fmt: skip
    assert world.script.asked.count("one") == 3


def unstable(one: Job) -> Calibration:
    """Return that a job is known not to be stable."""
    known = UnstableJob(
        case=one.case.id, cell=one.planned.cell.id, case_hash=one.case.content_hash,
        attempts=20, differing=3, example="x", day="2026-05-01",
    )  # fmt: skip
    return Calibration(unstable=(known,))


def test_unstable_jobs_are_known(world: World) -> None:
    """The reasons have the calibration and the rate."""
    world.calibration = unstable(world.jobs[1])
    world.script.answers["two"] = [wrong, good]
    records = world.run()
    assert verdicts(records) == ["new", "known", "new"]
    first, _, last = records[1].reasons
    assert first.startswith("not stable on this host: 3 of 20 attempts were unlike the first")
    assert last == "of 5 attempts: 4 new, 1 regressed"


def test_an_unstable_job_regresses_after_five_equal_attempts(world: World) -> None:
    """Two equal attempts are not enough for a job whose attempts are known to disagree."""
    world.calibration = unstable(world.jobs[1])
    world.script.answers["two"] = [wrong]
    records = world.run()
    assert (records[1].verdict, records[1].attempts) == (Verdict.REGRESSED, 5)


@pytest.mark.parametrize("damage", ["message", "value"])
def test_a_report_that_cannot_be_recorded_is_infra_for_its_job(world: World, damage: str) -> None:
    """E.g. a message that no file can hold; the run continues."""

    def odd(job: Job) -> FinishedJob:
        finished = bad(job, message="no such file: \udcff.txt")
        return finished if damage == "message" else replace(good(job), blobs={"value": b"none"})

    name = world.jobs[0].case.name
    world.script.answers[name] = [odd]
    first, *others = world.run()
    assert (first.outcome, first.verdict) == (Outcome.INFRA, Verdict.INFRA)
    assert first.error is not None
    assert first.error.message.startswith("no record can be made of what the job reported: ")
    assert {one.outcome for one in others} == {Outcome.OK}
    world.script.answers[name] = [bad, odd, odd]  # and when it is confirmed
    assert {one.outcome for one in world.run("other")[1:]} == {Outcome.OK}


def test_progress_is_called_once_for_each_job(world: World) -> None:
    """Recorded, cached, executed and confirmed."""
    world.script.answers["two"] = [wrong]
    plan = Plan(jobs=tuple(world.jobs), exclusions=(), cells=(world.jobs[0].planned,))
    heard: list[str] = []
    directory, cache = RunDirectory(world.folder / "r"), ResultCache(world.folder / "cache")
    judge = Judge(directory.blobs)
    run = Run(plan, directory, world.script, cache, judge, lambda one: heard.append(one.case))
    for _ in range(2):
        heard.clear()
        run.execute()
        assert sorted(heard) == ["family/one", "family/three", "family/two"]


def test_unexpected_results_are_told_before_they_are_confirmed(world: World) -> None:
    """They wait for all other jobs, which may take an hour; an interrupt would hide them."""
    world.script.answers["two"] = [wrong]
    plan = Plan(jobs=tuple(world.jobs), exclusions=(), cells=(world.jobs[0].planned,))
    heard: list[str] = []
    directory = RunDirectory(world.folder / "r")
    Run(
        plan, directory, world.script, ResultCache(world.folder / "cache"), Judge(directory.blobs),
        progress=lambda one: heard.append(f"{one.case} {one.verdict}"),
        rerun=lambda one: heard.append(f"{one.case} {one.verdict}, again"),
    ).execute()  # fmt: skip
    told = heard.index("family/two regressed, again")
    assert told < heard.index("family/three new") < heard.index("family/two regressed")


def make_record(verdict: Verdict, conformance: Conformance = Conformance.CONFORMS) -> Record:
    """Return a judged record."""
    outcome = Outcome.INFRA if verdict is Verdict.INFRA else Outcome.OK
    return Record(
        case="f/a", cell="c", case_hash="", cell_hash="", outcome=outcome, stage=Stage.EXECUTE,
        verdict=verdict, conformance=conformance,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ([], ExitCode.NOTHING),
        ([Verdict.EXCLUDED], ExitCode.NOTHING),
        ([Verdict.MATCH, Verdict.KNOWN, Verdict.DRIFTED, Verdict.NEW], ExitCode.OK),
        ([Verdict.MATCH, Verdict.EXCLUDED], ExitCode.OK),
        ([Verdict.INFRA, Verdict.EXCLUDED], ExitCode.INFRA),
        ([Verdict.INFRA, Verdict.MATCH], ExitCode.INFRA),
        ([Verdict.INFRA, Verdict.REGRESSED], ExitCode.UNEXPECTED),
        *(([Verdict.MATCH, verdict], ExitCode.UNEXPECTED) for verdict in Verdict if verdict.gates),
    ],
)
def test_the_exit_status_by_verdicts(found: list[Verdict], code: ExitCode) -> None:
    """No run without results succeeds, and a regression outranks infrastructure."""
    assert compute_exit_code([make_record(verdict) for verdict in found]) is code


def test_an_unreadable_golden_is_a_usage_error() -> None:
    """Exit status 2, not 4."""
    assert (
        compute_exit_code([replace(make_record(Verdict.INFRA), outcome=Outcome.OK)])
        is ExitCode.USAGE
    )


@pytest.mark.parametrize("conformance", [Conformance.UNKNOWN, Conformance.DEVIATES])
def test_a_new_case_without_a_reference_is_unexpected(conformance: Conformance) -> None:
    """Without golden and without a reference it may be anything."""
    assert compute_exit_code([make_record(Verdict.NEW, conformance)]) is ExitCode.UNEXPECTED
