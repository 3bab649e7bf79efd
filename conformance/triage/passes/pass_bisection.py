"""Pass bisection: the HLO passes, XLA flags and options of jax that make a difference."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.stored_job import StoredJob
from conformance.ir.difference import diff
from conformance.ir.graph import IrSyntaxError
from conformance.model.outcome import Outcome, Stage
from conformance.search.answers import SearchAnswer, SearchStep
from conformance.search.ddmin import SetTest, Units, classify_set, find_enough, minimize
from conformance.search.equivalence import format_ending, shorten
from conformance.search.predicates import BAD, GOOD, PointKind
from conformance.triage.passes.predicates import classify_setting
from conformance.triage.passes.settings import DISABLED, list_flags, list_options, parse_pass_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.cells.cell import Cell
    from conformance.ir.change import IrDiff
    from conformance.model.record import Record
    from conformance.search.ddmin import SetResult
    from conformance.search.predicates import PointState, Predicate
    from conformance.triage.passes.prober import PassProber, ProgramPasses

    SettingProber = PassProber | ProgramPasses
    """Options of jax are tried in one thread while another tries passes and flags."""

REFUSED: Final = "No such compile option"
"""The message of XLA about a flag that it does not know."""
STAGED: Final = frozenset({Stage.COMPILE, Stage.EXECUTE})
"""Stages that a program reaches only when passes are run on it."""
PASS, FLAG, CONFIG = "pass", "flag", "config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting that a program is tried with.

    Attributes:
        kind: `pass`, `flag` or `config`.
        disabled: The passes that are disabled.
        name: The flag or option that is set; empty for passes.
        value: Its value.
    """

    kind: str = PASS
    disabled: tuple[str, ...] = ()
    name: str = ""
    value: Any = None

    @property
    def options(self) -> dict[str, Any]:
        """The setting as compiler options."""
        if self.kind == PASS:
            return {DISABLED: ",".join(self.disabled)}
        return {self.name: self.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class PassAnswer(SearchAnswer[Setting]):
    """The answer of a pass bisection.

    Attributes:
        bad: The program without any setting.
        passes: The passes that change it, in order; those that act only while others are disabled
            come last.
        culprits: A minimal set of passes whose disabling is enough, in order; empty for none.
        together: The passes that can be disabled all together.
        refused: The passes without which, among those disabled by then, XLA fails.
        changes: The change of its optimised HLO without the culprits; None if it is not known.
        lost: Processes that ended before they answered.
    """

    bad: StoredJob
    passes: tuple[str, ...] = ()
    culprits: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    changes: IrDiff | None = None
    lost: int = 0

    @property
    def is_compiled(self) -> bool:
        """Whether the program gets so far that passes are run on it."""
        return self.bad.record.stage in STAGED

    def select_steps(self, kind: str) -> list[SearchStep[Setting]]:
        """Return the first trials of all settings of a kind."""
        return [step for step in self.steps if step.point.kind == kind and not step.again]

    @property
    def flags(self) -> list[SearchStep[Setting]]:
        """The trials of the flags that the release knows."""
        return [step for step in self.select_steps(FLAG) if not _is_refused(step.samples[0])]

    @property
    def unknown_flags(self) -> list[str]:
        """The flags that the release does not know."""
        refused = (step for step in self.select_steps(FLAG) if _is_refused(step.samples[0]))
        return list(dict.fromkeys(step.point.name for step in refused))

    @property
    def settings(self) -> list[SearchStep[Setting]]:
        """The flags and options that alone are enough."""
        tried = (*self.flags, *self.select_steps(CONFIG))
        return [step for step in tried if step.state and step.state.kind is PointKind.GOOD]

    @property
    def is_explained(self) -> bool:
        """Whether any setting is enough."""
        return bool(self.culprits or self.settings)

    @property
    def confirmed(self) -> bool:
        """Whether there is an answer, and all of it did the same twice."""
        return self.is_explained and not self.flaky


def _is_refused(record: Record) -> bool:
    """Say whether XLA does not know a flag: of a compilation, or of the process."""
    refused = record.error is not None and REFUSED in record.error.message
    return refused or record.outcome is Outcome.UNSUPPORTED


class PassBisection:
    """A pass bisection of one program.

    Args:
        prober: Tries the program.
        cell: The cell.
        predicate: Decides whether the program is good.
        bad: The program without any setting.
        progress: Called with each step.
    """

    def __init__(
        self,
        prober: SettingProber,
        cell: Cell,
        predicate: Predicate,
        bad: StoredJob,
        progress: Callable[[SearchStep[Setting]], None],
    ) -> None:
        self._prober = prober
        self._cell = cell
        self._predicate = predicate
        self._bad = bad
        self._progress = progress
        self._steps: list[SearchStep[Setting]] = []
        self._answer = PassAnswer(predicate=predicate, bad=bad, steps=self._steps)

    def run(self, *, settings: bool = True) -> PassAnswer:
        """Try passes, then flags, and options meanwhile; then the answer once more.

        Args:
            settings: Whether flags and options are tried.
        """
        values = list_options(self._prober.config) if settings else ()
        options = [Setting(kind=CONFIG, name=name, value=value) for name, value in values]
        pool = ThreadPoolExecutor(1, "options")
        try:
            trials = [pool.submit(self._time_trial, option) for option in options]
            if self._answer.is_compiled:
                self._search_passes()
            if settings and self._answer.is_compiled:
                for name, value in list_flags(self._cell):
                    self._try(Setting(kind=FLAG, name=name, value=value))
            for option, trial in zip(options, trials, strict=True):
                self._report(option, *trial.result())
        finally:  # without a wait: the end of the prober also ends its trials
            pool.shutdown(wait=False, cancel_futures=True)
        flaky = self._confirm() if self._answer.is_explained else {}
        return replace(self._answer, flaky=flaky, lost=self._prober.lost)

    def _search_passes(self) -> None:
        """Search for culprits, also among passes that act only while others are disabled."""
        failed = self._bad.record.outcome is not Outcome.OK
        names = parse_pass_names(self._prober.list_dumps(), unfinished=failed)
        tested = SetTest(Units(order=tuple(names)), self._disable)
        found = find_enough(
            tested, lambda disabled: parse_pass_names(self._prober.list_dumps(disabled))
        )
        culprits: tuple[str, ...] = ()
        changes = None
        if found.enough:
            # strict takes fewer trials: culprits seldom hide in sets with which XLA fails.
            culprits = minimize(tested, found.enough, strict=True).culprits
            step = next(step for step in self._steps if step.point.disabled == culprits)
            changes = compare_hlo(self._bad, StoredJob(step.samples[0], self._bad.blobs))
        self._answer = replace(
            self._answer, passes=tested.units.order, culprits=culprits,
            together=found.together, refused=found.refused, changes=changes,
        )  # fmt: skip

    def _disable(self, passes: tuple[str, ...]) -> SetResult:
        return classify_set(self._try(Setting(disabled=passes)), enough=PointKind.GOOD)

    def _confirm(self) -> dict[Setting, Counter[PointState]]:
        """Try the program and its culprits once more, in a new process; return what differs."""
        answer = self._answer
        expected = {Setting(): BAD} if answer.is_compiled else {}
        if answer.culprits:
            expected[Setting(disabled=answer.culprits)] = GOOD
        expected |= {step.point: GOOD for step in answer.settings}
        # A new process: the old one may have cached what it compiled.
        self._prober.renew()
        flaky: dict[Setting, Counter[PointState]] = {}
        for setting, first in expected.items():
            state = self._try(setting, again=True)
            if state.kind is not first.kind:
                flaky[setting] = Counter([first, state])
        return flaky

    def _try(self, setting: Setting, *, again: bool = False) -> PointState:
        return self._report(setting, *self._time_trial(setting), again=again)

    def _time_trial(self, setting: Setting) -> tuple[StoredJob, float]:
        start = time.perf_counter()
        if setting.kind == CONFIG:
            side = self._prober.run_with_option(setting.name, setting.value)
        else:
            side = self._prober.compile(setting.options)
        return side, time.perf_counter() - start

    def _report(
        self, setting: Setting, side: StoredJob, seconds: float, *, again: bool = False
    ) -> PointState:
        state = classify_setting(self._predicate, side, self._bad)
        step = SearchStep(
            point=setting, samples=(side.record,), state=state, seconds=seconds, again=again,
            summary=shorten(format_ending(side.record)),
        )  # fmt: skip
        self._steps.append(step)
        self._progress(step)
        return state


def compare_hlo(before: StoredJob, after: StoredJob) -> IrDiff | None:
    """Return how the optimised HLO of two programs differs, None if it is not known."""
    one, other = _read_hlo(before), _read_hlo(after)
    if not one or not other:
        return None
    try:
        return diff(one, other, kind="hlo")
    except IrSyntaxError:
        return None


def _read_hlo(side: StoredJob) -> str:
    artifacts: Mapping[str, str] = side.record.artifacts
    if "hlo" not in artifacts:
        return ""
    return side.blobs.get(artifacts["hlo"]).decode("utf-8", "surrogatepass")
