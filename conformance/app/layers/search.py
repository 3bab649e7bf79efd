"""Recordings of a target in cells, repeated with the compilers of other cells."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from conformance.app.layers.mixed_cells import plan_mixed
from conformance.app.search.module_passes import ModulePasses
from conformance.app.target import get_tolerance
from conformance.engine.runs.stored_job import StoredJob
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome
from conformance.search.endpoints import AlikeError, EndpointsError, choose_predicate
from conformance.search.equivalence import format_ending
from conformance.search.predicates import Endpoints, classify_sample
from conformance.triage.layers.answer import BAD, Layer, LayerAnswer, judge_sources, refine_layer
from conformance.triage.layers.recording import CallError
from conformance.triage.layers.verdict import PAIRS, LayerJudge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.app.layers.recordings import Recordings
    from conformance.engine.job import PlannedCell
    from conformance.search.predicates import Predicate

NO_WRITER: Final = "this release cannot write portable artifacts"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """The layer between two neighbouring releases.

    Attributes:
        good: Name of the older release, or of the good one.
        bad: Name of the other release.
        answer: The layer.
        predicate: What differs, in words; empty if nothing does.
    """

    good: str
    bad: str
    answer: LayerAnswer
    predicate: str = ""


@dataclass(slots=True, kw_only=True)
class LayerSearch:
    """Records a target in cells, and repeats the recordings in the compilers of others.

    Attributes:
        recordings: Recordings of the target, and their repetition.
    """

    recordings: Recordings
    _observed: dict[str, StoredJob] = field(default_factory=dict)

    def observe(self, cells: Sequence[PlannedCell]) -> None:
        """Run the target in some cells, as a search does.

        Raises:
            InfrastructureError: If it cannot be run now.
        """
        prober = self.recordings.make_prober(cells)
        left = [planned for planned in cells if planned.cell.id not in self._observed]
        for record in prober.probe(left):
            if record.outcome is Outcome.INFRA:
                raise InfrastructureError(f"{record.cell}: {format_ending(record)}")
            self._observed[record.cell] = StoredJob(record, self.recordings.observed)

    def compare(
        self, names: tuple[str, str], cells: tuple[PlannedCell, PlannedCell], *, required: bool
    ) -> LayerResult:
        """Return the layer between two cells in which the target was observed.

        Args:
            names: Names of both.
            cells: The cells.
            required: Whether equal observations are an error.

        Raises:
            EndpointsError: If they are alike and must not be, or cannot be compared.
            InfrastructureError: If a probe of the worker fails for a reason of the host.
        """
        sides = [self._observed[planned.cell.id] for planned in cells]
        ends = Endpoints(
            good=sides[0], bad=sides[1], names=names,
            tolerance=get_tolerance(self.recordings.target),
        )  # fmt: skip
        by_facts, predicate = False, None
        try:
            predicate = choose_predicate(ends, self.recordings.options.predicate)
            about, by_facts = predicate.about, predicate.name == "facts"
        except AlikeError:
            if required:
                raise
            about = "" if _has_same_value(sides) else "differs within the tolerance"
            if not about:
                nothing = LayerAnswer(layer=Layer.NONE, reason="")
                return LayerResult(good=names[0], bad=names[1], answer=nothing)
        except EndpointsError as error:
            if required:
                raise
            about = str(error)
        answer = self._find_layer(cells, by_facts=by_facts)
        is_open = answer.is_failure or answer.layer in {Layer.OUTSIDE, Layer.NOT_SEPARABLE}
        if is_open and predicate is not None:
            answer = refine_layer(answer, self._try_sources(cells, predicate))
        return LayerResult(good=names[0], bad=names[1], answer=answer, predicate=about)

    def _find_layer(self, cells: tuple[PlannedCell, PlannedCell], *, by_facts: bool) -> LayerAnswer:
        versions = [self.recordings.get_version(planned) for planned in cells]
        if not all(versions):
            return LayerAnswer(layer=Layer.NOT_SEPARABLE, reason=NO_WRITER)
        # At the same time: each job is a process of its own.
        with ThreadPoolExecutor(len(PAIRS)) as pool:
            recordings = list(
                pool.map(lambda planned: self.recordings.record(planned, versions), cells)
            )
            repeated = pool.map(
                lambda pair: self.recordings.repeat(recordings[pair[0]], cells[pair[1]]), PAIRS
            )
            replays = dict(zip(PAIRS, repeated, strict=True))
        good, bad = (_find_error(self._observed[planned.cell.id]) for planned in cells)
        tolerance = get_tolerance(self.recordings.target)
        answer = LayerJudge(
            recordings=(recordings[0], recordings[1]), ends=(good, bad), replays=replays,
            tolerance=tolerance, by_facts=by_facts,
        ).judge()  # fmt: skip
        if answer.layer is not Layer.COMPILER:
            return answer
        search = ModulePasses(
            recordings=self.recordings, recording=recordings[BAD], number=answer.number,
            planned=cells[BAD], replays=replays, tolerance=tolerance, by_facts=by_facts,
        )  # fmt: skip
        return replace(answer, passes=search.find())

    def _try_sources(self, cells: tuple[PlannedCell, PlannedCell], predicate: Predicate) -> Layer:
        """Return the layer of a difference outside of computations.

        The Python code of each release is tried with the jaxlib of the other one.
        """
        good, bad = cells
        kinds = []
        for sources, planned in ((bad, good), (good, bad)):
            mixed = plan_mixed(
                sources, planned, self.recordings.locks, self.recordings.session.context.cache
            )
            (record,) = self.recordings.make_prober([mixed]).probe([mixed])
            side = StoredJob(record, self.recordings.observed)
            kinds.append(classify_sample(predicate, side).kind)
        return judge_sources(kinds[0], kinds[1])


def _find_error(side: StoredJob) -> CallError | None:
    """Return the error with which a target ended, None if it succeeded."""
    error = side.record.error
    if side.record.outcome is Outcome.OK or error is None:
        return None
    return CallError(type=error.type, message=error.message)


def _has_same_value(sides: Sequence[StoredJob]) -> bool:
    first, second = (side.record.artifacts.get("value") for side in sides)
    return first == second
