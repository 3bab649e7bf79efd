"""Trials of candidates, each in the cell and in the one in which the original is right."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from conformance.model.outcome import Outcome
from conformance.triage.shrink.results import TrialResult
from conformance.triage.shrink.search import Search, SpentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.triage.shrink.criteria import Criterion

C = TypeVar("C")
R = TypeVar("R", bound=TrialResult)
SLOWER: Final = 5.0
"""How many times longer than the original a candidate may take."""
LEAST_SECONDS: Final = 3.0
"""Seconds that a candidate may take at least."""
HANG_SECONDS: Final = 4.0
"""Seconds after which a candidate counts as hung, if the hang is to be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkLimits:
    """How much a search may take.

    Attributes:
        probes: How many candidates may be tried.
        seconds: How long that may take.
        width: How many are tried at a time.
    """

    probes: int = 400
    seconds: float = 300.0
    width: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """A case or a script that was shrunk.

    Attributes:
        text: The file.
        about: What was kept.
        cell: Where it deviates.
        good_cell: Where it is right, empty if there is no such cell.
        before: How large it was, by what is counted.
        after: How large it is; None where the search was interrupted before that was known.
        probes: Candidates that were tried.
        seconds: How long it took.
        complete: Whether nothing more could be cut; else what was granted is spent.
        interrupted: Whether the search was.
        confirmed: Whether it showed the same once more.
        of_case: What is known of a case alone: `generator` is `source` where its own text was cut,
            `jaxpr` where it was its jaxpr; `jobs` counts jobs; `alone` says whether it deviates by
            its own reference or claims.
    """

    text: str
    about: str
    cell: str
    good_cell: str
    before: Mapping[str, int | None]
    after: Mapping[str, int | None] | None
    probes: int
    seconds: float
    complete: bool
    interrupted: bool
    confirmed: bool
    of_case: Mapping[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class CandidateTrials(Generic[C, R]):
    """Tries texts in one cell, or in two.

    Attributes:
        keep: Name of the function of a text that all else is for.
        prepare: Returns a text as something to run; None if it is nothing that the cells could run.
        runs: Run that in each cell, the one at hand first.
        criterion: What a candidate must show.
        limits: How much may be taken.
        lines: Counts the lines of a text.
        progress: Called with each step, in words.
        start: When the search began, as `time.monotonic` counts.
        tried: How many candidates were tried.
    """

    keep: str
    prepare: Callable[[str], C | None]
    runs: Sequence[Callable[[C], R]]
    criterion: Criterion[R]
    limits: ShrinkLimits
    lines: Callable[[str], int]
    progress: Callable[[str], None]
    start: float
    tried: int = 0

    def search(self, text: str) -> Search:
        """Return a search for the smallest text that still meets the criterion."""
        return Search(
            text=text, keep=self.keep, probe=self.first, width=self.limits.width,
            progress=self._report,
        )  # fmt: skip

    def _report(self, way: str, text: str) -> None:
        done = f"{self.lines(text)} lines after {self.tried} probes"
        self.progress(f"{done}; {way}" if way else done)

    def first(self, texts: Sequence[str]) -> int | None:
        """Try some texts at a time; return the number of the first that meets the criterion.

        Raises:
            SpentError: If what was granted is spent.
        """
        left = self.limits.probes - self.tried
        if left <= 0 or time.monotonic() >= self.start + self.limits.seconds:
            raise SpentError
        # Read here, one after the other: on Python 3.11 two threads that parse break each other.
        candidates = [self.prepare(text) for text in texts[:left]]
        self.tried += len(candidates)
        with ThreadPoolExecutor(len(candidates)) as pool:
            found = list(pool.map(self._holds, candidates))
        return found.index(True) if True in found else None

    def holds(self, text: str) -> bool:
        """Say whether a text meets the criterion."""
        return self._holds(self.prepare(text))

    def _holds(self, candidate: C | None) -> bool:
        if candidate is None:
            return False
        bad = self.runs[0](candidate)
        if not self.criterion.may_hold(bad):
            return False
        good = [run(candidate) for run in self.runs[1:]]
        return self.criterion.holds(bad, good[0] if good else None)


def time_limit(original: TrialResult, most: float) -> float:
    """Return the seconds that a candidate may take: little more than the original.

    Args:
        original: The result of the original.
        most: How long anything may take.
    """
    if original.outcome is Outcome.TIMED_OUT:
        return min(HANG_SECONDS, most)
    return min(max(SLOWER * original.seconds, LEAST_SECONDS), most)
