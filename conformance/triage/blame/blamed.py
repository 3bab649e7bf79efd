"""What a search for guilty packages found. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.triage.blame.mixture import End, Moved
    from conformance.triage.blame.moves import Moves
    from conformance.triage.blame.search import Found, Shows, Units
    from conformance.triage.questions.question import Question
    from conformance.triage.questions.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What was found out of one mixture.

    Attributes:
        units: What was moved.
        cell: Its cell.
        samples: What came of each trial; one, but where a figure is measured.
        shows: Which end it is like.
        state: What it shows to the question.
        said: The same in words.
        again: Whether it had been found out before.
        replayed: Whether it was known from the log.
    """

    units: Units
    cell: str
    samples: Sequence[Record]
    shows: Shows
    state: State
    said: str
    again: bool = False
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Blamed:
    """What was found.

    Attributes:
        ends: The environment that is left, and the one that is gone to.
        packages: The packages whose version differs, by name.
        moves: How they can be moved.
        reasons: Which packages must be moved for one to be, each with the reason.
        question: What was asked.
        found: The guilty sets.
        steps: What was found out, in the order it was.
        reverse: Whether what the question calls bad is what it did before.
        flaky: What mixtures that do not show the same twice have shown, by what was moved.
    """

    ends: tuple[End, End]
    packages: Mapping[str, Moved]
    moves: Moves
    reasons: Mapping[str, Mapping[str, str]]
    question: Question
    found: Found
    steps: Sequence[Step]
    reverse: bool
    flaky: Mapping[Units, Counter[Shows]]

    @property
    def confirmed(self) -> bool:
        """Whether both sides of the answer showed the same twice."""
        return not self.flaky

    @property
    def culprits(self) -> tuple[Moved, ...]:
        """The packages of the first guilty set."""
        return self.of(self.found.guilty[0].culprits)

    def of(self, units: Iterable[tuple[str, ...]]) -> tuple[Moved, ...]:
        """Return the packages of some units, in order."""
        ordered = self.moves.ordered(units)
        return tuple(self.packages[name] for unit in ordered for name in unit)
