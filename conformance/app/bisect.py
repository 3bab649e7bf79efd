"""A search for what changed a target, as `conformance bisect` makes it and others need it, too."""

from __future__ import annotations

import hashlib
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
from conformance.engine.job import CALL
from conformance.engine.rundir import RESULTS, Results, RunDirectory
from conformance.errors import UsageError
from conformance.judge.tolerance import Tolerance
from conformance.triage.bisect.axis import JAX
from conformance.triage.bisect.bisection import Bisection
from conformance.triage.bisect.points import Points
from conformance.triage.bisect.prober import CaseProber, ProgramProber, known_of
from conformance.triage.bisect.telling import step_line
from conformance.triage.programs.common_versions import common_versions
from conformance.triage.programs.requirements import requirements_of
from conformance.triage.programs.running import ProgramRunner
from conformance.triage.questions.figures import MEMORY, METRIC, TIME, time_of, time_of_region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.app.axes import Axis
    from conformance.app.context import ProjectContext
    from conformance.app.suite_target import SuiteTarget
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.prepare import Preparation
    from conformance.model.case import Case
    from conformance.triage.bisect.answer import Answer, Step
    from conformance.triage.bisect.prober import Prober
    from conformance.triage.programs.target import Target
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
class Asked:
    """What is asked, as the options of `conformance bisect` say it.

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
class Found:
    """What came of a search.

    Attributes:
        answer: The answer.
        axis: What was varied.
        left_out: What could not be tried, by name, with the reason.
    """

    answer: Answer
    axis: str
    left_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is tried: a case, a program, or a test of a suite.

    Attributes:
        case: The case.
        program: The program.
        test: The test.
    """

    case: Case | None = None
    program: Target | None = None
    test: SuiteTarget | None = None

    @property
    def tolerance(self) -> Tolerance:
        """What it states about values."""
        return Tolerance() if self.case is None else Tolerance.of(self.case)

    def prepare(self, context: ProjectContext, wanted: tuple[str, ...]) -> Prepare:
        """Return what looks up the locks of cells.

        Args:
            context: The project.
            wanted: What cells of cases are to have beside their own packages; what a program needs
                beside is had where it runs, and a test of a suite knows what it needs.
        """
        if self.test is not None:
            return self.test.prepare
        return partial(Session(context=context).prepare, wanted=wanted if self.case else ())

    def log_name(self, question: str) -> str:
        """Return the name of the folder of its log.

        Args:
            question: What is asked of it.
        """
        name = self.case.id if self.case else ""
        name = self.program.text if self.program else self.test.text if self.test else name
        digest = hashlib.sha256(f"{name}\0{question}\0{Path.cwd()}".encode()).hexdigest()[:12]
        word = "".join(sign if sign.isalnum() else "-" for sign in Path(name).name)[:40]
        return f"{word.strip('-')}-{digest}"


def searched(
    context: ProjectContext,
    subject: Subject,
    asked: Asked,
    say: Callable[[str], None],
    *,
    scan: bool = False,
) -> Found:
    """Search, going on where an earlier search with the same question was.

    Args:
        context: The project.
        subject: What is tried.
        asked: The question.
        say: Is told of each step, in a line.
        scan: Whether all points are tried where the ends alone do not tell what changed.

    Raises:
        UsageError: If options contradict each other, or the ends are not there.
        EndsError: If nothing tells the ends apart.
        InfrastructureError: If an index does not answer, an end cannot be tried now, or the disk
            refuses.
    """
    place = asked.platform or ("cpu1" if subject.program else "")
    chosen = axis_of(
        context, asked.axis, (asked.good, asked.bad), find=asked.find, values=asked.values,
        jax=asked.jax, place=place,
    )  # fmt: skip
    return searched_on(context, subject, asked, chosen, say, scan=scan)


def searched_on(
    context: ProjectContext,
    subject: Subject,
    asked: Asked,
    chosen: Axis,
    say: Callable[[str], None],
    *,
    scan: bool = False,
) -> Found:
    """Search on an axis, going on where an earlier search with the same question was.

    Args:
        context: The project.
        subject: What is tried.
        asked: The question; which axis it means is of no account.
        chosen: The axis.
        say: Is told of each step, in a line.
        scan: Whether all points are tried where the ends alone do not tell what changed.

    Raises:
        UsageError: If options contradict each other, or an end cannot be had.
        EndsError: If nothing tells the ends apart.
        InfrastructureError: If an index does not answer, an end cannot be tried now, or the disk
            refuses.
    """
    figure = asked.figure
    prepare = subject.prepare(context, asked.wanted)
    points = Points(chosen.points, prepare, check=partial(nightlies_answer, context))
    name = subject.log_name(f"{chosen.name} {asked.jax} {asked.platform} {asked.words}")
    directory = RunDirectory(context.project.root / LOGS / name)
    if asked.fresh:
        (directory.path / RESULTS).unlink(missing_ok=True)
    # One that runs beside another takes longer.
    width = 1 if figure is not None else asked.jobs or default_jobs()
    prober = prober_of(
        context, subject, points.locks, directory, asked,
        width=width, ends=(points[0], points[-1]),
    )  # fmt: skip
    with closing(Results(directory)) as log:
        answer = Bisection(
            points=points, reverse=asked.find == "fix", prober=prober,
            blobs=directory.blobs, log=log, tolerance=subject.tolerance,
            known=known_of(prober, directory.read_records(), directory.blobs),
            when="" if figure else asked.when or "", fact=asked.fact, figure=figure, width=width,
            progress=partial(_tell, say, points), scan=scan, every=asked.every,
            repeat=asked.repeat, seen_on=_place_of(points, subject.program),
        ).run()  # fmt: skip
    refused = [*chosen.refused.items(), *((e.cell, e.reason) for e in points.exclusions)]
    return Found(answer=answer, axis=chosen.name, left_out=tuple(refused))


def _place_of(points: Points, program: Target | None) -> int | None:
    """Return the number of the point that a report names, None for any other target."""
    if program is None or program.seen_on not in points.labels:
        return None
    return points.labels.index(program.seen_on)


def _tell(say: Callable[[str], None], points: Points, step: Step) -> None:
    say(step_line(step, points.labels[step.point], max(map(len, points.labels))))


def prober_of(
    context: ProjectContext,
    subject: Subject,
    locks: Mapping[str, Lock],
    directory: RunDirectory,
    asked: Asked,
    *,
    width: int,
    ends: Sequence[PlannedCell],
    wanted: tuple[str, ...] | None = None,
) -> Prober:
    """Return what tries a case, a test or a program in cells.

    Args:
        context: The project.
        subject: What is tried.
        locks: Lock of each cell, by cell id; may grow.
        directory: Where artifacts go.
        asked: The question.
        width: How many are tried at the same time.
        ends: Where a test is looked for.
        wanted: Requirements of a program, None for what the question and the project say.
    """
    if subject.program is None:
        case, executor = _tried(context, subject, locks, width=width, ends=ends)
        trier = Session(context=context).trier(executor, directory.blobs)
        return CaseProber(case=case, trier=trier, calls=CALLS if asked.stage == CALL else 0)
    program = subject.program
    wanted = Session(context=context).requirements(asked.wanted) if wanted is None else wanted
    needed = needed_by(program, wanted, [locks[end.cell.id] for end in ends])
    runner = ProgramRunner(
        target=program, locks=locks, cache=context.cache, outer=os.environ,
        blobs=directory.blobs, timeout=asked.timeout, wanted=wanted,
        preferred=(
            *program.preferred, *common_versions(ends, locks, needed, context.cache)
        ),
        facts=bool(asked.fact) or asked.when == "facts",
        timed=bool(asked.region) or asked.when == "time", metric=asked.metric,
    )  # fmt: skip
    return ProgramProber(runner=runner, slots=width)


def needed_by(program: Target, wanted: Iterable[str], locks: Iterable[Lock]) -> tuple[str, ...]:
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
    subject: Subject,
    locks: Mapping[str, Lock],
    *,
    width: int,
    ends: Sequence[PlannedCell],
) -> tuple[Case, Executor]:
    """Return the case or test that is tried, and what runs it."""
    if subject.test is not None:
        return subject.test.found(ends, locks, slots=width)
    assert subject.case is not None  # noqa: S101 - a subject is one of the three
    return subject.case, Session(context=context).executor(locks, slots=width)
