"""The history of runs as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict as fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.engine.digests import JobState
    from conformance.engine.regression_tracker import Regression, RegressionEvent
    from conformance.store.snapshot import CaseSpan


def case_data(case: str, spans: Mapping[str, Sequence[CaseSpan]]) -> dict[str, Any]:
    """Return what runs showed of a case, by place.

    Args:
        case: Its id.
        spans: What they showed.
    """
    return {
        "case": case,
        "places": {
            place: [
                {"first": span.first, "last": span.last, "runs": span.runs, **_state(span.state)}
                for span in found
            ]
            for place, found in spans.items()
        },
    }


def regression_data(
    regressions: Sequence[Regression], events: Sequence[RegressionEvent]
) -> dict[str, Any]:
    """Return regressions, and what happened to all that there ever were.

    Args:
        regressions: The regressions that are told.
        events: The events.
    """
    told = []
    for one in regressions:
        fields = asdict(one)
        # JSON has called the status so from the first.
        renamed = {("standing" if name == "status" else name): fields[name] for name in fields}
        told.append({**_state(renamed.pop("state")), **renamed})
    return {"regressions": told, "events": events}


def _state(state: JobState | None) -> dict[str, Any]:
    """Return the fields of a state; where a job did not run its verdict is null."""
    return {"verdict": None} if state is None else fields_of(state)
