"""Plans without cells: artificial jobs, and an executor that follows a script."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.cells.cell import Cell
from conformance.engine.cache.results import ResultCache
from conformance.engine.calibration import Calibration
from conformance.engine.job import FinishedJob, Job, PlannedCell
from conformance.engine.plan import Plan
from conformance.engine.record_judge import Judge
from conformance.engine.runner import Run
from conformance.engine.runs.directory import RunDirectory
from conformance.model.case import Case
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo
from conformance.model.value import encode_value
from tests.builders import f32

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping
    from pathlib import Path

    from conformance.model.record import Record

VERSIONS = {"jax": "0.6.0", "numpy": "2.2.4", "flax": "0.10.6"}


def planned(release: str = "0.6.0", **more: Any) -> PlannedCell:
    """Return a planned cell."""
    cell = Cell(release=release, python="3.11", **more)
    return PlannedCell(
        cell=cell, versions={**VERSIONS, "jax": release}, lock_hash="l" * 8, cell_hash="c" * 8
    )


def job(folder: Path, name: str = "one", place: PlannedCell | None = None, **more: Any) -> Job:
    """Return a job of the family `family`."""
    case = Case(
        id=f"family/{name}", family="family", topic="topic", name=name, kind="program",
        file=folder / "family" / "topic.py", line=7, **{"content_hash": "h" * 8, **more},
    )  # fmt: skip
    return Job(case=case, planned=place or planned())


def good(job: Job, *numbers: float, reference: bool = True) -> FinishedJob:
    """Return a job that ended well, and conforms unless it has no reference."""
    seen = encode_value(f32(*(numbers or (1, 2))))
    blobs = {"value": seen, "reference": encode_value(f32(1, 2))} if reference else {"value": seen}
    return FinishedJob(job=job, outcome=Outcome.OK, stage=Stage.EXECUTE, blobs=blobs)


def bad(job: Job, outcome: Outcome = Outcome.RAISED, message: str = "bad shape") -> FinishedJob:
    """Return a job that did not end well."""
    error = ErrorInfo(type="ValueError", message=message, signature=f"ValueError: {message}")
    return FinishedJob(job=job, outcome=outcome, stage=Stage.TRACE, error=error)


@dataclass
class Script:
    """An executor that follows a script, and records the jobs that it ran.

    Attributes:
        answers: Results of the attempts of a job, by case name; the last result repeats.
        asked: Case names of the jobs that ran, in order.
        sharing: Case names of those that could share a process, in order.
    """

    answers: dict[str, list[Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sharing: list[str] = field(default_factory=list)
    identities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob]:
        """Yield the results of the script."""
        for one in jobs:
            answers = self.answers.get(one.case.name, [good])
            attempt = self.asked.count(one.case.name)
            self.asked.append(one.case.name)
            self.sharing += [one.case.name] if one.may_share and not one.alone else []
            answer = answers[min(attempt, len(answers) - 1)]
            if isinstance(answer, BaseException):
                raise answer
            yield answer(one)


def array(*numbers: float) -> bytes:
    """Return the bytes of a float32 vector."""
    return np.array(numbers, np.float32).tobytes()


class World:
    """A folder with cases, a cache and runs, and an executor that follows a script."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self.jobs = [job(folder / "cases", name) for name in names]
        self.script = Script()
        self.calibration = Calibration()

    def run(self, name: str = "run", *, fresh: bool = True) -> list[Record]:
        """Run the plan in a run directory of this name, by default without the cache."""
        self.script.asked.clear()
        plan = Plan(jobs=tuple(self.jobs), exclusions=(), cells=(self.jobs[0].planned,))
        self.directory = RunDirectory(self.folder / name)
        cache = ResultCache(self.folder / "cache", fresh=fresh)
        judge = Judge(self.directory.blobs)
        run = Run(plan, self.directory, self.script, cache, judge, calibration=self.calibration)
        return run.execute()
