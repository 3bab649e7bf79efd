"""Bisection: the search for the point at which a target changed, from options to the answer."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

from conformance.app.search.axes import check_nightlies, make_axis
from conformance.app.search.options import GROWTH
from conformance.app.session import Session
from conformance.app.target import (
    Target,
    choose_platform,
    get_tolerance,
    make_log_name,
    make_preparer,
)
from conformance.bench.measured import LEAK_CALLS, make_settings
from conformance.engine.runs.directory import RESULTS, Results, RunDirectory
from conformance.model.case import Case
from conformance.search.axes import AxisCells
from conformance.search.endpoints import AlikeError, EndpointsError
from conformance.search.metrics import LEAK, TIME
from conformance.search.point_predicates import MetricPredicate, measure_distance
from conformance.search.printed_times import find_printed_times
from conformance.search.prober import CaseProber, select_known_records
from conformance.search.trials import CellTrials
from conformance.triage.bisect.bisection import Bisection
from conformance.triage.bisect.endpoints import EndpointSearch
from conformance.triage.bisect.render import format_step
from conformance.triage.programs.outcomes import read_devices_error
from conformance.triage.programs.program import ProgramTarget
from conformance.triage.programs.requirements import collect_requirements, find_common_versions
from conformance.triage.programs.runner import ProgramRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.app.context import ProjectContext
    from conformance.app.search.options import SearchOptions
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.workers.preparation import Preparation
    from conformance.search.answers import SearchStep
    from conformance.search.axes import SearchAxis, SearchPoints
    from conformance.search.prober import Prober
    from conformance.triage.bisect.bisection import BisectAnswer
    from conformance.triage.bisect.endpoints import Samples

    Prepare = Callable[[Iterable[Cell]], Preparation]

K = TypeVar("K")

LOGS: Final = Path("reports") / "bisect"
"""Folder of the logs of searches, below the project."""
FAR: Final = 2.0
"""Ratio of times from which a difference is the subject of a report that does not name it."""
SLOW: Final = 2.0
"""Seconds by which a trial that is not measured must be longer than the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectResult:
    """The answer of a bisection.

    Attributes:
        answer: The answer.
        axis: The name of the axis.
        options: The options, with the platform and the predicate that the search has chosen.
        left_out: The points that could not be tried, by name, with the reason.
        locks: Lock of each cell, by cell id.
        blobs: Artifacts of the trials.
    """

    answer: BisectAnswer
    axis: str
    options: SearchOptions
    left_out: tuple[tuple[str, str], ...]
    locks: dict[str, Lock]
    blobs: BlobStore


def find_change(
    context: ProjectContext,
    target: Target,
    options: SearchOptions,
    say: Callable[[str], None],
    *,
    axis: SearchAxis | None = None,
    scan: bool = False,
    scanned: Samples | None = None,
) -> BisectResult:
    """Find the points between which a target changed, resuming an earlier search for the same.

    Args:
        context: The project.
        target: The target to try.
        options: The options.
        say: Called with a line for each step.
        axis: The axis to search, None for the axis of the options.
        scan: Whether all points are tried if the ends alone do not show what changed.
        scanned: Samples of all points from another search, instead of a scan for a metric.

    Raises:
        UsageError: If options contradict each other, or an end does not exist.
        EndpointsError: If no predicate separates the ends.
        InfrastructureError: If an index does not answer, an end cannot be tried now, or the disk
            refuses.
    """
    is_default_axis = axis is None
    if axis is None:
        options = _name_platform(target, options, say)
        axis = make_axis(context, options, choose_platform(target, options))
    # Reading the width validates the options: contradictions are refused before any look-up.
    width = options.width
    session = Session(context=context)
    prepare = make_preparer(session, target, options.wanted)
    points = AxisCells(axis.points, prepare, check=partial(check_nightlies, context))
    # The ends are not in the name: a search between other ends reuses the points of this log.
    name = make_log_name(target, f"{axis.name} {options.jax} {options.platform} {options.words}")
    with open_trials(
        session, target, LOGS / name, options, points.locks, ends=(points[0], points[-1]),
        cell_of=points.__getitem__, name_of=points.labels.__getitem__,
        progress=partial(_report_step, say, points),
    ) as trials:  # fmt: skip
        try:
            answer = search_points(
                trials, target, options, points, width=width, scan=scan, scanned=scanned
            )
        except EndpointsError as error:
            count = _count_needed_devices(trials)
            if is_default_axis and count and not options.platform:
                say(f"the program needs {count} devices: searched on cpu{count}")
                options = replace(options, platform=f"cpu{count}")
                return find_change(context, target, options, say, scan=scan)
            if not (scan and _may_differ_in_time(error, target, options, trials)):
                raise
            say("alike in all but time, which is measured now")
            return _find_slowdown(
                context, target, options, say, axis=axis, error=error, scanned=trials.samples
            )
    # Nightlies are refused when the index is read, other points when their locks are looked up.
    refused = [*axis.refused.items(), *((e.cell, e.reason) for e in points.exclusions)]
    return BisectResult(
        answer=answer, axis=axis.name, options=options, left_out=tuple(refused),
        locks=points.locks, blobs=trials.blobs,
    )  # fmt: skip


def _name_platform(
    target: Target, options: SearchOptions, say: Callable[[str], None]
) -> SearchOptions:
    """Return options with the platform of a program whose source names several devices."""
    chosen = choose_platform(target, options)
    if options.platform or chosen in {"", "cpu1"}:
        return options
    say(f"the program names {chosen.removeprefix('cpu')} devices: searched on {chosen}")
    return replace(options, platform=chosen)


def _may_differ_in_time(
    error: EndpointsError, target: Target, options: SearchOptions, trials: CellTrials[int]
) -> bool:
    """Say whether a program that gives the same everywhere may take longer somewhere."""
    is_open = not (any(options.predicate) or options.measured_metric)
    if not (isinstance(error, AlikeError) and isinstance(target, ProgramTarget) and is_open):
        return False
    # Tried beside each other and once only: this says whether measurements are worth their time.
    samples = [sides[0] for sides in trials.samples.values()]
    for metric in find_printed_times(samples):
        fastest, middle, slowest = _summarize(metric.collect_values(samples))
        if slowest >= FAR * middle or middle >= FAR * fastest:
            return True
    _, middle, slowest = _summarize(TIME.collect_values(samples))
    return slowest >= max(FAR * middle, middle + SLOW)


def _summarize(values: list[float]) -> tuple[float, float, float]:
    return min(values), median(values), max(values)


def _find_slowdown(
    context: ProjectContext,
    target: Target,
    options: SearchOptions,
    say: Callable[[str], None],
    *,
    axis: SearchAxis,
    error: EndpointsError,
    scanned: Samples,
) -> BisectResult:
    """Find the points between which a program became slower or faster, `FAR` times or more.

    Raises:
        EndpointsError: The given error, if there are no such points.
        InfrastructureError: If an end cannot be tried now, or the disk refuses.
    """
    timed = replace(options, when="time", repeat=1)
    try:
        found = find_change(
            context, target, replace(timed, every=True), say, axis=axis, scanned=scanned
        )
    except EndpointsError:
        raise error from None
    predicate = found.answer.predicate
    if (
        isinstance(predicate, MetricPredicate)
        and measure_distance(predicate.good, predicate.bad) >= FAR
    ):
        # Every release was looked at; a search for the commit need not look at every commit.
        return replace(found, options=replace(timed, every=options.every))
    raise error


def search_points(
    trials: CellTrials[int],
    target: Target,
    options: SearchOptions,
    points: SearchPoints,
    *,
    width: int,
    scan: bool = False,
    scanned: Samples | None = None,
) -> BisectAnswer:
    """Find the points between which a target changed.

    Args:
        trials: Trials of the points, by number.
        target: The target.
        options: The options.
        points: The points, in order.
        width: Trials at the same time.
        scan: Whether all points are tried if the ends alone do not show what changed.
        scanned: Samples of all points from another search, instead of a scan for a metric.

    Raises:
        EndpointsError: If no predicate separates the ends.
        InfrastructureError: If an end cannot be tried now, or the disk refuses.
    """
    endpoints = EndpointSearch(
        trials=trials, last=len(points) - 1, reverse=options.find == "fix",
        options=options.predicate, scan=scan, every=options.every,
        repeat=options.repeat, seen_on=_find_reported_point(points, target),
        scanned=scanned or {},
    )  # fmt: skip
    return Bisection(points=points, trials=trials, endpoints=endpoints, width=width).run()


@contextmanager
def open_trials(
    session: Session,
    target: Target,
    log: Path,
    options: SearchOptions,
    locks: Mapping[str, Lock],
    *,
    ends: Sequence[PlannedCell],
    cell_of: Callable[[K], PlannedCell],
    progress: Callable[[SearchStep[K]], None],
    name_of: Callable[[K], str] | None = None,
    prepare: Callable[[Sequence[K]], object] = lambda _: None,
    width: int | None = None,
    wanted: tuple[str, ...] | None = None,
    executor: Executor | None = None,
) -> Iterator[CellTrials[K]]:
    """Open the log of a search, with the trials of an earlier search for the same.

    Args:
        session: Runs jobs in the project.
        target: The target to try.
        log: Folder of the log, below the project.
        options: The options.
        locks: Lock of each cell, by cell id; may grow.
        ends: The cells in which a test is collected.
        cell_of: Returns the cell of a point.
        progress: Called with each step.
        name_of: Returns the name of a point in messages.
        prepare: Called with the points of each round before their cells are used.
        width: Trials at the same time, None for those of the options.
        wanted: Requirements of a program, None for those of the options and the project.
        executor: Runs the jobs of a case, None for the one of the session.

    Yields:
        The trials, which append each new record to the log.
    """
    context = session.context
    directory = RunDirectory(context.project.root / log)
    if options.fresh:
        # Only the records go: blobs are named by their hash, and another search may need them.
        (directory.path / RESULTS).unlink(missing_ok=True)
    width = width or options.width
    blobs = directory.blobs
    prober: Prober
    if isinstance(target, ProgramTarget):
        wanted = session.build_requirements(options.wanted) if wanted is None else wanted
        # Both ends decide the requirements, so that a program has the same packages at every point.
        needed = find_requirements(target, wanted, [locks[end.cell.id] for end in ends])
        # A floating package would move with the release, and be blamed on jax.
        preferred = find_common_versions(ends, locks, needed, context.cache)
        prober = ProgramRunner(
            target=target, locks=locks, cache=context.cache, outer=os.environ, blobs=blobs,
            timeout=options.timeout, wanted=wanted, preferred=(*target.preferred, *preferred),
            facts=bool(options.fact) or options.when == "facts",
            timed=bool(options.region) or options.when == "time", metric=options.metric,
            slots=width,
        )  # fmt: skip
    else:
        case, runs = (
            (target, executor or session.make_executor(locks, slots=width))
            if isinstance(target, Case)
            else target.collect(ends, locks, slots=width)
        )
        runner = session.make_job_runner(runs, blobs)
        metric = options.measured_metric
        # A test of a suite is a job of its own kind, which cannot be measured by phases.
        measures = metric is not None and metric.of_case and isinstance(target, Case)
        calls = LEAK_CALLS if metric is LEAK else 0
        settings = make_settings(case, calls=calls, scale=options.when == GROWTH)
        prober = CaseProber(case=case, runner=runner, measure=settings if measures else None)
    # Appended one by one, so that a killed search keeps the points that it tried.
    with closing(Results(directory)) as results:
        yield CellTrials(
            cell_of=cell_of, name_of=name_of, prepare=prepare, prober=prober, blobs=blobs,
            keep=results.append,
            # The log may hold records of an edited script or of another lock; these are not known.
            known=select_known_records(prober, directory.read_records(), blobs),
            tolerance=get_tolerance(target), metric=options.measured_metric, progress=progress,
        )  # fmt: skip


def _count_needed_devices(trials: CellTrials[int]) -> int:
    """Return the largest number of devices that trials on one device asked for, 0 for none."""
    errors = (side.record.error for samples in trials.samples.values() for side in samples)
    return max(map(read_devices_error, errors), default=0)


def _find_reported_point(points: SearchPoints, target: Target) -> int | None:
    """Return the number of the point that a report names, None for any other target."""
    if not isinstance(target, ProgramTarget) or target.seen_on not in points.labels:
        return None
    return list(points.labels).index(target.seen_on)


def _report_step(say: Callable[[str], None], points: AxisCells, step: SearchStep[int]) -> None:
    say(format_step(step, points.labels[step.point], max(map(len, points.labels))))


def find_requirements(
    program: ProgramTarget, wanted: Iterable[str], locks: Iterable[Lock]
) -> tuple[str, ...]:
    """Return the requirements of a program in addition to the packages of its cells.

    Args:
        program: The program.
        wanted: Requirements that the user names.
        locks: Locks of the cells.
    """
    # A package that any cell pins is not required again: it would get another version than the
    # lock.
    installed = [name for lock in locks for name in lock.pins]
    return (*collect_requirements(program.source, wanted, installed), *program.preferred)
