"""An upgrade of made-up cases: which jobs it takes, and what is told of them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pytest

from conformance.cells.cell import Cell
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.job import PlannedCell
from conformance.golden.spans import Span, SpanMatch
from conformance.model.outcome import Conformance, Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.model.value import encode_value
from conformance.triage.upgrade.comparison import ComparedCase, UpgradeAxis
from conformance.triage.upgrade.effect import Effect
from conformance.triage.upgrade.upgrade import Upgrade
from tests.builders import case, f32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from conformance.engine.job import Job

RELEASES = ("0.5.3", "0.6.0", "0.6.1", "0.6.2", "0.7.0", "0.7.1", "0.7.2", "0.8.0")


def cell_of(release: str) -> PlannedCell:
    """Return the cell of a release."""
    cell = Cell(release=release, python="3.11", devices=8)
    return PlannedCell(cell=cell, versions={"jax": release}, lock_hash="l", cell_hash="h")


AXIS = UpgradeAxis(platform="cpu8", cells=tuple(map(cell_of, RELEASES)), labels=RELEASES)


class World:
    """Says what each case does on each release, and remembers what it was asked."""

    judged = Conformance.CONFORMS
    """What the references say of values."""
    golden: Mapping[str, str] = MappingProxyType({})
    """Content of the golden of every case, by release."""

    def __init__(self, folder: Path, says: Callable[[str, str, bool], Any]) -> None:
        self.blobs = BlobStore(folder)
        self.asked: list[tuple[str, str, bool]] = []
        self.attempts: dict[tuple[str, str], int] = {}
        self._says = says

    def run(self, jobs: Iterable[Job], *, again: bool = False) -> Iterator[tuple[Job, Record]]:
        """Say what jobs do."""
        for job in jobs:
            assert job.alone is again
            self.asked.append((job.case.id, job.planned.release, again))
            yield job, self._record(job, self._says(job.case.id, job.planned.release, again))

    def find_golden_span(self, job: Job) -> SpanMatch[str] | None:
        """Return the golden of a release."""
        release = job.planned.release
        content = self.golden.get(release)
        span = None if content is None else Span(release, release, content)
        return None if span is None else SpanMatch(span, exact=True)

    def equals_golden(self, job: Job, record: Record) -> bool:
        """Say whether a job has the value, or the error, of the golden."""
        found = self.find_golden_span(job)
        content = record.signature.removeprefix("ValueError: ") or "1"
        return found is not None and found.span.content == content

    def cache_confirmed(self, job: Job, record: Record, attempts: int) -> None:
        """Remember how often a job was tried."""
        assert record.case == job.case.id
        self.attempts[job.id] = attempts

    def _record(self, job: Job, said: Any) -> Record:
        record = Record(
            case=job.case.id, cell=job.planned.cell.id, case_hash="", cell_hash="",
            outcome=Outcome.OK, stage=Stage.EXECUTE, conformance=self.judged,
            attempts=self.attempts.get(job.id, 1),
        )  # fmt: skip
        if isinstance(said, Outcome):
            return replace(record, outcome=said, conformance=Conformance.UNKNOWN)
        if isinstance(said, str):
            error = ErrorInfo(type="ValueError", message=said, signature=f"ValueError: {said}")
            return replace(
                record, outcome=Outcome.RAISED, error=error, conformance=Conformance.DEVIATES
            )
        return replace(record, artifacts={"value": self.blobs.put(encode_value(f32(said)))})


def upgraded(
    folder: Path,
    says: Callable[[str, str, bool], Any],
    names: tuple[str, ...] = ("f/a",),
    *,
    releases: str = "",
    thorough: bool = False,
    golden: Iterable[str] = (),
) -> tuple[list[ComparedCase], World]:
    """Upgrade cases in a world; return what came of it, and the world.

    The golden of every case is a text for each release.
    """
    world = World(folder, says)
    world.golden = dict(zip(RELEASES, golden, strict=False))
    upgrade = Upgrade(
        [case(name, releases=releases) for name in names], [AXIS],
        root=folder, runner=cast("Any", world), blobs=world.blobs, thorough=thorough,
    )  # fmt: skip
    records = list(upgrade.run())
    assert len(records) == len([one for one in world.asked if not one[2]])
    assert len(list(upgrade.list_jobs())) <= len(records)
    return upgrade.list_comparisons(), world


def since(release: str, before: Any, after: Any) -> Callable[[str, str, bool], Any]:
    """Say one thing before a release, and another since."""
    first = RELEASES.index(release)
    return lambda _, at, __: after if RELEASES.index(at) >= first else before


@pytest.mark.parametrize("release", RELEASES[1:])
def test_the_release_of_a_change_is_found(tmp_path: Path, release: str) -> None:
    """Both sides are tried twice, and no other job is."""
    (one,), world = upgraded(tmp_path, since(release, 1, "bad"))
    (step,) = one.steps
    assert (one.effect, step.effect) == (Effect.BROKEN, Effect.BROKEN)
    assert AXIS.labels[step.after] == release
    assert one.decisive == step
    again = [at for _, at, repeated in world.asked if repeated]
    assert again == [AXIS.labels[step.before], AXIS.labels[step.after]]
    assert len(world.asked) - len(again) <= len(RELEASES) - 1


def test_each_phase_tells_its_jobs(tmp_path: Path) -> None:
    """Both ends, the releases between them in several rounds, and both sides of the change."""
    world = World(tmp_path, since("0.6.0", 1, "bad"))
    upgrade = Upgrade(
        [case("f/a")], [AXIS], root=tmp_path, runner=cast("Any", world), blobs=world.blobs
    )
    phases: list[tuple[str, int]] = []
    taken: list[Record] = []
    records = list(upgrade.run(lambda *phase: phases.append(phase), taken.append))
    first, *between, last = phases
    assert (first, last) == (("both ends", 2), ("changes again", 2))
    assert {name for name, _ in between} == {"releases between"}
    assert sum(jobs for _, jobs in phases) == len(taken) == len(records) + 2


def test_both_sides_of_a_change_of_the_golden_are_tried(tmp_path: Path) -> None:
    """And nothing else; the golden is the other attempt of a job that equals it."""
    golden = ["1"] * 5 + ["bad"] * 3
    (one,), world = upgraded(tmp_path, since("0.7.1", 1, "bad"), golden=golden)
    assert [AXIS.labels[step.after] for step in one.steps] == ["0.7.1"]
    assert world.asked == [("f/a", at, False) for at in ("0.5.3", "0.8.0", "0.7.0", "0.7.1")]


def test_a_change_between_ends_that_are_alike_is_found_by_the_golden(tmp_path: Path) -> None:
    """It is undone before the end."""
    says = dict(zip(RELEASES, (1, 1, "bad", "bad", 1, 1, 1, 1), strict=True))
    golden = map(str, says.values())
    (one,), _ = upgraded(tmp_path, lambda _, at, __: says[at], golden=golden)
    assert [AXIS.labels[step.after] for step in one.steps] == ["0.6.1", "0.7.0"]
    assert one.effect is Effect.UNCHANGED


def test_a_change_elsewhere_than_that_of_the_golden_is_found(tmp_path: Path) -> None:
    """The experiment counts, and what differs from the golden is tried again."""
    golden = ["1"] + ["bad"] * 7
    (one,), world = upgraded(tmp_path, since("0.7.1", 1, "bad"), golden=golden)
    assert [AXIS.labels[step.after] for step in one.steps] == ["0.7.1"]
    assert [at for _, at, again in world.asked if again] == ["0.7.0"]


def test_an_unchanged_case_costs_few_jobs(tmp_path: Path) -> None:
    """Both ends, and the release in which another case breaks."""
    says = since("0.7.1", 1, "bad")
    both, world = upgraded(
        tmp_path, lambda name, at, _: says(name, at, _) if name == "f/a" else 1, ("f/a", "f/b")
    )
    assert [one.effect for one in both] == [Effect.BROKEN, Effect.UNCHANGED]
    assert [at for name, at, _ in world.asked if name == "f/b"] == ["0.5.3", "0.8.0", "0.7.1"]


def test_every_change_between_the_ends_is_found(tmp_path: Path) -> None:
    """Right, raises, another value: the last, compared with the beginning, decides."""
    said = dict(zip(RELEASES, (1, "bad", 2, 2, 2, 2, 2, 2), strict=True))
    (one,), _ = upgraded(tmp_path, lambda _, at, __: said[at])
    assert [AXIS.labels[step.after] for step in one.steps] == ["0.6.0", "0.6.1"]
    assert [step.effect for step in one.steps] == [Effect.BROKEN, Effect.VALUE]
    assert one.effect is Effect.VALUE
    assert one.decisive == one.steps[-1]
    assert one.steps[-1].change == one.whole


def test_an_undone_change_is_found_only_by_a_thorough_upgrade(tmp_path: Path) -> None:
    """Both ends are alike."""
    says = {"0.6.1": "bad"}
    (one,), world = upgraded(tmp_path / "a", lambda _, at, __: says.get(at, 1))
    assert (one.steps, len(world.asked)) == ((), 2)
    (one,), world = upgraded(tmp_path / "b", lambda _, at, __: says.get(at, 1), thorough=True)
    assert [step.effect for step in one.steps] == [Effect.BROKEN, Effect.FIXED]
    assert one.effect is Effect.UNCHANGED
    assert {at for _, at, _ in world.asked} == set(RELEASES)


def test_all_cases_of_a_file_are_tried_where_one_breaks(tmp_path: Path) -> None:
    """All raise on one release; only a case whose ends differ leads there."""

    def says(name: str, at: str, _: bool) -> Any:
        return "bad" if at == "0.7.2" else float(name == "f/a" and at == "0.8.0")

    names = ("f/a", "f/b", "f/c")
    found, world = upgraded(tmp_path, says, names)
    for one in found:
        assert [AXIS.labels[s.after] for s in one.steps if s.effect is Effect.BROKEN] == ["0.7.2"]
    assert [one.passing is None for one in found] == [True, False, False]
    tried = [at for name, at, again in world.asked if name == "f/b" and not again]
    assert len(tried) < len(RELEASES)


def test_a_case_of_another_file_is_not_tried_where_one_breaks(tmp_path: Path) -> None:
    """Of many files one breaks on each release, which would lead to all jobs."""
    world = World(tmp_path, lambda name, at, _: "bad" if name == "f/a" and at >= "0.7.0" else 1.0)
    cases = [case("f/a"), replace(case("g/b"), file=tmp_path / "other.py")]
    upgrade = Upgrade(cases, [AXIS], root=tmp_path, runner=cast("Any", world), blobs=world.blobs)
    list(upgrade.run())
    assert [at for name, at, _ in world.asked if name == "g/b"] == [RELEASES[0], RELEASES[-1]]


def test_a_long_break_is_looked_for_at_both_of_its_ends(tmp_path: Path) -> None:
    """One case raises from 0.6.1 to 0.7.2, another in 0.7.2 alone."""

    def says(name: str, at: str, _: bool) -> Any:
        if name == "f/a":
            return "bad" if "0.6.1" <= at <= "0.7.2" else float(at == "0.8.0")
        return "bad" if at == "0.7.2" else 1

    (_, other), _ = upgraded(tmp_path, says, ("f/a", "f/b"))
    assert other.passing is not None
    assert AXIS.labels[other.passing.after] == "0.7.2"


def test_unknown_releases_are_skipped(tmp_path: Path) -> None:
    """A change is between the known releases around them."""

    def says(_: str, at: str, __: bool) -> Any:
        return Outcome.INFRA if at in {"0.6.1", "0.6.2"} else 1 if at < "0.6.1" else "bad"

    (one,), _ = upgraded(tmp_path, says)
    (step,) = one.steps
    assert (AXIS.labels[step.before], AXIS.labels[step.after]) == ("0.6.0", "0.7.0")


def test_an_unknown_end_is_a_refusal(tmp_path: Path) -> None:
    """Nothing is compared."""
    (one,), world = upgraded(tmp_path / "a", since("0.8.0", 1, Outcome.UNSUPPORTED))
    assert (one.whole, one.refusal) == (None, "0.8.0: unsupported")
    (one,), world = upgraded(tmp_path / "b", since("0.8.0", 1, 2), releases=">=0.6")
    assert one.refusal == "0.5.3: applies to jax>=0.6, the cell has 0.5.3"
    assert world.asked == []


def test_a_flaky_case_has_no_other_result(tmp_path: Path) -> None:
    """Only the disagreement of its attempts is reported."""
    (one,), _ = upgraded(tmp_path, lambda _, at, again: 3 if again else float(at == "0.8.0"))
    assert (one.whole, one.steps) == (None, ())
    assert one.flaky.startswith("0.7.2: attempts disagree: out 1 of 1 elements")


@pytest.mark.parametrize("judged", [Conformance.CONFORMS, Conformance.UNKNOWN])
def test_a_confirmed_job_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judged: Conformance
) -> None:
    """An upgrade of which nothing has changed runs no job."""
    monkeypatch.setattr(World, "judged", judged)
    _, world = upgraded(tmp_path, since("0.6.0", 1, 2))
    assert any(again for *_, again in world.asked)
    world.asked.clear()
    again = Upgrade(
        [case("f/a")], [AXIS], root=tmp_path, runner=cast("Any", world), blobs=world.blobs
    )
    list(again.run())
    assert not any(repeated for *_, repeated in world.asked)


def test_a_flaky_job_is_confirmed_each_time(tmp_path: Path) -> None:
    """It was not the same."""
    _, world = upgraded(tmp_path, lambda _, at, again: 3 if again else float(at == "0.8.0"))
    assert all(attempts < 2 for attempts in world.attempts.values())


def test_a_change_without_a_reference_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came out the same twice is tried twice more, both sides; not where a reference is."""
    asked: list[bool] = []

    def says(_: str, at: str, again: bool) -> Any:
        asked.append(again)
        lucky = sum(asked) < 5
        return float(at == "0.8.0") if lucky else 7

    (one,), _ = upgraded(tmp_path / "a", says)
    assert (one.effect, sum(asked)) == (Effect.VALUE, 2)
    asked.clear()
    monkeypatch.setattr(World, "judged", Conformance.UNKNOWN)
    (one,), _ = upgraded(tmp_path / "b", says)
    assert one.flaky.startswith("0.7.2: attempts disagree: out 1 of 1 elements")
    assert sum(asked) == 6
