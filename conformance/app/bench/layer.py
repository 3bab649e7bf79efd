"""The layer behind a change of time or memory: front end or jaxlib.

A repeated computation has no time of its own to compare: what is measured needs the same process
and the same phases. So the Python code of each release is measured with the jaxlib of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.app.layers.mixed_cells import plan_mixed
from conformance.app.search.bisect import LOGS, open_trials
from conformance.app.session import Session
from conformance.app.target import make_log_name
from conformance.triage.layers.answer import Layer, LayerAnswer, judge_sources

if TYPE_CHECKING:
    from conformance.app.context import ProjectContext
    from conformance.app.search.bisect import BisectResult
    from conformance.app.search.options import SearchOptions
    from conformance.engine.job import PlannedCell
    from conformance.model.case import Case
    from conformance.search.predicates import PointKind

UNKNOWN: Final = "neither release's Python code can be measured with the jaxlib of the other"


def find_cost_layer(
    context: ProjectContext,
    case: Case,
    options: SearchOptions,
    found: BisectResult,
    cells: tuple[PlannedCell, PlannedCell],
) -> LayerAnswer:
    """Find the layer behind a measured change of a case between two releases.

    Args:
        context: The project.
        case: The case.
        options: Options of the bisection, with a metric.
        found: Its result.
        cells: The last good and the first bad cell.

    Raises:
        InfrastructureError: If an environment cannot be provided, or the disk refuses.
    """
    good, bad = cells
    mixed = tuple(
        plan_mixed(sources, planned, found.locks, context.cache)
        for sources, planned in ((bad, good), (good, bad))
    )
    name = make_log_name(case, f"sources {options.platform} {options.words}")
    with open_trials(
        Session(context=context), case, LOGS / name, options, found.locks, ends=mixed,
        cell_of=mixed.__getitem__, progress=lambda _: None,
    ) as trials:  # fmt: skip
        states = trials.decide(found.answer.predicate, (0, 1))
    return name_cost_layer(
        states[0].kind, states[1].kind, (good.release, bad.release), options.phase or ""
    )


def name_cost_layer(
    newer: PointKind, older: PointKind, releases: tuple[str, str], phase: str
) -> LayerAnswer:
    """Return the layer of a measured change, see `judge_sources`.

    Args:
        newer: State of the Python code of the bad release with the jaxlib of the good one.
        older: State of the Python code of the good release with the jaxlib of the bad one.
        releases: The good and the bad release.
        phase: The phase that was measured, empty for memory.
    """
    good, bad = releases
    layer = judge_sources(newer, older)
    if layer is Layer.OUTSIDE:
        return LayerAnswer(layer=Layer.NOT_SEPARABLE, reason=UNKNOWN)
    if layer is Layer.RUNTIME:
        # Of jaxlib, only the time of the compiler itself tells which part.
        layer = Layer.COMPILER if phase == "compile" else Layer.JAXLIB
    reason = (
        f"the Python code of {bad} with the jaxlib of {good} is {newer}, "
        f"that of {good} with the jaxlib of {bad} is {older}"
    )
    return LayerAnswer(layer=layer, reason=reason)
