"""Decisions about issues, from a nightly run, the store and the existing issues. Pure.

What people decide stands: an issue that they closed as not planned stays closed, one that they
opened again stays open, and a regression that is linked to any issue asks for no other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from conformance.engine.regression_tracker import RegressionStatus
from conformance.notify import body as text
from conformance.notify.actions import Action, ActionKind
from conformance.notify.marks import IssueBody, cause_in, parts_of
from conformance.notify.tracker import Closed
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.engine.regression_tracker import Regression
    from conformance.notify.topic import NotifiedNight, Topic
    from conformance.notify.tracker import Issue


class When(StrEnum):
    """Which regressions open an issue."""

    CONFIRMED = "confirmed"
    """What was seen in two runs, or repeated in one."""
    NEW = "new"
    """What was seen once, too."""


_SURE: Final = frozenset(
    {RegressionStatus.CONFIRMED, RegressionStatus.KNOWN, RegressionStatus.REOPENED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyPolicy:
    """The settings of notification.

    Attributes:
        repository: Where the issues are, `owner/name`; empty if nothing is known of them.
        when: Which regressions open an issue.
        limit: How many issues one night may open, those opened again among them.
        url: Where the site is, empty if it is nowhere.
    """

    repository: str = ""
    when: When = When.CONFIRMED
    limit: int = 10
    url: str = ""

    def reference(self, number: int) -> str:
        """Return what an issue is called in the store."""
        return f"{self.repository}#{number}"

    def number(self, reference: str) -> int | None:
        """Return the number of an issue that the store has; None of one that is elsewhere."""
        where, _, number = reference.rpartition("#")
        ours = bool(where) and where.casefold() == self.repository.casefold()
        return int(number) if ours else None


def find_linked_issues(regressions: Iterable[Regression], policy: NotifyPolicy) -> set[int]:
    """Return the numbers of the issues that the store is linked to.

    Args:
        regressions: Those of the store.
        policy: Where the issues are.
    """
    numbers = (policy.number(one.issue) for one in regressions)
    return {number for number in numbers if number is not None}


def decide(
    night: NotifiedNight,
    regressions: Iterable[Regression],
    issues: Iterable[Issue],
    policy: NotifyPolicy,
) -> list[Action]:
    """Return the actions in order: the largest root cause first, fixed causes last.

    Args:
        night: The run.
        regressions: Every regression of the store, which has the run.
        issues: The issues, ours and others.
        policy: How it is told.
    """
    return list(_Deciding(night, {one.id: one for one in regressions}, policy).actions(issues))


@dataclass(slots=True)
class _Deciding:
    night: NotifiedNight
    known: Mapping[str, Regression]
    policy: NotifyPolicy
    taken: set[str] = field(default_factory=set)
    """Regressions that an action of tonight links."""
    opened: int = 0

    def actions(self, issues: Iterable[Issue]) -> Iterator[Action]:
        ours = _by_cause(issues)
        live = [topic for topic in self.night.topics if self._find_open(topic)]
        told = self._issues_of(live, ours)
        for topic in live:
            action = self._decide_topic(topic, told.get(topic.id))
            self.taken.update(action.regressions)
            yield action
        numbers = {issue.number for issue in told.values()}
        yield from (
            self._decide_gone(issue) for issue in ours.values() if issue.number not in numbers
        )

    def _issues_of(self, topics: Iterable[Topic], ours: Mapping[str, Issue]) -> dict[str, Issue]:
        """Return the issue of each topic that has one.

        It is the one that says so; else the one that most of its regressions are linked to: what
        is found to be one cause may be so by another id than when the issue was opened.
        """
        found = {topic.id: ours[topic.id] for topic in topics if topic.id in ours}
        free = {one.number: one for cause, one in ours.items() if cause not in found}
        for topic in topics:
            numbers = (self.policy.number(one.issue) for one in self._find_open(topic))
            counts = Counter(number for number in numbers if number in free)
            if topic.id not in found and counts:
                found[topic.id] = free.pop(counts.most_common(1)[0][0])
        return found

    def _find_open(self, topic: Topic) -> list[Regression]:
        """Return those regressions of a topic that no later run showed fixed."""
        found = (self.known[one] for one in topic.regressions if one in self.known)
        return [one for one in found if one.fixed_in is None]

    def _find_unlinked(self, topic: Topic) -> list[Regression]:
        """Return those of them that no issue is linked to."""
        return [one for one in self._find_open(topic) if not one.issue and one.id not in self.taken]

    def _find_sure(self, regressions: Iterable[Regression]) -> list[Regression]:
        if self.policy.when is When.NEW:
            return list(regressions)
        return [one for one in regressions if one.status in _SURE]

    def _find_linked(self, issue: Issue) -> list[Regression]:
        return [one for one in self.known.values() if self.policy.number(one.issue) == issue.number]

    def _decide_topic(self, topic: Topic, issue: Issue | None) -> Action:
        if issue is None:
            return self._decide_new(topic)
        if issue.closed is not None:
            return self._decide_closed(topic, issue, issue.closed)
        return self._decide_update(topic, issue)

    def _decide_new(self, topic: Topic) -> Action:
        free = self._find_unlinked(topic)
        if not free:
            issues = {one.issue for one in self._find_open(topic) if one.issue}
            return _do_nothing(
                topic.id, f"known: {', '.join(sorted(issues)) or 'told with another'}"
            )
        if not self._find_sure(free):
            return _do_nothing(topic.id, "seen once; another run must show it")
        what = Action(
            kind=ActionKind.OPEN,
            cause=topic.id,
            why=f"seen in {plural(len(topic.jobs), 'job')}",
            title=topic.title,
            body=text.new_body(topic, self.policy.url),
            regressions=tuple(one.id for one in free),
        )
        return self._within_limit(what)

    def _within_limit(self, action: Action) -> Action:
        if self.opened >= self.policy.limit:
            why = f"this night opened {plural(self.opened, 'issue')} already; --limit allows more"
            return Action(
                kind=ActionKind.HOLD,
                cause=action.cause,
                why=why,
                issue=action.issue,
                title=action.title,
            )
        self.opened += 1
        return action

    def _decide_closed(self, topic: Topic, issue: Issue, closed: Closed) -> Action:
        if closed is Closed.DECLINED:
            return self._decide_declined(topic, issue)
        if issue.closed_at is not None and issue.closed_at >= self.night.started:
            return _do_nothing(topic.id, "it was closed after this run began", issue)
        if not self._find_sure(self._find_open(topic)):
            return _do_nothing(topic.id, "seen once since; another run must show it", issue)
        linked = {one.id for one in self._find_linked(issue)}
        mine = [one.id for one in self._find_open(topic) if one.id in linked]
        what = Action(
            kind=ActionKind.REOPEN,
            cause=topic.id,
            why="it was closed as completed, and is seen again",
            issue=issue.number,
            body=self._rewrite(topic, issue) or issue.body,
            comment=text.seen_again(topic.jobs, self.night.run),
            regressions=(*mine, *(one.id for one in self._find_unlinked(topic))),
        )
        return self._within_limit(what)

    def _decide_declined(self, topic: Topic, issue: Issue) -> Action:
        """Return what is done about what people want nothing done about: it is known."""
        known = [*self._find_reopened(topic, issue), *self._find_sure(self._find_unlinked(topic))]
        if not known:
            return _do_nothing(topic.id, "people closed it as not planned", issue)
        return Action(
            kind=ActionKind.UPDATE,
            cause=topic.id,
            why="people closed it as not planned; what else shows it is linked to it, no more",
            issue=issue.number,
            regressions=tuple(one.id for one in known),
        )

    def _find_reopened(self, topic: Topic, issue: Issue) -> list[Regression]:
        """Return what was fixed, is linked to an issue, and is there again."""
        linked = {one.id for one in self._find_linked(issue)}
        found = (one for one in self._find_open(topic) if one.id in linked)
        return [one for one in found if one.status is RegressionStatus.REOPENED]

    def _decide_update(self, topic: Topic, issue: Issue) -> Action:
        linked = bool(self._find_linked(issue))
        again = [one.id for one in self._find_reopened(topic, issue)]
        more = [one.id for one in self._find_sure(self._find_unlinked(topic))]
        # Where the store knows of no link at all it is the store that is new, not what is seen.
        cases = {self.known[one].case for one in more} if linked else set()
        jobs = [job for job in topic.jobs if job.case in cases]
        body = self._rewrite(topic, issue)
        if not (body or more or again):
            return _do_nothing(topic.id, "all of it is told", issue)
        return Action(
            kind=ActionKind.UPDATE,
            cause=topic.id,
            why="more shows it" if jobs else "what is told of it is written anew",
            issue=issue.number,
            body=body,
            comment=text.grown(jobs, self.night.run) if jobs else "",
            regressions=(*again, *more),
        )

    def _rewrite(self, topic: Topic, issue: Issue) -> str:
        """Return the new text of an issue, empty if it stays as it is."""
        parts = parts_of(issue.body)
        made = None if parts is None else text.rewritten(parts, topic, self.policy.url)
        return "" if made is None or made == parts else made.text

    def _decide_gone(self, issue: Issue) -> Action:
        cause = cause_in(issue.body)
        if issue.closed is not None:
            return _do_nothing(cause, "closed, and not seen", issue)
        linked = self._find_linked(issue)
        if not linked:
            return _do_nothing(cause, "the store knows no regression of it", issue)
        if any(one.fixed_in is None for one in linked):
            return _do_nothing(cause, "not seen, but not all of its jobs have run since", issue)
        if self._otherwise(linked):
            return _do_nothing(cause, "its jobs are not fine: they show something else", issue)
        number = max(one.fixed_in for one in linked if one.fixed_in is not None)
        run = self.night.runs.get(number, f"run {number}")
        parts = parts_of(issue.body)
        body: IssueBody | None = None if parts is None else text.fixed(parts, run)
        if body is None:
            return _do_nothing(cause, "people opened it again, or changed our marks in it", issue)
        jobs = len({(one.case, place) for one in linked for place in one.places})
        return Action(
            kind=ActionKind.CLOSE,
            cause=cause,
            why="all of its jobs ran and are fine",
            issue=issue.number,
            body=body.text,
            comment=text.gone(jobs, run),
        )

    def _otherwise(self, fixed: Iterable[Regression]) -> bool:
        """Say whether jobs of fixed regressions show others."""
        places: dict[str, set[str]] = defaultdict(set)
        for one in fixed:
            places[one.case].update(one.places)
        return any(not places[one.case].isdisjoint(one.open_places) for one in self.known.values())


def _by_cause(issues: Iterable[Issue]) -> dict[str, Issue]:
    """Return the issue of each root cause: of several the open one, and the oldest."""
    found: dict[str, Issue] = {}
    for issue in sorted(issues, key=lambda one: (one.closed is not None, one.number)):
        cause = cause_in(issue.body)
        if cause:
            found.setdefault(cause, issue)
    return found


def _do_nothing(cause: str, why: str, issue: Issue | None = None) -> Action:
    number = None if issue is None else issue.number
    return Action(kind=ActionKind.NOTHING, cause=cause, why=why, issue=number)
