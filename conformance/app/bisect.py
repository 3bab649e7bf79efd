"""Bisection: the search for the point at which a target changed, from options to the answer."""

from __future__ import annotations

import os
import re
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.axes import axis_of, nightlies_answer
from conformance.app.context import TIMEOUT, default_jobs
from conformance.app.session import Session
from conformance.app.target import Target, log_name_of, preparer_of, tolerance_of
from conformance.engine.job import CALL
from conformance.engine.run_directory import RESULTS, Results, RunDirectory
from conformance.errors import UsageError
from conformance.model.case import Case
from conformance.triage.bisect.axis import JAX
from conformance.triage.bisect.bisection import Bisection
from conformance.triage.bisect.points import Points
from conformance.triage.bisect.prober import CaseProber, ProgramProber, known_of
from conformance.triage.bisect.telling import step_line
from conformance.triage.programs.common_versions import common_versions
from conformance.triage.programs.program import Program
from conformance.triage.programs.requirements import requirements_of
from conformance.triage.programs.running import ProgramRunner
from conformance.triage.questions.figures import MEMORY, METRIC, TIME, time_of, time_of_region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.app.axes import Axis
    from conformance.app.context import ProjectContext
    from conformance.app.suite_target import SuiteTest
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.preparation import Preparation
    from conformance.triage.bisect.answer import Answer, Step
    from conformance.triage.bisect.prober import Prober
    from conformance.triage.questions.figures import Figure

    Prepare = Callable[[Iterable[Cell]], Preparation]

LOGS: Final = Path("reports") / "bisect"
"""Where searches are logged, below the project."""
FIGURES: Final = ("time", "memory")
"""What `--when` says of what is measured."""
TIMED: Final = ("build", "trace", "lower", "compile", "execute", CALL)
"""Stages whose time is measured of a case; `call` is one call once all is compiled."""
CALLS: Final = 20
"""Warm calls of a job, of which the fastest counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectOptions:
    """Options of `conformance bisect`.

    Attributes:
        good: Where the target is right.
        bad: Where it is wrong.
        axis: What is varied.
        jax: The release of jax, where another thing is varied.
        values: Values of an option, in order, comma-separated.
        find: `bad` or `fix`.
        when: What makes a point bad, None for whatever tells both ends apart.
        fact: A fact that does.
        stage: The stage whose time counts.
        region: The region of a program whose time counts.
        metric: Pattern of a number that a program prints.
        platform: Where, empty for the default.
        timeout: Seconds that a script may take.
        wanted: Requirements beside the packages of the cells.
        fresh: Whether the log of an earlier search is forgotten.
        jobs: Probes at the same time.
        every: Whether every point is tried.
        repeat: How often a point must be good to be so.
    """

    good: str
    bad: str
    axis: str = JAX
    jax: str = "latest"
    values: str = ""
    find: str = "bad"
    when: str | None = None
    fact: str = ""
    stage: str | None = None
    region: str = ""
    metric: re.Pattern[str] | None = None
    platform: str = ""
    timeout: float = TIMEOUT
    wanted: tuple[str, ...] = ()
    fresh: bool = False
    jobs: int = 0
    every: bool = False
    repeat: int = 1

    @property
    def figure(self) -> Figure | None:
        """What is measured, None where one look answers the question.

        Raises:
            UsageError: If the options contradict each other.
        """
        asked = {
            "--fact": self.fact, "--stage": self.stage, "--region": self.region,
            "--metric": self.metric,
        }  # fmt: skip
        named = [f"{option} {_text(value)}" for option, value in asked.items() if value]
        if len(named) > 1:
            raise UsageError(f"{' and '.join(named)}: expected one of them")
        goes = "facts" if self.fact else "time"
        if named and self.when is not None and (self.metric or self.when != goes):
            raise UsageError(f"{named[0]}: goes with --when {goes}, got --when {self.when}")
        measured = self.stage or self.region or self.metric or self.when in FIGURES
        if measured and (self.every or self.repeat > 1):
            option = "--every" if self.every else "--repeat"
            raise UsageError(f"{option}: goes with what one look shows, expected nothing measured")
        return self._figure()

    def _figure(self) -> Figure | None:
        if self.metric is not None:
            return METRIC
        if self.region:
            return time_of_region(self.region)
        if self.stage is not None:
            return time_of(self.stage)
        return {"time": TIME, "memory": MEMORY}.get(self.when or "")

    @property
    def words(self) -> str:
        """Words that name the log of the question."""
        given = (self.when, self.fact, self.stage, self.region, _text(self.metric))
        return " ".join(word or "" for word in given)


def _text(value: str | re.Pattern[str] | None) -> str:
    return value.pattern if isinstance(value, re.Pattern) else value or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectResult:
    """The answer of a bisection.

    Attributes:
        answer: The answer.
        axis: What was varied.
        left_out: What could not be tried, by name, with the reason.
    """

    answer: Answer
    axis: str
    left_out: tuple[tuple[str, str], ...]


def find_change(
    context: ProjectContext,
    target: Target,
    asked: BisectOptions,
    say: Callable[[str], None],
    *,
    axis: Axis | None = None,
    scan: bool = False,
) -> BisectResult:
    """Find the points between which a target changed, resuming an earlier search for the same.

    Args:
        context: The project.
        target: The target to try.
        asked: The question.
        say: Called with a line for each step.
        axis: The axis to search, None for the one that the options name.
        scan: Whether all points are tried if the ends alone do not show what changed.

    Raises:
        UsageError: If options contradict each other, or an end does not exist.
        EndsError: If nothing tells the ends apart.
        InfrastructureError: If an index does not answer, an end cannot be tried now, or the disk
            refuses.
    """
    if axis is None:
        place = asked.platform or ("cpu1" if isinstance(target, Program) else "")
        axis = axis_of(
            context, asked.axis, (asked.good, asked.bad), find=asked.find, values=asked.values,
            jax=asked.jax, place=place,
        )  # fmt: skip
    figure = asked.figure
    prepare = preparer_of(context, target, asked.wanted)
    points = Points(axis.points, prepare, check=partial(nightlies_answer, context))
    name = log_name_of(target, f"{axis.name} {asked.jax} {asked.platform} {asked.words}")
    directory = RunDirectory(context.project.root / LOGS / name)
    if asked.fresh:
        (directory.path / RESULTS).unlink(missing_ok=True)
    # One that runs beside another takes longer.
    width = 1 if figure is not None else asked.jobs or default_jobs()
    prober = prober_of(
        context, target, points.locks, directory, asked,
        width=width, ends=(points[0], points[-1]),
    )  # fmt: skip
    with closing(Results(directory)) as log:
        answer = Bisection(
            points=points, reverse=asked.find == "fix", prober=prober,
            blobs=directory.blobs, log=log, tolerance=tolerance_of(target),
            known=known_of(prober, directory.read_records(), directory.blobs),
            when="" if figure else asked.when or "", fact=asked.fact, figure=figure, width=width,
            progress=partial(_tell, say, points), scan=scan, every=asked.every,
            repeat=asked.repeat, seen_on=_place_of(points, target),
        ).run()  # fmt: skip
    refused = [*axis.refused.items(), *((e.cell, e.reason) for e in points.exclusions)]
    return BisectResult(answer=answer, axis=axis.name, left_out=tuple(refused))


def _place_of(points: Points, target: Target) -> int | None:
    """Return the number of the point that a report names, None for any other target."""
    if not isinstance(target, Program) or target.seen_on not in points.labels:
        return None
    return points.labels.index(target.seen_on)


def _tell(say: Callable[[str], None], points: Points, step: Step) -> None:
    say(step_line(step, points.labels[step.point], max(map(len, points.labels))))


def prober_of(
    context: ProjectContext,
    target: Target,
    locks: Mapping[str, Lock],
    directory: RunDirectory,
    asked: BisectOptions,
    *,
    width: int,
    ends: Sequence[PlannedCell],
    wanted: tuple[str, ...] | None = None,
) -> Prober:
    """Return what tries a case, a test or a program in cells.

    Args:
        context: The project.
        target: The target to try.
        locks: Lock of each cell, by cell id; may grow.
        directory: Where artifacts go.
        asked: The question.
        width: How many are tried at the same time.
        ends: Where a test is looked for.
        wanted: Requirements of a program, None for what the question and the project say.
    """
    if not isinstance(target, Program):
        case, executor = _tried(context, target, locks, width=width, ends=ends)
        trier = Session(context=context).job_runner(executor, directory.blobs)
        return CaseProber(case=case, trier=trier, calls=CALLS if asked.stage == CALL else 0)
    wanted = Session(context=context).requirements(asked.wanted) if wanted is None else wanted
    needed = needed_by(target, wanted, [locks[end.cell.id] for end in ends])
    runner = ProgramRunner(
        target=target, locks=locks, cache=context.cache, outer=os.environ,
        blobs=directory.blobs, timeout=asked.timeout, wanted=wanted,
        preferred=(
            *target.preferred, *common_versions(ends, locks, needed, context.cache)
        ),
        facts=bool(asked.fact) or asked.when == "facts",
        timed=bool(asked.region) or asked.when == "time", metric=asked.metric,
    )  # fmt: skip
    return ProgramProber(runner=runner, slots=width)


def needed_by(program: Program, wanted: Iterable[str], locks: Iterable[Lock]) -> tuple[str, ...]:
    """Return what a program needs in addition to the packages of its cells.

    Args:
        program: The program.
        wanted: Requirements that the user names.
        locks: Locks of the cells.
    """
    given = [name for lock in locks for name in lock.pins]
    return (*requirements_of(program.source, wanted, given), *program.preferred)


def _tried(
    context: ProjectContext,
    target: Case | SuiteTest,
    locks: Mapping[str, Lock],
    *,
    width: int,
    ends: Sequence[PlannedCell],
) -> tuple[Case, Executor]:
    """Return the case or test that is tried, and what runs it."""
    if isinstance(target, Case):
        return target, Session(context=context).executor(locks, slots=width)
    return target.found(ends, locks, slots=width)
