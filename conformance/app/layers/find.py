"""The layer behind a difference: a target recorded in releases, repeated in the XLA of others."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from packaging.version import Version

from conformance.app.bench.layer import find_cost_layer
from conformance.app.layers.recordings import Recordings
from conformance.app.layers.search import LayerResult, LayerSearch
from conformance.app.search.axes import make_axis
from conformance.app.session import Session
from conformance.app.suites.target import SuiteTest
from conformance.app.target import choose_platform, find_script, make_preparer
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.case import Case
from conformance.scratch import temporary_folder
from conformance.search.axes import AxisCells
from conformance.triage.layers.answer import Layer, LayerAnswer
from conformance.triage.programs.program import ProgramTarget, find_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.app.context import ProjectContext
    from conformance.app.search.bisect import BisectResult
    from conformance.app.search.options import SearchOptions
    from conformance.app.target import Target
    from conformance.cells.lock import Lock


def find_layer_target(
    context: ProjectContext, target: str, options: SearchOptions
) -> Case | ProgramTarget:
    """Find the case, script, test or command that a text names; a test is run as a program.

    Args:
        context: The project.
        target: The text, as given on the command line.
        options: Options of the search.

    Raises:
        UsageError: If the text names nothing.
    """
    if not options.is_command and (script := find_script(context, target)) is not None:
        return script
    return find_program(target, command=options.is_command) or context.find_case(target)


def find_layers(
    context: ProjectContext,
    target: Case | ProgramTarget,
    options: SearchOptions,
    say: Callable[[str], None],
) -> Iterator[LayerResult]:
    """Find the layer behind the difference between two releases, or all neighbours of a range.

    Args:
        context: The project.
        target: The target: a case, a script or a command.
        options: The options; with `every`, each pair of neighbours between both ends counts.
        say: Called with a line for each step.

    Yields:
        The layer of each pair.

    Raises:
        UsageError: If the target or an end is not supported, or both ends are alike.
        EndpointsError: If an end cannot be compared.
        InfrastructureError: If an environment cannot be provided, or the disk refuses.
    """
    place = choose_platform(target, options)
    versions = (context.find_release(text) for text in (options.good, options.bad))
    good, bad = map(Version, versions)
    is_reversed = good > bad
    # An axis leads from the older to the newer release.
    axis = make_axis(context, replace(options, find="fix" if is_reversed else "bad"), place)
    session = Session(context=context)
    points = AxisCells(
        axis.points, make_preparer(session, target, options.wanted), check=lambda: None
    )
    chosen = list(range(len(points))) if options.every else [0, len(points) - 1]
    if is_reversed:
        chosen.reverse()
    with _open_search(session, target, options, points.locks) as layers:
        cells = [points[number] for number in chosen]
        layers.observe(cells)
        for (first, one), (second, other) in pairwise(zip(chosen, cells, strict=True)):
            names = points.labels[first], points.labels[second]
            say(f"{names[0]} and {names[1]}")
            yield layers.compare(names, (one, other), required=not options.every)


@contextmanager
def _open_search(
    session: Session,
    target: Case | ProgramTarget,
    options: SearchOptions,
    locks: dict[str, Lock],
) -> Iterator[LayerSearch]:
    """Open a search, with warm workers and a folder of recordings until it ends."""
    with (
        temporary_folder("layers") as folder,
        closing(session.make_warm_executor(locks, slots=2)) as executor,
    ):
        recordings = Recordings(
            session=session, target=target, options=options, folder=folder,
            executor=executor, locks=locks,
        )  # fmt: skip
        yield LayerSearch(recordings=recordings)


def find_layer_of_change(
    context: ProjectContext, target: Target, options: SearchOptions, found: BisectResult
) -> LayerAnswer:
    """Find the layer behind the change that a bisection of releases has found.

    Args:
        context: The project.
        target: The target of the bisection.
        options: Its options.
        found: Its result.

    Returns:
        The layer; an error of the target that prevents the search becomes a reason.

    Raises:
        InfrastructureError: If an environment cannot be provided, or the disk refuses: that says
            nothing about the layer.
    """
    answer = found.answer
    main = answer.main
    numbers = (main.after, main.before) if answer.reverse else (main.before, main.after)
    cells = answer.points[numbers[0]], answer.points[numbers[1]]
    names = answer.labels[numbers[0]], answer.labels[numbers[1]]
    # A test is recorded as a program: pytest with nothing but this test.
    recorded = find_program(target.text) if isinstance(target, SuiteTest) else target
    if recorded is None:
        return LayerAnswer(
            layer=Layer.NOT_SEPARABLE, reason="a test of a named suite is not recorded"
        )
    session = Session(context=context)
    if options.measured_metric is not None and isinstance(target, Case):
        return find_cost_layer(context, target, options, found, cells)
    try:
        with _open_search(session, recorded, options, found.locks) as layers:
            layers.observe(cells)
            return layers.compare(names, cells, required=False).answer
    except InfrastructureError:
        raise
    except ConformanceError as error:
        return LayerAnswer(layer=Layer.NOT_SEPARABLE, reason=str(error))
