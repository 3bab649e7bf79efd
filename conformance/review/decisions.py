"""What a reviewer decided: kept beside the run in `review.json`, and taken up again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.errors import UsageError
from conformance.files import MALFORMED, readable_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.review.groups import Group, Member

REVIEW: Final = "review.json"
"""Its name in a run directory."""
FORMAT: Final = 1


class Choice(StrEnum):
    """What becomes of a group."""

    ACCEPT = "accept"
    """What was seen becomes golden."""
    REJECT = "reject"
    """It stays unexpected, and is reported again."""
    DEVIATION = "deviation"
    """It is declared in the case file; of what is fixed, the declared range ends."""


class Decided(StrEnum):
    """How far a group is decided on."""

    OPEN = "open"
    PARTLY = "partly"
    """Jobs came to it after the decision, or show something else now."""
    DONE = "done"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One decision on one group.

    Attributes:
        group: Id of the group.
        choice: What becomes of it.
        jobs: Case, cell and hash of what was seen, of each job it is about.
        title: What the jobs had in common.
        reason: Why.
        issue: Upstream thread of a deviation.
        releases: Range of a deviation as the reviewer has it; None is as proposed.
        platform: Its platform likewise.
        match: Its pattern likewise.
        by: Who decided.
        at: When, ISO 8601 in UTC.
        written: Whether it has been written into goldens and case files.
    """

    group: str
    choice: Choice
    jobs: tuple[tuple[str, str, str], ...]
    title: str = ""
    reason: str = ""
    issue: str = ""
    releases: str | None = None
    platform: str | None = None
    match: str | None = None
    by: str = ""
    at: str = ""
    written: bool = False


class Review(msgspec.Struct, frozen=True, kw_only=True):
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


def loads(data: bytes, where: str) -> Review:
    """Return the decisions that a text holds.

    Args:
        data: Content of a `review.json`.
        where: Its path, for the message.

    Raises:
        UsageError: If it is none, or of another format.
    """
    try:
        review = msgspec.json.decode(data, type=Review)
    except MALFORMED as error:
        raise UsageError(
            f"{where}: expected decisions of a review: {str(error).lower()}; restore or delete it"
        ) from None
    if review.format != FORMAT:
        raise UsageError(f"{where}: format {review.format}, expected {FORMAT}; delete it")
    return review


def dumps(review: Review) -> bytes:
    """Return decisions as `loads` reads them."""
    return readable_json(review) + b"\n"


def job_of(member: Member) -> tuple[str, str, str]:
    """Return what a decision keeps of a job."""
    return member.record.case, member.record.cell, member.seen


def decide(review: Review, decision: Decision) -> Review:
    """Return a review with one decision more; of a job the last one counts."""
    jobs = set(decision.jobs)
    kept = (_without(one, jobs) if one.group == decision.group else one for one in review.decisions)
    decisions = (*(one for one in kept if one.jobs), decision)
    return msgspec.structs.replace(review, decisions=decisions)


def take_back(review: Review, group: Group) -> Review:
    """Return a review without what was decided on a group, but for what is written."""
    jobs = {job_of(member) for member in group.members}
    kept = (
        one if one.group != group.id or one.written else _without(one, jobs)
        for one in review.decisions
    )
    return msgspec.structs.replace(review, decisions=tuple(one for one in kept if one.jobs))


def restored(review: Review, group: Group, before: Review) -> Review:
    """Return a review in which what is decided on a group is what an earlier one says of it.

    Args:
        review: The decisions as they are.
        group: The group.
        before: The decisions of before.
    """
    kept = take_back(review, group).decisions
    again = (one for one in before.decisions if one.group == group.id and one not in kept)
    return msgspec.structs.replace(review, decisions=(*kept, *again))


def _without(decision: Decision, jobs: set[tuple[str, str, str]]) -> Decision:
    left = tuple(job for job in decision.jobs if job not in jobs)
    return msgspec.structs.replace(decision, jobs=left)


def decision_on(review: Review, group: Group) -> Decision | None:
    """Return the last decision on a group that is about one of its jobs, None if there is none."""
    jobs = {job_of(member) for member in group.members}
    found = (one for one in reversed(review.decisions) if one.group == group.id)
    return next((one for one in found if not one.written and jobs & set(one.jobs)), None)


def decided(review: Review, group: Group) -> Decided:
    """Say how far a group is decided on."""
    jobs = {job_of(member) for member in group.members}
    left = set(jobs)
    for one in review.decisions:
        if one.group == group.id and not one.written:
            left -= set(one.jobs)
    if not left:
        return Decided.DONE
    return Decided.PARTLY if left != jobs else Decided.OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A decision with the jobs of a group it is about."""

    decision: Decision
    group: Group
    members: tuple[Member, ...]


def chosen(review: Review, found: Iterable[Group]) -> tuple[Chosen, ...]:
    """Return the decisions that are not written yet, with the jobs they are about.

    Args:
        review: The decisions.
        found: The groups as they are now.
    """
    by_id = {group.id: group for group in found}
    told = []
    for decision in review.decisions:
        group = by_id.get(decision.group)
        if group is None or decision.written:
            continue
        jobs = set(decision.jobs)
        members = tuple(member for member in group.members if job_of(member) in jobs)
        if members:
            told.append(Chosen(decision=decision, group=group, members=members))
    return tuple(told)


def as_written(review: Review, done: Iterable[Decision], same: dict[str, str]) -> Review:
    """Return a review in which some decisions are written.

    Args:
        review: The decisions.
        done: Those that are.
        same: Hashes of case files before and after.
    """
    written = set(done)
    chain = {before: same.get(after, after) for before, after in review.same.items()}
    return msgspec.structs.replace(
        review,
        decisions=tuple(
            msgspec.structs.replace(one, written=True) if one in written else one
            for one in review.decisions
        ),
        same={**chain, **same},
    )
