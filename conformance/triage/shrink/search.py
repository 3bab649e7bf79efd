"""The search for the smallest text with the kept behavior, by trials of candidates.

Edits that hardly depend on each other are tried in groups, as in delta debugging: all of them at
once, then halves, then quarters, down to single edits.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from conformance.model.outcome import Outcome
from conformance.search.ddmin import sweep
from conformance.triage.shrink import edits
from conformance.triage.shrink.edits import apply_edits
from conformance.triage.shrink.results import TrialResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.triage.shrink.criteria import Criterion
    from conformance.triage.shrink.edits import Edit, FindEdits

    TryTexts = Callable[[Sequence[str]], int | None]
    """Tries texts; returns the number of the first with the kept behavior, None if none has it."""

C = TypeVar("C")
R = TypeVar("R", bound=TrialResult)
SLOWDOWN: Final = 5.0
"""How many times longer than the original a candidate may take."""
MIN_SECONDS: Final = 3.0
"""Least timeout of a candidate, however fast the original is."""
HANG_SECONDS: Final = 4.0
"""Seconds after which a candidate counts as hung, if the kept behavior is a hang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """A kind of edits.

    Attributes:
        name: Its name in progress messages.
        find: Finds these edits in a text.
        in_groups: Whether several of them are tried together.
    """

    name: str
    find: FindEdits
    in_groups: bool = False


REDUCTIONS: Final = (
    Reduction(name="statements", find=edits.drop_statements, in_groups=True),
    Reduction(name="blocks", find=edits.unwrap_blocks),
    Reduction(name="keywords and items", find=edits.drop_items, in_groups=True),
    Reduction(name="helper functions", find=edits.inline_functions),
    Reduction(name="expressions", find=edits.reduce_expressions),
    Reduction(name="parameters and results", find=edits.drop_parameters_and_results),
    Reduction(name="numbers", find=edits.reduce_numbers),
    Reduction(name="names", find=edits.inline_names, in_groups=True),
)
"""All reductions. Those that remove most come first: later trials are faster then."""


class LimitsSpentError(Exception):
    """The probes or the seconds of a search are spent."""


@dataclass(slots=True, kw_only=True)
class Search:
    """A search in progress.

    Attributes:
        text: The smallest text with the kept behavior.
        keep: Name of the function to keep: the rest of the code serves it.
        probe: Tries texts.
        width: How many texts are tried at a time.
        progress: Called with the name of each reduction as it begins, and with each smaller text.
    """

    text: str
    keep: str
    probe: TryTexts
    width: int = 1
    progress: Callable[[str, str], None] = field(default=lambda _name, _text: None)
    _refused_texts: set[str] = field(default_factory=set)
    _refused_keys: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)

    def run(self) -> bool:
        """Cut until nothing more can be cut.

        Returns:
            Whether that is the case; else the limits are spent, and `text` is the smallest so far.
        """
        try:
            while True:
                # Refused keys of this round do not count: they were refused for the present text.
                before, has_refused = self.text, bool(self._refused_keys)
                for reduction in REDUCTIONS:
                    self.progress(reduction.name, self.text)
                    self._apply_reduction(reduction)
                if self.text == before and not has_refused:
                    return True
                if self.text == before:
                    # An edit that was refused earlier may be possible now that other code is gone.
                    self._refused_keys = {}
        except LimitsSpentError:
            return False

    def _apply_reduction(self, reduction: Reduction) -> None:
        refused = self._refused_keys.setdefault(reduction.name, set())
        sweep(
            lambda: reduction.find(self.text, self.keep),
            lambda groups: self._try_groups(groups, refused),
            together=reduction.in_groups,
        )

    def _try_groups(self, groups: Sequence[Sequence[Edit]], refused: set[tuple[str, ...]]) -> bool:
        """Try groups of edits in turn, some at a time; keep the first with the kept behavior."""
        pending: list[tuple[str, Sequence[Edit]]] = []
        if all(len(group) == 1 for group in groups):
            # Only single edits are remembered by key: a group may succeed although each of its
            # edits alone fails.
            groups = [group for group in groups if group[0].key not in refused]
        for group in groups:
            text = apply_edits(group)
            # Different edits often give the same text.
            if text is None or text in self._refused_texts:
                _refuse(group, refused)
                continue
            pending.append((text, group))
            if len(pending) == self.width:
                if self._try_pending(pending, refused):
                    return True
                pending = []
        return bool(pending) and self._try_pending(pending, refused)

    def _try_pending(
        self, pending: list[tuple[str, Sequence[Edit]]], refused: set[tuple[str, ...]]
    ) -> bool:
        number = self.probe([text for text, _ in pending])
        # All of them if `number` is None. Those after the first success were not refused: they may
        # be tried again.
        for text, group in pending[:number]:
            self._refused_texts.add(text)
            _refuse(group, refused)
        if number is None:
            return False
        self.text = pending[number][0]
        self.progress("", self.text)
        return True


def _refuse(group: Sequence[Edit], refused: set[tuple[str, ...]]) -> None:
    if len(group) == 1:
        refused.add(group[0].key)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkLimits:
    """Limits of a search.

    Attributes:
        probes: How many candidates may be tried.
        seconds: How long it may take.
        width: How many candidates are tried at a time.
    """

    probes: int = 400
    seconds: float = 300.0
    width: int = 2


@dataclass(kw_only=True)
class CandidateTrials(Generic[C, R]):
    """Tries texts in one cell, or in two.

    Attributes:
        keep: Name of the function to keep: the rest of the code serves it.
        prepare: Makes a text a candidate that can be run; None if no cell could run it.
        runs: Run a candidate in each cell, the bad cell first.
        criterion: The behavior that a candidate must show.
        limits: Limits of the search.
        count_lines: Counts the lines of a text.
        progress: Called with each step, in words.
        start: When the search began, by `time.monotonic`.
        tried: How many candidates were tried.
    """

    keep: str
    prepare: Callable[[str], C | None]
    runs: Sequence[Callable[[C], R]]
    criterion: Criterion[R]
    limits: ShrinkLimits
    count_lines: Callable[[str], int]
    progress: Callable[[str], None]
    start: float
    tried: int = 0

    def search(self, text: str) -> Search:
        """Return a search for the smallest text that meets the criterion."""
        return Search(
            text=text, keep=self.keep, probe=self.find_first, width=self.limits.width,
            progress=self._report,
        )  # fmt: skip

    def _report(self, reduction: str, text: str) -> None:
        done = f"{self.count_lines(text)} lines after {self.tried} probes"
        self.progress(f"{done}; {reduction}" if reduction else done)

    def find_first(self, texts: Sequence[str]) -> int | None:
        """Try some texts at a time; return the number of the first that meets the criterion.

        Raises:
            LimitsSpentError: If the limits are spent.
        """
        # Checked here, not in the search: the limits are shared by all searches of a command.
        left = self.limits.probes - self.tried
        if left <= 0 or time.monotonic() >= self.start + self.limits.seconds:
            raise LimitsSpentError
        # Prepared one after the other: on Python 3.11 two threads that parse break each other.
        candidates = [self.prepare(text) for text in texts[:left]]
        self.tried += len(candidates)
        # Threads suffice: they wait for workers or processes.
        with ThreadPoolExecutor(len(candidates)) as pool:
            found = list(pool.map(self._meets_criterion, candidates))
        return found.index(True) if True in found else None

    def holds(self, text: str) -> bool:
        """Return whether a text meets the criterion."""
        return self._meets_criterion(self.prepare(text))

    def _meets_criterion(self, candidate: C | None) -> bool:
        if candidate is None:
            return False
        bad = self.runs[0](candidate)
        # Most candidates fail already in the bad cell, which saves the run in the other.
        if not self.criterion.may_hold(bad):
            return False
        good = [run(candidate) for run in self.runs[1:]]
        return self.criterion.holds(bad, good[0] if good else None)


def candidate_timeout(original: TrialResult, limit: float) -> float:
    """Return the timeout of a candidate in seconds: little more than the original takes.

    Args:
        original: The result of the original.
        limit: The greatest timeout.
    """
    if original.outcome is Outcome.TIMED_OUT:
        # A hang takes the whole timeout in every trial that keeps it.
        return min(HANG_SECONDS, limit)
    return min(max(SLOWDOWN * original.seconds, MIN_SECONDS), limit)
