"""Which HLO passes, XLA flags and options of jax make a program do what it does."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from conformance.ir.difference import diff
from conformance.ir.graph import IrSyntaxError
from conformance.model.outcome import Outcome, Stage
from conformance.triage.passes.names import pass_names
from conformance.triage.passes.prober import DISABLED
from conformance.triage.passes.question import answer_of
from conformance.triage.passes.search import Answer, Found, search
from conformance.triage.passes.settings import flags_for, options_for
from conformance.triage.questions.predicate import ending, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.cells.cell import Cell
    from conformance.engine.job_comparison import StoredJob
    from conformance.ir.change import IrDiff
    from conformance.model.record import Record
    from conformance.triage.passes.search import Passes
    from conformance.triage.questions.predicate import Predicate

REFUSED = "No such compile option"
"""How XLA refuses a flag that it does not know."""
STAGED = frozenset({Stage.COMPILE, Stage.EXECUTE})
"""Stages that a program reaches only when passes are run on it."""


class Prober(Protocol):
    """Tries one target in one cell, as `PassProber` does a case.

    Options of jax may be tried in one thread while another tries passes and flags.
    """

    lost: int

    @property
    def config(self) -> Mapping[str, Any]:
        """Every plain option of `jax.config` in the cell, with its value there."""
        ...

    def renew(self) -> None:
        """Let the next question begin in a new process."""
        ...

    def compiled(self, options: Mapping[str, Any]) -> StoredJob:
        """Try it with compiler options."""
        ...

    def dumped(self, disabled: Sequence[str] = ()) -> list[str]:
        """Return the names of the files that XLA dumps of its passes."""
        ...

    def configured(self, name: str, value: Any) -> StoredJob:
        """Try it with an option of `jax.config`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One trial.

    Attributes:
        what: `pass`, `flag` or `config`.
        disabled: Passes that were disabled.
        name: The flag or option that was set; empty for passes.
        value: What it was set to.
        answer: What the program did.
        side: What came of it.
        seconds: How long it took.
        again: Whether it only confirms what is known.
    """

    what: str
    disabled: Passes = ()
    name: str = ""
    value: Any = None
    answer: Answer
    side: StoredJob
    seconds: float
    again: bool = False


@dataclass(slots=True, kw_only=True)
class Answers:
    """What came of an inquiry.

    Attributes:
        predicate: What was asked.
        bad: The program as it is.
        found: What came of the search among the passes that change it.
        steps: Every trial, in order.
        flags: The trials of flags that the release knows.
        unknown_flags: Names of those that it does not know.
        config: The trials of options.
        flaky: What did not do the same twice, in words.
        changes: How its optimised HLO changes without them; None if it cannot be said.
        lost: Processes that XLA ended on the way.
    """

    predicate: Predicate
    bad: StoredJob
    found: Found = field(default_factory=Found)
    steps: list[Step] = field(default_factory=list)
    flags: list[Step] = field(default_factory=list)
    unknown_flags: list[str] = field(default_factory=list)
    config: list[Step] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)
    changes: IrDiff | None = None
    lost: int = 0

    @property
    def compiled(self) -> bool:
        """Whether the program gets so far that passes are run on it."""
        return self.bad.record.stage in STAGED

    @property
    def flips(self) -> list[Step]:
        """The flags and options that alone make it do what is looked for."""
        return [step for step in (*self.flags, *self.config) if step.answer is Answer.FLIPS]

    @property
    def explained(self) -> bool:
        """Whether anything was found."""
        return bool(self.found.culprits or self.flips)

    @property
    def confirmed(self) -> bool:
        """Whether something was found, and all of it did the same twice."""
        return self.explained and not self.flaky


class Inquiry:
    """Asks one program.

    Args:
        prober: Tries it.
        cell: Where.
        predicate: What is asked.
        bad: The program as it is.
        progress: Called with each trial.
    """

    def __init__(
        self,
        prober: Prober,
        cell: Cell,
        predicate: Predicate,
        bad: StoredJob,
        progress: Callable[[Step], None],
    ) -> None:
        self._prober = prober
        self._cell = cell
        self._bad = bad
        self._progress = progress
        self._answers = Answers(predicate=predicate, bad=bad)

    def run(self, *, settings: bool = True) -> Answers:
        """Try passes, then flags; options meanwhile; what was found once more.

        Args:
            settings: Whether flags and options are tried.
        """
        answers = self._answers
        options = list(options_for(self._prober.config)) if settings else []
        beside = ThreadPoolExecutor(1, "options")
        try:
            tried = [beside.submit(self._timed_option, *option) for option in options]
            if answers.compiled:
                self._passes()
            if settings and answers.compiled:
                self._flags()
            for option, trial in zip(options, tried, strict=True):
                answers.config.append(self._config_step(*option, *trial.result()))
        finally:  # without a wait: the prober's end also ends what it is at
            beside.shutdown(wait=False, cancel_futures=True)
        self._confirm()
        answers.lost = self._prober.lost
        return answers

    def _passes(self) -> None:
        """Search, also among passes that act only since others are disabled."""
        answers = self._answers
        failed = self._bad.record.outcome is not Outcome.OK
        names = pass_names(self._prober.dumped(), unfinished=failed)
        answers.found = search(
            names,
            lambda disabled: self._disabled(disabled).answer,
            lambda disabled: pass_names(self._prober.dumped(disabled)),
        )
        if answers.found.culprits:
            step = next(s for s in answers.steps if s.disabled == answers.found.culprits)
            answers.changes = hlo_changes(self._bad, step.side)

    def _flags(self) -> None:
        for name, value in flags_for(self._cell):
            step = self._flagged(name, value)
            if _is_refused(step.side.record):
                if name not in self._answers.unknown_flags:
                    self._answers.unknown_flags.append(name)
            else:
                self._answers.flags.append(step)

    def _confirm(self) -> None:
        """Try the program as it is once more, and what was found, in a new process."""
        answers = self._answers
        if not answers.explained:
            return
        self._prober.renew()
        if answers.compiled:
            self._same(self._disabled((), again=True), Answer.STAYS, "as it is")
        if answers.found.culprits:
            step = self._disabled(answers.found.culprits, again=True)
            self._same(step, Answer.FLIPS, f"without {', '.join(answers.found.culprits)}")
        for found in answers.flips:
            trial = self._flagged if found.what == "flag" else self._configured
            step = trial(found.name, found.value, again=True)
            self._same(step, Answer.FLIPS, f"with {found.name}={found.value}")

    def _same(self, step: Step, expected: Answer, what: str) -> None:
        if step.answer is not expected:
            said = quoted(ending(step.side.record))
            self._answers.flaky.append(f"{what}: {expected} at first, {step.answer} then ({said})")

    def _disabled(self, disabled: Passes, *, again: bool = False) -> Step:
        options = {DISABLED: ",".join(disabled)}
        side, seconds = _timed(lambda: self._prober.compiled(options))
        return self._step("pass", side, seconds, disabled=disabled, again=again)

    def _flagged(self, name: str, value: Any, *, again: bool = False) -> Step:
        side, seconds = _timed(lambda: self._prober.compiled({name: value}))
        return self._step("flag", side, seconds, name=name, value=value, again=again)

    def _configured(self, name: str, value: Any, *, again: bool = False) -> Step:
        return self._config_step(name, value, *self._timed_option(name, value), again=again)

    def _timed_option(self, name: str, value: Any) -> tuple[StoredJob, float]:
        return _timed(lambda: self._prober.configured(name, value))

    def _config_step(
        self, name: str, value: Any, side: StoredJob, seconds: float, *, again: bool = False
    ) -> Step:
        return self._step("config", side, seconds, name=name, value=value, again=again)

    def _step(self, what: str, side: StoredJob, seconds: float, **more: Any) -> Step:
        answer = answer_of(self._answers.predicate, side, self._bad)
        step = Step(what=what, side=side, answer=answer, seconds=seconds, **more)
        self._answers.steps.append(step)
        self._progress(step)
        return step


def _is_refused(record: Record) -> bool:
    """Say whether XLA does not know a flag: an option of a compilation, or one of the process."""
    refused = record.error is not None and REFUSED in record.error.message
    return refused or record.outcome is Outcome.UNSUPPORTED


def _timed(work: Callable[[], StoredJob]) -> tuple[StoredJob, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def hlo_changes(before: StoredJob, after: StoredJob) -> IrDiff | None:
    """Return how the optimised HLO of two programs differs, None if it cannot be said."""
    one, other = _hlo(before), _hlo(after)
    if not one or not other:
        return None
    try:
        return diff(one, other, kind="hlo")
    except IrSyntaxError:
        return None


def _hlo(side: StoredJob) -> str:
    artifacts: Mapping[str, str] = side.record.artifacts
    if "hlo" not in artifacts:
        return ""
    return side.blobs.get(artifacts["hlo"]).decode("utf-8", "surrogatepass")
