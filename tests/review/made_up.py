"""A review of jobs that are made up: no cell runs, and nothing is read but its decisions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.engine.record_judge import Judge
from conformance.engine.runs.directory import RunDirectory
from conformance.model.outcome import Conformance, Verdict
from conformance.review.groups import group_changes
from conformance.review.review import Review
from conformance.review.run_data import RunData

from .members import KNOWN, member

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.review.judged_jobs import JudgedJob


def three_changes() -> list[JudgedJob]:
    """Return jobs of three groups: one to accept, one to declare, one with a long message."""
    reason = "out 1 of 2 elements differ, worst at [1]: 3.0 against 2.0"
    return [
        member("fam/breaks", "0.6.0", Verdict.REGRESSED, error="TypeError: \x1b[2J bad shape"),
        member("fam/long", "0.6.0", Verdict.REGRESSED, *(f"reason {n}: a\nb" for n in range(50))),
        member("fam/value", "0.6.0", Verdict.CHANGED, f"{reason}, not as recorded"),
        member("fam/wrong", "0.6.0", Verdict.REGRESSED, reason, conforms=Conformance.DEVIATES),
    ]


class MadeUpReview(Review):
    """A review that reads no run.

    Args:
        folder: Where its decisions are kept.
        jobs: Its jobs.
    """

    def __init__(self, folder: Path, jobs: list[JudgedJob] | None = None) -> None:
        self._jobs = three_changes() if jobs is None else jobs
        unread: Any = None
        super().__init__(
            RunDirectory(folder), unread, unread, unread,
            wanted=lambda _: True, by="Ann <ann@x>", inform=print,
        )  # fmt: skip

    def reload(self) -> None:
        """Group the jobs."""
        blobs = self.directory.blobs
        self.changed = ()
        self.data = RunData(
            jobs=self._jobs, known=KNOWN, blobs=blobs, new_judge=partial(Judge, blobs)
        )
        self.groups = group_changes(self._jobs)
