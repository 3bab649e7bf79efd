"""The layer behind a change of time or memory: front end or jaxlib.

A repeated computation has no time of its own to compare: what is measured needs the same process
and the same phases. So the Python code of each release is measured with the jaxlib of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.app.bisect import LOGS, open_trials
from conformance.app.mixed_cells import plan_mixed
from conformance.app.session import Session
from conformance.app.target import make_log_name
from conformance.search.predicates import PointKind
from conformance.triage.layers.answer import Layer, LayerAnswer

if TYPE_CHECKING:
    from conformance.app.bisect import BisectResult
    from conformance.app.context import ProjectContext
    from conformance.app.search_options import SearchOptions
    from conformance.engine.job import PlannedCell
    from conformance.model.case import Case

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
    return judge_sources(
        states[0].kind, states[1].kind, (good.release, bad.release), options.phase or ""
    )


def judge_sources(
    newer: PointKind, older: PointKind, releases: tuple[str, str], phase: str
) -> LayerAnswer:
    """Return the layer by what the Python code of each release does with the other jaxlib.

    Args:
        newer: State of the Python code of the bad release with the jaxlib of the good one.
        older: State of the Python code of the good release with the jaxlib of the bad one.
        releases: The good and the bad release.
        phase: The phase that was measured, empty for memory.
    """
    good, bad = releases
    python = newer is PointKind.BAD or older is PointKind.GOOD
    jaxlib = newer is PointKind.GOOD or older is PointKind.BAD
    reason = (
        f"the Python code of {bad} with the jaxlib of {good} is {newer}, "
        f"that of {good} with the jaxlib of {bad} is {older}"
    )
    if python and jaxlib:
        return LayerAnswer(layer=Layer.INTERACTION, reason=reason)
    if python:
        return LayerAnswer(layer=Layer.PYTHON, reason=reason)
    if jaxlib:
        layer = Layer.COMPILER if phase == "compile" else Layer.JAXLIB
        return LayerAnswer(layer=layer, reason=reason)
    return LayerAnswer(layer=Layer.NOT_SEPARABLE, reason=UNKNOWN)
