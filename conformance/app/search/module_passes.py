"""The search for the pass or flag of XLA behind a difference of one recorded computation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.scratch import temporary_folder
from conformance.search.ddmin import SetResult
from conformance.triage.layers.answer import BAD, GOOD
from conformance.triage.layers.comparison import ReplayComparer
from conformance.triage.layers.passes import PassFinding, find_module_passes
from conformance.triage.passes.settings import DISABLED, DUMP, UNCHANGED, list_flags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.app.layers.recordings import Recordings
    from conformance.engine.job import PlannedCell
    from conformance.judge.tolerance import Tolerance
    from conformance.triage.layers.recording import Recording, Replay
    from conformance.triage.passes.settings import Setting

TRIAL: Final = (BAD, 2)
"""Place of a trial among the combinations of producer and compiler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModulePasses:
    """Repeats a call with passes disabled or flags set, in the release whose compiler is bad.

    Attributes:
        recordings: Repeats calls.
        recording: The recording of the bad release.
        number: Number of the call.
        planned: Cell of the bad release.
        replays: Repetitions by combination of producer and compiler.
        tolerance: Tolerance of equal results.
        by_facts: Whether facts of the optimised HLO are compared, not results.
    """

    recordings: Recordings
    recording: Recording
    number: int
    planned: PlannedCell
    replays: Mapping[tuple[int, int], Replay]
    tolerance: Tolerance
    by_facts: bool

    def find(self) -> PassFinding | None:
        """Find the passes, and the flags; None if the call cannot be compiled with options.

        Raises:
            InfrastructureError: If a probe of the worker fails for a reason of the host.
        """
        if self._classify(UNCHANGED) is not SetResult.NOT_ENOUGH:
            return None
        bad = self.replays[BAD, BAD].results[self.number]
        return find_module_passes(
            self._list_dumps, self._classify, list_flags(self.planned.cell),
            unfinished=bad.error is not None and bad.error.stage == "compile",
        )  # fmt: skip

    def _list_dumps(self, disabled: Sequence[str]) -> list[str]:
        with temporary_folder("passes") as folder:
            options = {DISABLED: ",".join(disabled), "xla_dump_to": str(folder), **DUMP}
            self.recordings.repeat_with(self.recording, self.planned, self.number, options)
            return [file.name for file in folder.iterdir()]

    def _classify(self, setting: Setting) -> SetResult:
        replay = self.recordings.repeat_with(
            self.recording, self.planned, self.number, setting.options
        )
        ends = [
            ((BAD, compiler), self.replays[BAD, compiler].results[self.number])
            for compiler in (GOOD, BAD)
        ]
        result = replay.results[self.number]
        if result.error is not None and all(end.error is None for _, end in ends):
            return SetResult.UNRESOLVED
        comparer = ReplayComparer(
            replays={**self.replays, TRIAL: replay}, tolerance=self.tolerance,
            by_facts=self.by_facts,
        )  # fmt: skip
        kind = comparer.classify(TRIAL, result, (ends[0], ends[1]))
        return SetResult.ENOUGH if kind == "good" else SetResult.NOT_ENOUGH
