"""What was found out about the root causes of a report's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from conformance.model.evidence import Evidence


class CauseEvidence(NamedTuple):
    """What was found out about a root cause.

    Attributes:
        found: It.
        reproduction: The text of the file that shows it, empty where there is none.
    """

    found: Evidence
    reproduction: str = ""
