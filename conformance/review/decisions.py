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
"""Its name in a run directory."""
FORMAT: Final = 1


class Choice(StrEnum):
    """A decision on a group."""

    ACCEPT = "accept"
    """Its observations become golden."""
    REJECT = "reject"
    """It stays unexpected, and is reported again."""
    DEVIATION = "deviation"
    """It is declared in the case file; the range of a fixed deviation ends."""


class Progress(StrEnum):
    """How far a group is decided on."""

    OPEN = "open"
    PARTLY = "partly"
    """Jobs came to it after the decision, or show something else now."""
    DONE = "done"


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The reviewer's words on a decision, and on the deviation that it declares.

    Attributes:
        reason: Why.
        issue: Upstream thread of a deviation.
        releases: Range of a deviation; None is as proposed.
        platform: Its platform; None is as proposed.
        match: Its pattern; None is as proposed.
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
        jobs: Case, cell and hash of the observation, of each job it is about.
        title: The common feature of the jobs.
        by: Who decided.
        at: When, ISO 8601 in UTC.
        written: Whether it has been written into goldens and case files.
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
    """A decision that is not written yet, with the jobs of a group it is about."""

    decision: Decision
    group: ReviewGroup
    members: tuple[JudgedJob, ...]


class DecisionLog(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions on a run.

    Attributes:
        format: Version of the layout.
        decisions: In the order in which they were taken.
        same: By hash of a case file's content as it ran, that of the content which only declares
            other deviations.
    """

    format: int = FORMAT
    decisions: tuple[Decision, ...] = ()
    same: dict[str, str] = {}

    @classmethod
    def loads(cls, data: bytes, where: str) -> DecisionLog:
        """Return the decisions that a text holds.

        Args:
            data: Content of a `review.json`.
            where: Its path, for the message.

        Raises:
            UsageError: If it is none, or of another format.
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
        """Return the decisions as `loads` reads them."""
        return readable_json(self) + b"\n"

    def add(self, *decisions: Decision) -> DecisionLog:
        """Return a log with more decisions; of a job the last one counts."""
        log = self
        for decision in decisions:
            kept = log._drop_jobs(decision.group, decision.jobs, written=True)
            log = msgspec.structs.replace(log, decisions=(*kept, decision))
        return log

    def restore(self, group: ReviewGroup, before: tuple[Decision, ...] = ()) -> DecisionLog:
        """Return a log in which the decisions on a group are earlier ones; written ones stay.

        Args:
            group: The group.
            before: The decisions of before; by default there were none.
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
            done: Those that are.
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
        """Return how far a group is decided on."""
        decided = {id(job) for one in self.find_open([group]) for job in one.members}
        if len(decided) == len(group.members):
            return Progress.DONE
        return Progress.PARTLY if decided else Progress.OPEN
