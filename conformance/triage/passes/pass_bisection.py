"""Pass bisection: the HLO passes, XLA flags and options of jax that make a difference."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from conformance.engine.job_comparison import load_ir_text
from conformance.ir.difference import diff
from conformance.ir.graph import IrSyntaxError
from conformance.model.outcome import Outcome, Stage
from conformance.search.answers import SearchAnswer
from conformance.search.ddmin import SetTest, Units, classify_set, find_enough, minimize
from conformance.search.point_predicates import RepeatedPredicate
from conformance.search.predicates import BAD, PointKind
from conformance.search.trials import Trials
from conformance.triage.passes.settings import (
    CONFIG,
    FLAG,
    UNCHANGED,
    Setting,
    list_flags,
    list_options,
    parse_pass_names,
)

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from conformance.cells.cell import Cell
    from conformance.engine.runs.stored_job import StoredJob
    from conformance.ir.change import IrDiff
    from conformance.model.record import Record
    from conformance.search.answers import SearchStep
    from conformance.search.ddmin import SetResult
    from conformance.search.predicates import PointState, Predicate
    from conformance.triage.passes.prober import PassProber, ProgramPasses

    SettingProber = PassProber | ProgramPasses
    """Options of jax are tried in one thread while another tries passes and flags."""

REFUSED: Final = "No such compile option"
"""Part of XLA's message about an unknown flag."""
STAGED: Final = frozenset({Stage.COMPILE, Stage.EXECUTE})
"""Stages of a program on which passes were run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassAnswer(SearchAnswer[Setting]):
    """The answer of a pass bisection.

    Attributes:
        bad: The program without settings.
        passes: The passes that change it, in order; those that act only while others are disabled
            come last.
        culprits: A minimal set of passes whose disabling is enough, in order; empty for none.
        together: The passes that can be disabled all together.
        refused: The passes that XLA needs: without them it fails.
        changes: The change of the optimised HLO without the culprits; None if it is unknown.
        lost: Number of processes that ended before they answered.
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
        """Whether the program is compiled, so that passes are run on it."""
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
        """The flags and options each of which is enough."""
        tried = (*self.flags, *self.select_steps(CONFIG))
        return [step for step in tried if step.state and step.state.kind is PointKind.GOOD]

    @property
    def is_explained(self) -> bool:
        """Whether any setting is enough."""
        return bool(self.culprits or self.settings)

    @property
    def is_confirmed(self) -> bool:
        """Whether there is an answer, and repeated trials agree."""
        return self.is_explained and not self.flaky


def _is_refused(record: Record) -> bool:
    """Say whether XLA refused a flag of a compilation or of the process as unknown."""
    refused = record.error is not None and REFUSED in record.error.message
    return refused or record.outcome is Outcome.UNSUPPORTED


@dataclass(frozen=True, slots=True, kw_only=True)
class PassSet:
    """The passes that change a program, and those of them that make a difference.

    Attributes:
        passes: The passes that change it; see `PassAnswer`.
        culprits: A minimal set of passes whose disabling is enough, in order; empty for none.
        together: The passes that can be disabled all together.
        refused: The passes that XLA needs.
    """

    passes: tuple[str, ...]
    culprits: tuple[str, ...]
    together: tuple[str, ...]
    refused: tuple[str, ...]


def find_passes(
    list_dumps: Callable[[Sequence[str]], Sequence[str]],
    disable: Callable[[tuple[str, ...]], SetResult],
    *,
    unfinished: bool,
) -> PassSet:
    """Find the passes without which the behaviour of a program changes.

    Args:
        list_dumps: Returns the files that XLA dumps while some passes are disabled.
        disable: Tries the program without some passes.
        unfinished: Whether its compilation fails.
    """
    names = parse_pass_names(list_dumps(()), unfinished=unfinished)
    tested = SetTest(Units(order=tuple(names)), disable)
    found = find_enough(tested, lambda disabled: parse_pass_names(list_dumps(disabled)))
    culprits: tuple[str, ...] = ()
    if found.enough:
        # strict takes fewer trials: culprits seldom hide in sets with which XLA fails.
        culprits = minimize(tested, found.enough, strict=True).culprits
    return PassSet(
        passes=tested.units.order, culprits=culprits,
        together=found.together, refused=found.refused,
    )  # fmt: skip


@dataclass(slots=True, kw_only=True)
class SettingTrials(Trials[Setting]):
    """Trials of one program with settings.

    Attributes:
        prober: Prober of the program.
        pending: Trials that run in another thread.
    """

    prober: SettingProber
    pending: dict[Setting, Future[Record]] = field(default_factory=dict)

    def try_setting(self, setting: Setting) -> Record:
        """Return the record of the program with a setting, with the seconds of the trial."""
        start = time.perf_counter()
        if setting.kind == CONFIG:
            record = self.prober.run_with_option(setting.name, setting.value).record
        else:
            record = self.prober.compile(setting.options).record
        return replace(record, seconds={**record.seconds, "job": time.perf_counter() - start})

    def _probe(self, points: Sequence[Setting], *, again: bool) -> Iterator[tuple[Setting, Record]]:
        del again  # no result is cached
        for setting in points:
            # Only the first trial of an option is pending: its confirmation is a new one.
            pending = self.pending.pop(setting, None)
            yield setting, pending.result() if pending else self.try_setting(setting)


@dataclass(slots=True, kw_only=True)
class PassBisection:
    """A pass bisection of one program.

    Attributes:
        trials: The trials of the program, the first of them without settings.
        cell: The cell.
        predicate: Predicate on the program.
    """

    trials: SettingTrials
    cell: Cell
    predicate: Predicate
    _answer: PassAnswer = field(init=False)

    def __post_init__(self) -> None:
        """Begin the answer: the program without settings is bad."""
        (bad,) = self.trials.samples[UNCHANGED]
        self.trials.states[UNCHANGED] = BAD
        self._answer = PassAnswer(predicate=self.predicate, bad=bad, steps=self.trials.steps)

    def _decide(self, setting: Setting) -> PointState:
        return self.trials.decide(RepeatedPredicate(self.predicate), [setting])[setting]

    def run(self, *, settings: bool = True) -> PassAnswer:
        """Try passes and flags, and options at the same time; then confirm the answer.

        Args:
            settings: Whether flags and options are tried.
        """
        options = list(list_options(self.trials.prober.config)) if settings else []
        # Flags act on compilation only; an option of jax can also change tracing.
        flags = list_flags(self.cell) if settings and self._answer.is_compiled else ()
        pool = ThreadPoolExecutor(1, "options")
        try:
            # An option needs the whole program from the start, in a separate process, and passes
            # are compiled in another process, so both run at the same time.
            self.trials.pending |= {
                option: pool.submit(self.trials.try_setting, option) for option in options
            }
            if self._answer.is_compiled:
                self._search_passes()
            # One at a time, so that each is reported as soon as it ends.
            for setting in (*flags, *options):
                self._decide(setting)
        finally:  # without a wait: the end of the prober also ends its trials
            pool.shutdown(wait=False, cancel_futures=True)
        flaky = self._confirm() if self._answer.is_explained else {}
        return replace(self._answer, flaky=flaky, lost=self.trials.prober.lost)

    def _search_passes(self) -> None:
        """Search for culprits, also among passes that act only while others are disabled."""
        bad, list_dumps = self._answer.bad, self.trials.prober.list_dumps
        unfinished = bad.record.outcome is not Outcome.OK
        found = find_passes(list_dumps, self._disable, unfinished=unfinished)
        changes = None
        if found.culprits:
            changes = compare_hlo(bad, self.trials.samples[Setting(disabled=found.culprits)][0])
        self._answer = replace(
            self._answer, passes=found.passes, culprits=found.culprits,
            together=found.together, refused=found.refused, changes=changes,
        )  # fmt: skip

    def _disable(self, passes: tuple[str, ...]) -> SetResult:
        return classify_set(self._decide(Setting(disabled=passes)), enough=PointKind.GOOD)

    def _confirm(self) -> Mapping[Setting, Counter[PointState]]:
        """Try the program and its culprits once more in a new process; return flaky settings."""
        answer = self._answer
        # A program that fails before compilation has no process that could compile it again.
        settings = [UNCHANGED] if answer.is_compiled else []
        if answer.culprits:
            settings.append(Setting(disabled=answer.culprits))
        # A new process: the old process may have cached its compilations.
        self.trials.prober.renew()
        points = (*settings, *(step.point for step in answer.settings))
        return self.trials.confirm(RepeatedPredicate(self.predicate), *points)


def compare_hlo(before: StoredJob, after: StoredJob) -> IrDiff | None:
    """Return the difference of the optimised HLO of two programs, None if it is unknown."""
    old, new = load_ir_text(before, "hlo"), load_ir_text(after, "hlo")
    if old is None or new is None:
        return None
    try:
        return diff(old.text, new.text, kind="hlo")
    except IrSyntaxError:
        return None
