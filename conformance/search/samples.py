"""Predicates on all samples of a point: repeated ones, of which one bad sample is enough. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from conformance.model.outcome import Conformance, Outcome
from conformance.search.failures import SILENT, ending, quoted
from conformance.search.predicates import detail_of, state_of
from conformance.search.state import PointKind, PointState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.engine.job_comparison import StoredJob
    from conformance.search.predicates import Predicate


class PointPredicate(Protocol):
    """A predicate that decides on all samples of a point, and may ask for more of them."""

    @property
    def name(self) -> str:
        """The name that `--when` has for it."""
        ...

    @property
    def about(self) -> str:
        """What a bad point does, in a few words."""
        ...

    def state(self, samples: Sequence[StoredJob]) -> PointState | None:
        """Return the state of a point, None if it needs another sample."""
        ...

    def summarize(self, samples: Sequence[StoredJob]) -> str:
        """Return what the samples show, in a few words."""
        ...


@dataclass(frozen=True, slots=True)
class Repeated:
    """A predicate on each sample; a point that is bad once is bad.

    Attributes:
        predicate: Decides on a sample.
        repeat: Samples that make a point good.
        turned: Whether points that the predicate calls good count as bad ones, and the reverse.
    """

    predicate: Predicate
    repeat: int = 1
    turned: bool = False

    @property
    def name(self) -> str:
        """The name that `--when` has for it."""
        return self.predicate.name

    @property
    def about(self) -> str:
        """What a bad point does, in a few words."""
        return self.predicate.about

    def state(self, samples: Sequence[StoredJob]) -> PointState | None:
        """Return the worst state of all samples; None while they are good, but too few."""
        states = [state_of(self.predicate, side) for side in samples]
        worst = states[_worst_of(states)]
        waits = worst.kind in (PointKind.GOOD, PointKind.OTHER) and len(samples) < self.repeat
        if waits:
            return None
        kind = _TURNED.get(worst.kind, worst.kind) if self.turned else worst.kind
        return PointState(kind, worst.about)

    def summarize(self, samples: Sequence[StoredJob]) -> str:
        """Return how the job ended, and whether it conforms."""
        states = [state_of(self.predicate, side) for side in samples]
        worst = _worst_of(states)
        side = samples[worst]
        record = side.record
        if record.outcome in SILENT:
            return " ".join(ending(record).split())  # unshortened: it may end with what to do
        text = quoted(ending(record))
        if record.outcome is Outcome.OK:
            judged = record.conformance is not Conformance.UNKNOWN
            parts = ("ok", record.conformance if judged else "", detail_of(self.predicate, side))
            text = ", ".join(filter(None, parts))
        elif record.outcome is Outcome.TIMED_OUT and record.error is not None:
            text = f"{text}; at {record.error.where}" if record.error.where else text
        alike = sum(state.kind is states[worst].kind for state in states)
        often = alike < len(states) or self.repeat > 1
        return f"{text} ({alike} of {len(states)} runs)" if often else text


_TURNED: Final = {PointKind.GOOD: PointKind.BAD, PointKind.BAD: PointKind.GOOD}
_ORDER: Final = (PointKind.BAD, PointKind.OTHER, PointKind.GOOD, PointKind.UNKNOWN)
"""Kinds of states, the one that counts most first."""


def _worst_of(states: Sequence[PointState]) -> int:
    """Return the number of the state that counts: the first of the worst kind."""
    return min(range(len(states)), key=lambda n: _ORDER.index(states[n].kind))
