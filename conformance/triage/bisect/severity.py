"""The worst of the points of a scan: a crash before an error, an error before a value. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.model.outcome import Conformance, Outcome
from conformance.triage.questions.predicate import SILENT

if TYPE_CHECKING:
    from conformance.model.record import Record

SAME: Final = 0
_DIFFERS: Final = 1
_DEVIATES: Final = 2
_RANKS: Final = {
    Outcome.CRASHED: 6,
    Outcome.TIMED_OUT: 5,
    Outcome.OUT_OF_MEMORY: 4,
    Outcome.RAISED: 3,
}


def severity(record: Record, good: Record, *, differs: bool) -> int:
    """Return how bad what a point shows is; `SAME` if it is what the good end shows.

    Args:
        record: What came of the point.
        good: What came of the good end.
        differs: Whether something tells the two apart.
    """
    if record.outcome in SILENT or not differs:
        return SAME
    if record.outcome is good.outcome is Outcome.OK:
        deviates = record.conformance is Conformance.DEVIATES
        return _DEVIATES if deviates and good.conformance is not record.conformance else _DIFFERS
    return _RANKS.get(record.outcome, _DIFFERS)
