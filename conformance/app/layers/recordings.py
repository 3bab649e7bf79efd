"""The recorded computations of a target in cells, and their repetition in other cells."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.app.search.bisect import find_requirements
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.job import Job
from conformance.engine.plan import find_exclusion_reason
from conformance.engine.workers.probes import make_worker_probe
from conformance.errors import InfrastructureError, UsageError
from conformance.model.case import Case
from conformance.model.outcome import Outcome
from conformance.search.equivalence import shorten
from conformance.search.prober import CaseProber
from conformance.triage.layers.recording import Recording, Replay
from conformance.triage.programs.program import ProgramTarget
from conformance.triage.programs.runner import ProgramRunner
from conformance.worker.instrumentation.sitecustomize import COMPUTATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.app.search.options import SearchOptions
    from conformance.app.session import Session
    from conformance.cells.lock import Lock
    from conformance.engine.job import FinishedJob, PlannedCell
    from conformance.engine.workers.warm import WarmExecutor
    from conformance.search.prober import Prober
    from conformance.triage.layers.recording import RecordedCall

TIMEOUT: Final = 300.0
"""Seconds that the repetition of a recording may take."""
MOST_CRASHES: Final = 20
"""Crashes of XLA after which a recording is not repeated further."""


@dataclass(slots=True, kw_only=True)
class Recordings:
    """Records a target in cells, and repeats the recordings with the compilers of others.

    Attributes:
        session: Runs jobs in the project.
        target: The target.
        options: The options of the search.
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
    _versions: dict[str, str] = field(default_factory=dict)
    _trials: int = 0

    @property
    def observed(self) -> BlobStore:
        """Artifacts of the target's own runs."""
        return BlobStore(self.folder / "observed")

    def make_prober(self, cells: Sequence[PlannedCell]) -> Prober:
        """Return a prober of the target.

        Args:
            cells: The cells in which it is tried.
        """
        if isinstance(self.target, Case):
            runner = self.session.make_job_runner(self.executor, self.observed)
            return CaseProber(case=self.target, runner=runner)
        return self._make_program_runner(cells)

    def _make_program_runner(self, cells: Sequence[PlannedCell]) -> ProgramRunner:
        assert isinstance(self.target, ProgramTarget)  # noqa: S101 - the caller has checked
        wanted = self.session.build_requirements(self.options.wanted)
        locks = [self.locks[planned.cell.id] for planned in (cells[0], cells[-1])]
        return ProgramRunner(
            target=self.target, locks=self.locks, cache=self.session.context.cache,
            outer=os.environ, blobs=self.observed, timeout=self.options.timeout,
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
            runner = self._make_program_runner([planned])
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
        calls = [call for call in recording.calls if not call.reasons and call.modules]
        folder = recording.folder / f"repeated-{planned.cell.id}"
        return self._repeat(recording, planned, calls, folder, {})

    def repeat_with(
        self, recording: Recording, planned: PlannedCell, number: int, options: Mapping[str, Any]
    ) -> Replay:
        """Return the result of repeating one call with options of the compiler.

        Args:
            recording: The recording.
            planned: The cell.
            number: Number of the call.
            options: The options, as `compile(compiler_options=...)` takes them.

        Raises:
            InfrastructureError: If the probe of the worker fails for a reason of the host.
        """
        self._trials += 1
        calls = [call for call in recording.calls if call.number == number]
        folder = recording.folder / f"tried-{self._trials}"
        return self._repeat(recording, planned, calls, folder, options)

    def _repeat(
        self,
        recording: Recording,
        planned: PlannedCell,
        calls: Sequence[RecordedCall],
        folder: Path,
        options: Mapping[str, Any],
    ) -> Replay:
        devices = 1 + max((max(call.options["devices"], default=0) for call in calls), default=0)
        left = [call.number for call in calls]
        for _ in range(MOST_CRASHES):
            if not left:
                break
            params = {
                "source": str(recording.folder), "target": str(folder), "numbers": left,
                "version": self.get_version(planned), "options": dict(options),
            }  # fmt: skip
            finished = self._probe(planned, "replay", params, devices=devices)
            done = Replay(folder).results
            left = [number for number in left if number not in done]
            if finished.outcome is Outcome.OK or not left:
                break
            # The first call without a result ended the process.
            _note_crash(folder, left.pop(0), finished)
        return Replay(folder)

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


def _note_crash(folder: Path, number: int, finished: FinishedJob) -> None:
    """Write the result of a call that ended its process."""
    Replay(folder).add_crash(
        number, "" if finished.error is None else finished.error.message, str(finished.outcome)
    )
