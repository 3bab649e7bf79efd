"""Topics of a nightly run: its root causes, with their history in the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from conformance.model.outcome import Verdict
    from conformance.model.run_files import Evidence

MOST_TITLE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicJob:
    """A job that shows a root cause.

    Attributes:
        case: Its case.
        place: Its cell, called the same every night.
        release: Release of jax in the cell, empty where that is not known.
    """

    case: str
    place: str
    release: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A root cause of tonight.

    Attributes:
        id: Its id.
        verdict: What its jobs are unexpected as.
        reason: What the first of them shows.
        jobs: The jobs.
        regressions: Ids of the regressions that they are.
        first: The run that showed it first, empty if it is not known.
        good: The last run before in which all was well, empty if there is none.
        command: What runs one of the jobs again.
        evidence: What was found out about it, if anything was.
        reproduction: Its reproduction, empty if there is none.
    """

    id: str
    verdict: Verdict
    reason: str
    jobs: tuple[TopicJob, ...]
    regressions: tuple[str, ...]
    first: str = ""
    good: str = ""
    command: str = ""
    evidence: Evidence | None = None
    reproduction: str = ""

    @property
    def title(self) -> str:
        """Title of its issue: the same for all that come and go, so without numbers of them."""
        functions = {job.case.partition("[")[0] for job in self.jobs}
        subject = f"{functions.pop()} " if len(functions) == 1 else ""
        return flatten(f"{subject}{self.verdict}: {self.reason}", MOST_TITLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifiedNight:
    """A run, as it is told.

    Attributes:
        run: Its id.
        started: When it began.
        topics: Its root causes, the largest first; nothing flaky, no fault of the host.
        runs: Id of every run of the store, by number.
    """

    run: str
    started: datetime
    topics: tuple[Topic, ...] = ()
    runs: Mapping[int, str] = field(default_factory=dict)
