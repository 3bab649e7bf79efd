"""Results of triage for the root causes of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from conformance.model.evidence import Evidence


class CauseEvidence(NamedTuple):
    """The result of triage for a root cause.

    Attributes:
        found: The evidence.
        reproduction: The text of the file that shows it, empty where there is none.
    """

    found: Evidence
    reproduction: str = ""
