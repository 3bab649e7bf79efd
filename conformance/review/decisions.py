"""Decisions of a reviewer, kept next to the run in `review.json`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.errors import UsageError
from conformance.files import MALFORMED, readable_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.review.groups import ReviewGroup
    from conformance.review.judged_jobs import JudgedJob

REVIEW: Final = "review.json"
"""Name of the file in a run directory."""
FORMAT: Final = 1


class Choice(StrEnum):
    """A decision on a group."""

    ACCEPT = "accept"
    """The observations of the group become golden."""
    REJECT = "reject"
    """The group stays unexpected, and is reported again."""
    DEVIATION = "deviation"
    """The results are declared in the case file; the range of a fixed deviation ends."""


class Progress(StrEnum):
    """The share of a group's jobs with a decision."""

    OPEN = "open"
    PARTLY = "partly"
    """The group has jobs that were added after the decision, or have another result now."""
    DONE = "done"


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The values that a reviewer states with a decision, and with the deviation it declares.

    Attributes:
        reason: Reason of the decision.
        issue: Upstream thread of a deviation.
        releases: Range of a deviation; None for the proposed range.
        platform: Platform of a deviation; None for the proposed platform.
        match: Pattern of a deviation; None for the proposed pattern.
    """

    reason: str = ""
    issue: str = ""
    releases: str | None = None
    platform: str | None = None
    match: str | None = None


class Decision(Terms, frozen=True, kw_only=True):
    """One decision on one group.

    Attributes:
        group: Id of the group.
        choice: The decision.
        jobs: Case, cell and hash of the observation of each job of the decision.
        title: The common feature of the jobs.
        by: Name of the reviewer.
        at: Time of the decision, ISO 8601 in UTC.
        written: True once goldens and case files have been written.
    """

    group: str
    choice: Choice
    jobs: tuple[tuple[str, str, str], ...]
    title: str = ""
    by: str = ""
    at: str = ""
    written: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDecision:
    """A decision that is not written yet, with its jobs in a group."""

    decision: Decision
    group: ReviewGroup
    members: tuple[JudgedJob, ...]


class DecisionLog(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions on a run.

    Attributes:
        format: Version of the layout.
        decisions: In the order in which they were taken.
        same: Hash of a case file that differs only in its deviations, by hash of the file that
            was run.
    """

    format: int = FORMAT
    decisions: tuple[Decision, ...] = ()
    same: dict[str, str] = {}

    @classmethod
    def loads(cls, data: bytes, where: str) -> DecisionLog:
        """Parse the decisions of a file.

        Args:
            data: Content of a `review.json`.
            where: Path of the file, for the message.

        Raises:
            UsageError: If the content is no decision log, or has another format.
        """
        try:
            log = msgspec.json.decode(data, type=cls)
        except MALFORMED as error:
            raise UsageError(
                f"{where}: expected decisions of a review: {str(error).lower()}; "
                "restore or delete it"
            ) from None
        if log.format != FORMAT:
            raise UsageError(f"{where}: format {log.format}, expected {FORMAT}; delete it")
        return log

    def dumps(self) -> bytes:
        """Render the decisions for `loads`."""
        return readable_json(self) + b"\n"

    def add(self, *decisions: Decision) -> DecisionLog:
        """Return a log with more decisions, which replace earlier decisions on the same jobs."""
        log = self
        for decision in decisions:
            remaining = log._drop_jobs(decision.group, decision.jobs, written=True)
            log = msgspec.structs.replace(log, decisions=(*remaining, decision))
        return log

    def restore(self, group: ReviewGroup, before: tuple[Decision, ...] = ()) -> DecisionLog:
        """Return a log in which the decisions on a group are earlier ones; written ones stay.

        Args:
            group: The group.
            before: The former decisions; none by default.
        """
        kept = self._drop_jobs(group.id, (one.key for one in group.members), written=False)
        again = (one for one in before if one.group == group.id and one not in kept)
        return msgspec.structs.replace(self, decisions=(*kept, *again))

    def _drop_jobs(
        self, group: str, jobs: Iterable[tuple[str, str, str]], *, written: bool
    ) -> tuple[Decision, ...]:
        """Return the decisions without some jobs of a group, also written ones on request."""
        gone = set(jobs)
        kept = (
            msgspec.structs.replace(one, jobs=tuple(job for job in one.jobs if job not in gone))
            if one.group == group and (written or not one.written)
            else one
            for one in self.decisions
        )
        return tuple(one for one in kept if one.jobs)

    def mark_written(self, done: Iterable[Decision], same: dict[str, str]) -> DecisionLog:
        """Return a log in which some decisions are written.

        Args:
            done: The decisions that are written.
            same: Hashes of case files before and after.
        """
        written = set(done)
        decisions = (
            msgspec.structs.replace(one, written=True) if one in written else one
            for one in self.decisions
        )
        # A case file may be written several times: the hash of the run must lead to the newest
        # content.
        chain = {before: same.get(after, after) for before, after in self.same.items()}
        return msgspec.structs.replace(self, decisions=tuple(decisions), same={**chain, **same})

    def find_open(self, groups: Iterable[ReviewGroup]) -> tuple[OpenDecision, ...]:
        """Return the decisions that are not written yet, with the jobs they are about.

        Args:
            groups: The current groups.
        """
        by_id = {group.id: group for group in groups}
        found = []
        for decision in self.decisions:
            group = by_id.get(decision.group)
            if group is not None and not decision.written:
                jobs = set(decision.jobs)
                members = tuple(one for one in group.members if one.key in jobs)
                found.append(OpenDecision(decision=decision, group=group, members=members))
        return tuple(one for one in found if one.members)

    def progress(self, group: ReviewGroup) -> Progress:
        """Return the progress of the decisions on a group."""
        decided = {id(job) for one in self.find_open([group]) for job in one.members}
        if len(decided) == len(group.members):
            return Progress.DONE
        return Progress.PARTLY if decided else Progress.OPEN
