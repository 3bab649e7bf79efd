"""Recordings of a target in cells, repeated with the compilers of other cells."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from packaging.version import Version

from conformance.app.bisect import find_requirements
from conformance.app.target import get_tolerance
from conformance.cells.provision import provision
from conformance.cells.source_tree import provide_installed_sources
from conformance.engine.blobs import BlobStore
from conformance.engine.job import Job
from conformance.engine.plan import find_exclusion_reason
from conformance.engine.stored_job import StoredJob
from conformance.engine.worker_probes import make_worker_probe
from conformance.errors import InfrastructureError, UsageError
from conformance.model.case import Case
from conformance.model.outcome import Outcome
from conformance.search.axes import JAX
from conformance.search.endpoints import AlikeError, EndpointsError, choose_predicate
from conformance.search.equivalence import format_ending, shorten
from conformance.search.predicates import Endpoints, PointKind, classify_sample
from conformance.search.prober import CaseProber
from conformance.triage.commits.commit_cells import plan_sources
from conformance.triage.layers.recording import CallError, Recording, Replay
from conformance.triage.layers.verdict import (
    PAIRS,
    Layer,
    LayerAnswer,
    LayerJudge,
    refine_layer,
)
from conformance.triage.programs.program import ProgramTarget
from conformance.triage.programs.runner import ProgramRunner
from conformance.worker.instrumentation.sitecustomize import COMPUTATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.app.search_options import SearchOptions
    from conformance.app.session import Session
    from conformance.cells.lock import Lock
    from conformance.engine.job import FinishedJob, PlannedCell
    from conformance.engine.warm_workers import WarmExecutor
    from conformance.search.predicates import Predicate
    from conformance.search.prober import Prober

TIMEOUT: Final = 300.0
"""Seconds that the repetition of a recording may take."""
MOST_CRASHES: Final = 20
"""Crashes of XLA after which a recording is not repeated further."""
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
        session: Runs jobs in the project.
        target: The target.
        options: The options, which name the predicate.
        folder: Folder of the recordings.
        executor: Runs probes of the worker, with warm workers.
        locks: Lock of each cell, by cell id.
    """

    session: Session
    target: Case | ProgramTarget
    options: SearchOptions
    folder: Path
    executor: WarmExecutor
    locks: dict[str, Lock]
    _observed: dict[str, StoredJob] = field(default_factory=dict)
    _versions: dict[str, str] = field(default_factory=dict)

    def observe(self, cells: Sequence[PlannedCell]) -> None:
        """Run the target in some cells, as a search does.

        Raises:
            InfrastructureError: If it cannot be run now.
        """
        blobs = BlobStore(self.folder / "observed")
        prober = self._make_prober(cells, blobs)
        left = [planned for planned in cells if planned.cell.id not in self._observed]
        for record in prober.probe(left):
            if record.outcome is Outcome.INFRA:
                raise InfrastructureError(f"{record.cell}: {format_ending(record)}")
            self._observed[record.cell] = StoredJob(record, blobs)

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
            good=sides[0], bad=sides[1], names=names, tolerance=get_tolerance(self.target)
        )
        by_facts, predicate = False, None
        try:
            predicate = choose_predicate(ends, self.options.predicate)
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
        if answer.layer in {Layer.OUTSIDE, Layer.NOT_SEPARABLE} and predicate is not None:
            answer = refine_layer(answer, self._try_sources(cells, predicate))
        return LayerResult(good=names[0], bad=names[1], answer=answer, predicate=about)

    def _find_layer(self, cells: tuple[PlannedCell, PlannedCell], *, by_facts: bool) -> LayerAnswer:
        versions = [self.get_version(planned) for planned in cells]
        if not all(versions):
            return LayerAnswer(layer=Layer.NOT_SEPARABLE, reason=NO_WRITER)
        # At the same time: each job is a process of its own.
        with ThreadPoolExecutor(len(PAIRS)) as pool:
            recordings = list(pool.map(lambda planned: self.record(planned, versions), cells))
            repeated = pool.map(
                lambda pair: self.repeat(recordings[pair[0]], cells[pair[1]]), PAIRS
            )
            replays = dict(zip(PAIRS, repeated, strict=True))
        good, bad = (_find_error(self._observed[planned.cell.id]) for planned in cells)
        return LayerJudge(
            recordings=(recordings[0], recordings[1]), ends=(good, bad), replays=replays,
            tolerance=get_tolerance(self.target), by_facts=by_facts,
        ).judge()  # fmt: skip

    def _try_sources(self, cells: tuple[PlannedCell, PlannedCell], predicate: Predicate) -> Layer:
        """Return the layer of a difference outside of computations.

        The Python code of each release is tried with the jaxlib of the other one.
        """
        good, bad = cells
        kinds = []
        for sources, planned in ((bad, good), (good, bad)):
            mixed = self._plan_mixed(sources, planned)
            prober = self._make_prober([mixed], BlobStore(self.folder / "observed"))
            (record,) = prober.probe([mixed])
            side = StoredJob(record, BlobStore(self.folder / "observed"))
            kinds.append(classify_sample(predicate, side).kind)
        # Newer Python code that is bad with the older jaxlib, or the reverse.
        python = kinds[0] is PointKind.BAD or kinds[1] is PointKind.GOOD
        jaxlib = kinds[0] is PointKind.GOOD or kinds[1] is PointKind.BAD
        if python and jaxlib:
            return Layer.INTERACTION
        if python:
            return Layer.PYTHON
        return Layer.RUNTIME if jaxlib else Layer.OUTSIDE

    def _plan_mixed(self, sources: PlannedCell, planned: PlannedCell) -> PlannedCell:
        """Return a cell with the installed jax of another one."""
        cache = self.session.context.cache
        lock = self.locks[sources.cell.id]
        python = provision(sources.cell, lock=lock, cache=cache).python
        (installed,) = python.parent.parent.glob(f"lib/python*/site-packages/{JAX}")
        newest = max((sources.versions[JAX], planned.versions["jaxlib"]), key=Version)
        folder = provide_installed_sources(installed, newest, cache)
        mixed = plan_sources(planned, JAX, f"release.{sources.release}", folder, newest)
        self.locks[mixed.cell.id] = self.locks[planned.cell.id]
        return mixed

    def _make_prober(self, cells: Sequence[PlannedCell], blobs: BlobStore) -> Prober:
        if isinstance(self.target, Case):
            return CaseProber(
                case=self.target, runner=self.session.make_job_runner(self.executor, blobs)
            )
        return self._make_program_runner(cells, blobs)

    def _make_program_runner(self, cells: Sequence[PlannedCell], blobs: BlobStore) -> ProgramRunner:
        assert isinstance(self.target, ProgramTarget)  # noqa: S101 - the caller has checked
        wanted = self.session.build_requirements(self.options.wanted)
        locks = [self.locks[planned.cell.id] for planned in (cells[0], cells[-1])]
        return ProgramRunner(
            target=self.target, locks=self.locks, cache=self.session.context.cache,
            outer=os.environ, blobs=blobs, timeout=self.options.timeout,
            wanted=find_requirements(self.target, wanted, locks), slots=2,
        )  # fmt: skip

    def get_version(self, planned: PlannedCell) -> str:
        """Return the version of StableHLO that a cell reads, empty if it reads no artifacts.

        Args:
            planned: The cell.

        Raises:
            InfrastructureError: If the probe of the worker fails.
        """
        known = self._versions.get(planned.cell.id)
        if known is None:
            finished = self._probe(planned, "describe_compiler", {})
            if finished.outcome is not Outcome.OK:
                message = finished.error.message if finished.error else str(finished.outcome)
                raise InfrastructureError(
                    f"{planned.cell.id}: its version of StableHLO is unknown: {shorten(message)}"
                )
            known = finished.blobs.get("stablehlo", b"").decode()
            self._versions[planned.cell.id] = known
        return known

    def record(self, planned: PlannedCell, versions: Sequence[str]) -> Recording:
        """Return the recording of the target in a cell, made if it is missing.

        Args:
            planned: The cell.
            versions: Versions of StableHLO in which modules are written.

        Raises:
            UsageError: If the case cannot run in the cell.
            InfrastructureError: If a probe of the worker fails for a reason of the host.
        """
        digest = hashlib.sha256(" ".join(sorted({*versions})).encode()).hexdigest()[:8]
        folder = self.folder / "recorded" / f"{planned.cell.id}-{digest}"
        if folder.exists():
            return Recording(folder)
        folder.mkdir(parents=True)
        if isinstance(self.target, ProgramTarget):
            runner = self._make_program_runner([planned], BlobStore(self.folder / "observed"))
            runner.run(planned, variables={COMPUTATIONS: ":".join((str(folder), *versions))})
            return Recording(folder)
        case = self.target
        if reason := find_exclusion_reason(case, planned):
            raise UsageError(f"{case.id} on {planned.cell.id}: {reason}")
        described = {
            "file": str(case.file), "family": case.family, "name": case.name, "kind": case.kind,
            "params": dict(case.params),
        }  # fmt: skip
        params = {"folder": str(folder), "versions": list(versions), "case": described}
        self._probe(planned, "record", params, case)
        return Recording(folder)

    def repeat(self, recording: Recording, planned: PlannedCell) -> Replay:
        """Return the results of repeating a recording with the compiler of a cell.

        Args:
            recording: The recording.
            planned: The cell.

        Raises:
            InfrastructureError: If a probe of the worker fails for a reason of the host.
        """
        version = self.get_version(planned)
        folder = recording.folder / f"repeated-{planned.cell.id}"
        replay = Replay(folder)
        calls = [call for call in recording.calls if not call.reasons and call.modules]
        devices = 1 + max((max(call.options["devices"], default=0) for call in calls), default=0)
        left = [call.number for call in calls]
        for _ in range(MOST_CRASHES):
            if not left:
                break
            params = {
                "source": str(recording.folder), "target": str(folder), "version": version,
                "numbers": left,
            }  # fmt: skip
            finished = self._probe(planned, "replay", params, devices=devices)
            done = Replay(folder).results
            left = [number for number in left if number not in done]
            if finished.outcome is Outcome.OK or not left:
                break
            # The first call without a result ended the process.
            _note_crash(folder, left.pop(0), finished)
        return replay

    def _probe(
        self,
        planned: PlannedCell,
        name: str,
        params: Mapping[str, Any],
        case: Case | None = None,
        *,
        devices: int = 1,
    ) -> FinishedJob:
        """Run a probe of the worker; with the settings of a case if one is given."""
        probe = replace(
            make_worker_probe(name, params, "replay"), timeout=TIMEOUT, devices=devices, x64=True
        )
        if case is not None:
            probe = replace(
                probe, devices=case.devices, x64=case.x64, xla_flags=case.xla_flags,
                config=case.config, memory=case.memory, timeout=case.timeout,
            )  # fmt: skip
        (finished,) = self.executor.run([Job(case=probe, planned=planned, alone=True)])
        if finished.outcome is Outcome.INFRA:
            message = finished.error.message if finished.error is not None else ""
            raise InfrastructureError(f"{planned.cell.id}: {shorten(message)}")
        return finished


def _find_error(side: StoredJob) -> CallError | None:
    """Return the error with which a target ended, None if it succeeded."""
    error = side.record.error
    if side.record.outcome is Outcome.OK or error is None:
        return None
    return CallError(type=error.type, message=error.message)


def _note_crash(folder: Path, number: int, finished: FinishedJob) -> None:
    """Write the result of a call that ended its process."""
    Replay(folder).add_crash(
        number, "" if finished.error is None else finished.error.message, str(finished.outcome)
    )


def _has_same_value(sides: Sequence[StoredJob]) -> bool:
    first, second = (side.record.artifacts.get("value") for side in sides)
    return first == second
