"""Measuring in turn: the order of jobs, what is measured again, what cannot be measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from conformance.app.bench.measurer import (
    CONFIRMING,
    MORE,
    OVERVIEW,
    SCREENING,
    BenchOptions,
    CellMeasurer,
)
from conformance.app.bench.run import compare_cases
from conformance.app.bench.suspicion import GLANCE, LEAST
from conformance.bench.comparison import CaseComparison, adjust_comparisons
from conformance.bench.measured import MEASUREMENTS, Measured, Taken
from conformance.engine.job import FinishedJob, Job
from conformance.model.outcome import Outcome, Stage
from tests.engine.worlds import bad, job, planned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from conformance.engine.job import PlannedCell

OLD, NEW = planned("0.6.0"), planned("0.6.1")


class Host:
    """An executor whose jobs take as long as a function says, with some noise."""

    def __init__(self, seconds: Callable[[str, int | None], float], seed: int = 11) -> None:
        self.seconds = seconds
        self.asked: list[str] = []
        self.renewed: list[str] = []
        self.settings: list[Mapping[str, Any]] = []
        self.failing = ""
        self.noise = 0.02
        self.waiting: dict[str, float] = {}
        self.leaks: list[float] = []
        """Bytes that a call of the next jobs leaves; 0 of all others."""
        self._generator = np.random.default_rng(seed)

    def run(self, jobs: Iterable[Job]) -> Iterator[FinishedJob]:
        """Yield a job with its measurements, or one that raised."""
        for one in jobs:
            release = one.planned.release
            self.asked.append(release)
            if release == self.failing:
                yield bad(one)
                continue
            assert one.measure is not None
            self.settings.append(one.measure)
            found = [self._measure(release, size) for size in one.measure["sizes"]]
            blobs = {MEASUREMENTS: msgspec.json.encode(found)}
            yield FinishedJob(job=one, outcome=Outcome.OK, stage=Stage.EXECUTE, blobs=blobs)

    def renew(self, planned: PlannedCell) -> None:
        """Note that the next job needs a new worker."""
        self.renewed.append(planned.release)

    def _measure(self, release: str, size: int | None) -> Measured:
        seconds = self.seconds(release, size) * float(np.exp(self._generator.normal(0, self.noise)))
        taken = Taken(wall=seconds + self.waiting.get(release, 0.0), cpu=seconds)
        memory = {"leak": int(self.leaks.pop(0)) if self.leaks else 0}
        return Measured(size=size, passes=1, phases={"run": taken}, memory=memory)


def compare(host: Host, folder: Path, *cells: Any, **more: Any) -> list[CaseComparison]:
    """Return the comparisons of one case."""
    bench = CellMeasurer(host, cells or (OLD, NEW), BenchOptions())  # type: ignore[arg-type]
    return adjust_comparisons(compare_cases(bench, [job(folder, **more).case], 1))


def test_a_worker_that_is_faster_hides_no_difference(tmp_path: Path) -> None:
    """The workers of the first rounds differ by 7 percent, the releases by 10 in the other way."""
    host = Host(lambda *_: 0.01)
    host.noise = 0.005
    host.seconds = lambda release, _: (
        0.01 if release == "0.6.0" else 0.0103 if not host.renewed else 0.011
    )
    (found,) = compare(host, tmp_path)
    assert {one.phase for one in found.alarms} == {"run"}  # type: ignore[union-attr]


def test_cells_are_measured_in_turn(tmp_path: Path) -> None:
    """There and back, so that drift meets both; nothing that looks equal is measured again."""
    host = Host(lambda *_: 0.01)
    (found,) = compare(host, tmp_path)
    there, back = ["0.6.0", "0.6.1"], ["0.6.1", "0.6.0"]
    assert host.asked == [*there, *back, *there, *back]
    assert found.alarms == ()


def test_what_looks_slower_is_measured_again(tmp_path: Path) -> None:
    """The new pairs alone decide."""
    host = Host(lambda release, _: 0.01 if release == "0.6.0" else 0.011)
    (found,) = compare(host, tmp_path)
    assert {one.phase for one in found.alarms} == {"run"}  # type: ignore[union-attr]
    assert all(LEAST <= one.ratio.pairs <= CONFIRMING for one in found.time)


def test_a_small_difference_needs_new_workers(tmp_path: Path) -> None:
    """In each round that decides: the addresses of a worker explain no large one."""
    host = Host(lambda release, _: 0.01 if release == "0.6.0" else 0.011)
    (found,) = compare(host, tmp_path)
    assert host.renewed == ["0.6.0", "0.6.1"] * found.time[0].ratio.pairs
    host = Host(lambda release, _: 0.01 if release == "0.6.0" else 0.03)
    (found,) = compare(host, tmp_path)
    assert host.renewed == []


def test_cases_that_may_differ_share_new_workers(tmp_path: Path) -> None:
    """Their rounds alternate."""
    host = Host(lambda release, _: 0.01 if release == "0.6.0" else 0.011)
    host.noise = 0.001
    cases = [job(tmp_path, name=f"case_{number}").case for number in range(3)]
    bench = CellMeasurer(host, (OLD, NEW), BenchOptions())  # type: ignore[arg-type]
    found = adjust_comparisons(compare_cases(bench, cases, 1))
    assert all(one.alarms for one in found)
    rounds = max(one.ratio.pairs for case in found for one in case.time)
    assert host.renewed == ["0.6.0", "0.6.1"] * rounds
    assert len(host.asked) <= 3 * 2 * (SCREENING + MORE + rounds)


def test_the_jobs_of_two_cells_take_turns(tmp_path: Path) -> None:
    """At one place, the first of them first; on an accelerator one runs after the other."""
    host = Host(lambda *_: 0.01)
    compare(host, tmp_path)
    first, second = host.settings[:2]
    assert first["turns"]["path"] == second["turns"]["path"]
    assert [first["turns"]["first"], second["turns"]["first"]] == [True, False]
    host.settings.clear()
    compare(host, tmp_path, *(planned(release, platform="gpu") for release in ("0.6.0", "0.6.1")))
    assert not any("turns" in one for one in host.settings)


def test_neighbours_of_several_cells_are_compared(tmp_path: Path) -> None:
    """Each with the one before."""
    host = Host(lambda release, _: 0.02 if release == "0.6.2" else 0.01)
    found = compare(host, tmp_path, OLD, NEW, planned("0.6.2"))
    assert [bool(one.alarms) for one in found] == [False, True]
    assert found[1].cells == (NEW.cell.id, planned("0.6.2").cell.id)


def test_a_case_with_sizes_has_exponents(tmp_path: Path) -> None:
    """A quadratic loop is an alarm, at the largest size and in its growth."""
    host = Host(lambda release, n: 1e-6 * (n or 1) ** (1 if release == "0.6.0" else 2))
    (found,) = compare(host, tmp_path, sizes=(10, 20, 40, 80))
    assert found.size == 80
    assert found.growth[0].alarm


@pytest.mark.parametrize("seed", [3, 13, 26])
def test_a_busy_host_hides_no_growth(tmp_path: Path, seed: int) -> None:
    """The time at the largest size is certain before its growth is: all sizes are measured on."""
    host = Host(lambda release, n: 1e-6 * (n or 1) ** (1 if release == "0.6.0" else 2), seed=seed)
    host.noise = 0.3
    (found,) = compare(host, tmp_path, sizes=(10, 20, 40, 80))
    assert found.growth[0] in found.alarms


def test_growth_counts_where_the_largest_size_differs(tmp_path: Path) -> None:
    """Small sizes that other load slowed down are no alarm."""
    host = Host(lambda release, n: 8e-5 if release == "0.6.1" else 1e-6 * (n or 1))
    (found,) = compare(host, tmp_path, sizes=(10, 20, 40, 80))
    assert found.growth[0].alarm
    assert found.alarms == ()


def test_a_difference_that_is_gone_is_looked_for_no_longer(tmp_path: Path) -> None:
    """A busy host in the first rounds costs few others."""
    host = Host(lambda *_: 0.01)
    host.seconds = lambda release, _: (
        0.012 if release == "0.6.1" and len(host.asked) <= 2 * SCREENING else 0.01
    )
    (found,) = compare(host, tmp_path)
    assert len(host.asked) == 2 * (SCREENING + MORE + GLANCE)
    assert found.alarms == ()


def test_a_single_slow_round_of_many_cells_is_looked_at_again(tmp_path: Path) -> None:
    """In the two comparisons of its cell alone, and without the rounds that decide."""
    cells = [planned(f"0.6.{number}") for number in range(12)]
    host = Host(lambda *_: 0.01)
    host.noise = 0.005
    host.seconds = lambda *_: 0.02 if len(host.asked) == 2 else 0.01
    bench = CellMeasurer(host, cells, BenchOptions(screening=1))  # type: ignore[arg-type]
    found = list(compare_cases(bench, [job(tmp_path).case], 1))
    assert not any(one.alarms for one in found)
    assert sorted(host.asked[12:]) == ["0.6.0", "0.6.1", "0.6.2"]


def test_a_large_change_in_one_of_many_cells_takes_few_rounds(tmp_path: Path) -> None:
    """No other cell differs as much from the one before."""
    cells = [planned(f"0.6.{number}") for number in range(24)]
    slower = {one.release for one in cells[10:]}
    host = Host(lambda release, _: 0.02 if release in slower else 0.01)
    bench = CellMeasurer(host, cells, OVERVIEW)  # type: ignore[arg-type]
    found = adjust_comparisons(compare_cases(bench, [job(tmp_path).case], 1))
    assert [one.cells[1] for one in found if one.alarms] == [cells[10].cell.id]
    assert len(host.asked) == 24 + 2 * (2 + GLANCE)


def test_a_single_larger_size_is_looked_at_again(tmp_path: Path) -> None:
    """In the first round one call left 100 KiB, as an allocator does, and never again."""
    host = Host(lambda *_: 0.01)
    host.leaks = [0, 102_400]
    bench = CellMeasurer(host, (OLD, NEW), OVERVIEW)  # type: ignore[arg-type]
    (found,) = compare_cases(bench, [job(tmp_path).case], 1)
    (leak,) = found.memory
    assert (leak.after, leak.alarm) == ((102_400.0, 0.0), False)
    host.leaks = [0, 102_400, 102_400, 0, 0, 102_400, 0, 102_400, 102_400, 0]
    (found,) = compare_cases(bench, [job(tmp_path).case], 1)
    assert [(one.name, one.alarm) for one in found.memory] == [("leak", True)]


def test_an_overview_looks_for_differences_of_half(tmp_path: Path) -> None:
    """Of three sizes, in one round; a smaller difference is not measured again."""
    cells = [planned(f"0.6.{number}") for number in range(3)]
    slow = {"0.6.1": 1.2, "0.6.2": 3.0}
    sizes: list[int | None] = []

    def take(release: str, size: int | None) -> float:
        sizes.append(size)
        return 1e-6 * (size or 1) * slow.get(release, 1.0)

    host = Host(take)
    bench = CellMeasurer(host, cells, OVERVIEW)  # type: ignore[arg-type]
    found = adjust_comparisons(
        compare_cases(bench, [job(tmp_path, sizes=(10, 20, 40, 80)).case], 1)
    )
    assert sizes[:9] == [10, 40, 80] * 3
    assert [{one.phase for one in pair.alarms} for pair in found] == [set(), {"run"}]  # type: ignore[union-attr]
    assert "0.6.0" not in host.asked[3:]


def test_cases_are_measured_beside_each_other(tmp_path: Path) -> None:
    """Each case in turn in its cells, as alone."""
    host = Host(lambda *_: 0.01)
    host.noise = 0.005
    cases = [job(tmp_path, name=f"case_{number}").case for number in range(5)]
    bench = CellMeasurer(host, (OLD, NEW), BenchOptions(jobs=2))  # type: ignore[arg-type]
    found = list(compare_cases(bench, cases, 2))
    assert {one.case for one in found} == {case.id for case in cases}
    assert len(host.asked) == 5 * 2 * SCREENING


def test_jobs_beside_each_other_are_compared_by_processor_time(tmp_path: Path) -> None:
    """They wait for one another, which says nothing about a release."""
    host = Host(lambda *_: 0.01)
    host.waiting = {"0.6.1": 0.01}
    for jobs, rounds in ((1, SCREENING + LEAST), (2, SCREENING)):
        host.asked.clear()
        bench = CellMeasurer(host, (OLD, NEW), BenchOptions(jobs=jobs))  # type: ignore[arg-type]
        (found,) = compare_cases(bench, [job(tmp_path).case], 1)
        assert len(host.asked) >= 2 * rounds if jobs == 1 else len(host.asked) == 2 * rounds
        assert any(one.is_suspicious() for one in found.time)


def test_a_cell_that_cannot_run_the_case_says_why(tmp_path: Path) -> None:
    """It is asked once, the other cell goes on."""
    host = Host(lambda *_: 0.01)
    host.failing = "0.6.1"
    (found,) = compare(host, tmp_path)
    assert found.problem == f"{NEW.cell.id}: raised: ValueError: bad shape"
    assert host.asked.count("0.6.1") == 1


def test_a_cell_that_a_case_is_not_for_is_not_asked(tmp_path: Path) -> None:
    """The comparison has the reason, as the plan of a run has it."""
    host = Host(lambda *_: 0.01)
    (found,) = compare(host, tmp_path, releases=">=0.6.1")
    assert found.problem == f"{OLD.cell.id}: applies to jax>=0.6.1, the cell has 0.6.0"
    assert host.asked == ["0.6.1"] * SCREENING
