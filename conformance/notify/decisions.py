"""Decisions about issues, from a nightly run, the store and the existing issues. Pure.

Decisions of people are respected: an issue that they closed as not planned stays closed, an issue
that they opened again stays open, and a regression that is linked to an issue opens no other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from conformance.engine.runs.regression_tracker import RegressionStatus
from conformance.notify import issue_body as text
from conformance.notify.actions import Action, ActionKind
from conformance.notify.issue_body import IssueBody, find_cause, parse_body
from conformance.notify.tracker import CloseReason
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.engine.runs.regression_tracker import Regression
    from conformance.notify.night import NotifiedNight, Topic
    from conformance.notify.tracker import Issue


class NotifyWhen(StrEnum):
    """Which regressions open an issue."""

    CONFIRMED = "confirmed"
    """Those that were seen in two runs, or repeatedly in one."""
    NEW = "new"
    """Also those that were seen once."""


# A regression that was seen once may be flaky; people have confirmed a known one by its link.
_SURE: Final = frozenset(
    {RegressionStatus.CONFIRMED, RegressionStatus.KNOWN, RegressionStatus.REOPENED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyPolicy:
    """The settings of notification.

    Attributes:
        repository: Repository of the issues, `owner/name`; empty if it is unknown.
        when: Which regressions open an issue.
        limit: Issues that one night may open or reopen.
        url: Address of the site, empty if there is none.
    """

    repository: str = ""
    when: NotifyWhen = NotifyWhen.CONFIRMED
    limit: int = 10
    url: str = ""

    def reference(self, number: int) -> str:
        """Return the name of an issue in the store."""
        return f"{self.repository}#{number}"

    def number(self, reference: str) -> int | None:
        """Return the number of an issue by its name in the store; None for another repository."""
        where, _, number = reference.rpartition("#")
        ours = bool(where) and where.casefold() == self.repository.casefold()
        # GitHub ignores the case of owners and repositories.
        return int(number) if ours else None


def find_linked_issues(regressions: Iterable[Regression], policy: NotifyPolicy) -> set[int]:
    """Return the numbers of the issues that regressions are linked to.

    Args:
        regressions: The regressions of the store.
        policy: The settings.
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
        policy: The settings.
    """
    return list(_Decider(night, {one.id: one for one in regressions}, policy).actions(issues))


@dataclass(slots=True)
class _Decider:
    night: NotifiedNight
    known: Mapping[str, Regression]
    """Every regression of the store, by id."""
    policy: NotifyPolicy
    taken: set[str] = field(default_factory=set)
    """Regressions that an action of this night links: the store does not have the links yet."""
    opened: int = 0

    def actions(self, issues: Iterable[Issue]) -> Iterator[Action]:
        ours = _index_by_cause(issues)
        # An older run may be notified after a newer one: what the store has as fixed since then
        # opens nothing.
        live = [topic for topic in self.night.topics if self._find_open(topic)]
        known = self._find_issues(live, ours)
        for topic in live:
            action = self._decide_topic(topic, known.get(topic.id))
            self.taken.update(action.regressions)
            yield action
        # By number: `ours` has an issue under the id in its text, which may not be its topic's.
        numbers = {issue.number for issue in known.values()}
        yield from (
            self._decide_gone(issue) for issue in ours.values() if issue.number not in numbers
        )

    def _find_issues(self, topics: Iterable[Topic], ours: Mapping[str, Issue]) -> dict[str, Issue]:
        """Return the issue of each topic that has one.

        It is the issue with the id of the topic, else the issue that most of its regressions are
        linked to: a root cause may have had another id when the issue was opened.
        """
        found = {topic.id: ours[topic.id] for topic in topics if topic.id in ours}
        # The id takes precedence for all topics before any is matched by its links.
        free = {one.number: one for cause, one in ours.items() if cause not in found}
        for topic in topics:
            numbers = (self.policy.number(one.issue) for one in self._find_open(topic))
            counts = Counter(number for number in numbers if number in free)
            if topic.id not in found and counts:
                found[topic.id] = free.pop(counts.most_common(1)[0][0])
        return found

    def _find_open(self, topic: Topic) -> list[Regression]:
        """Return the regressions of a topic that are not fixed."""
        found = (self.known[one] for one in topic.regressions if one in self.known)
        return [one for one in found if one.fixed_in is None]

    def _find_unlinked(self, topic: Topic) -> list[Regression]:
        """Return the regressions of a topic that are not fixed and have no issue."""
        return [one for one in self._find_open(topic) if not one.issue and one.id not in self.taken]

    def _find_sure(self, regressions: Iterable[Regression]) -> list[Regression]:
        if self.policy.when is NotifyWhen.NEW:
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
            # Linked to an issue of another repository, such as upstream's, or by an earlier topic.
            issues = {one.issue for one in self._find_open(topic) if one.issue}
            return _do_nothing(
                topic.id, f"known: {', '.join(sorted(issues)) or 'linked with another root cause'}"
            )
        if not self._find_sure(free):
            return _do_nothing(topic.id, "seen once; another run must show it")
        action = Action(
            kind=ActionKind.OPEN,
            cause=topic.id,
            why=f"seen in {plural(len(topic.jobs), 'job')}",
            title=topic.title,
            body=text.make_body(topic, self.policy.url),
            regressions=tuple(one.id for one in free),
        )
        return self._within_limit(action)

    def _within_limit(self, action: Action) -> Action:
        # A broken nightly may have hundreds of root causes. The largest come first, and the others
        # are decided again on the next night.
        if self.opened >= self.policy.limit:
            why = f"this night opened {plural(self.opened, 'issue')} already; --limit allows more"
            return Action(
                kind=ActionKind.HOLD, cause=action.cause, why=why, issue=action.issue,
                title=action.title,
            )  # fmt: skip
        self.opened += 1
        return action

    def _decide_closed(self, topic: Topic, issue: Issue, closed: CloseReason) -> Action:
        if closed is CloseReason.DECLINED:
            return self._decide_declined(topic, issue)
        # The run may not have had the fix; `notify` twice for a run must not undo a decision.
        if issue.closed_at is not None and issue.closed_at >= self.night.started:
            return _do_nothing(topic.id, "it was closed after this run began", issue)
        if not self._find_sure(self._find_open(topic)):
            return _do_nothing(topic.id, "seen once since; another run must show it", issue)
        linked = {one.id for one in self._find_linked(issue)}
        own = [one.id for one in self._find_open(topic) if one.id in linked]
        action = Action(
            kind=ActionKind.REOPEN,
            cause=topic.id,
            why="it was closed as completed, and is seen again",
            issue=issue.number,
            # If people removed our marks, their text stays and the comment alone reports it.
            body=self._rewrite(topic, issue) or issue.body,
            comment=text.render_reopening(topic.jobs, self.night.run),
            regressions=(*own, *(one.id for one in self._find_unlinked(topic))),
        )
        return self._within_limit(action)

    def _decide_declined(self, topic: Topic, issue: Issue) -> Action:
        """Return the action for a root cause that people declined: it becomes known."""
        known = [*self._find_reopened(topic, issue), *self._find_sure(self._find_unlinked(topic))]
        if not known:
            return _do_nothing(topic.id, "people closed it as not planned", issue)
        return Action(
            kind=ActionKind.UPDATE,
            cause=topic.id,
            why="people closed it as not planned; further regressions are only linked to it",
            issue=issue.number,
            regressions=tuple(one.id for one in known),
        )

    def _find_reopened(self, topic: Topic, issue: Issue) -> list[Regression]:
        """Return the regressions of an issue that were fixed and are seen again."""
        linked = {one.id for one in self._find_linked(issue)}
        found = (one for one in self._find_open(topic) if one.id in linked)
        return [one for one in found if one.status is RegressionStatus.REOPENED]

    def _decide_update(self, topic: Topic, issue: Issue) -> Action:
        linked = bool(self._find_linked(issue))
        again = [one.id for one in self._find_reopened(topic, issue)]
        more = [one.id for one in self._find_sure(self._find_unlinked(topic))]
        # Without any link the store was lost or is new: a comment would list all jobs as new.
        cases = {self.known[one].case for one in more} if linked else set()
        jobs = [job for job in topic.jobs if job.case in cases]
        body = self._rewrite(topic, issue)
        if not (body or more or again):
            return _do_nothing(topic.id, "the issue is up to date", issue)
        return Action(
            kind=ActionKind.UPDATE,
            cause=topic.id,
            why="more jobs show it" if jobs else "its text is rewritten",
            issue=issue.number,
            body=body,
            comment=text.render_growth(jobs, self.night.run) if jobs else "",
            regressions=(*again, *more),
        )

    def _rewrite(self, topic: Topic, issue: Issue) -> str:
        """Return the new text of an issue, empty if it does not change."""
        parts = parse_body(issue.body)
        made = None if parts is None else text.rewrite_body(parts, topic, self.policy.url)
        return "" if made is None or made == parts else made.text

    def _decide_gone(self, issue: Issue) -> Action:
        cause = find_cause(issue.body)
        if issue.closed is not None:
            return _do_nothing(cause, "closed, and not seen", issue)
        # Not seen is not fixed: only the store knows whether the jobs have run since.
        linked = self._find_linked(issue)
        if not linked:
            return _do_nothing(cause, "the store knows no regression of it", issue)
        if any(one.fixed_in is None for one in linked):
            return _do_nothing(cause, "not seen, but not all of its jobs have run since", issue)
        if self._show_others(linked):
            return _do_nothing(cause, "its jobs are not fine: they show something else", issue)
        number = max(one.fixed_in for one in linked if one.fixed_in is not None)
        run = self.night.runs.get(number, f"run {number}")
        parts = parse_body(issue.body)
        body: IssueBody | None = None if parts is None else text.mark_fixed(parts, run)
        # The text is still marked as fixed if people reopened the issue after it was closed: they
        # do not believe the fix.
        if body is None:
            return _do_nothing(cause, "people opened it again, or changed our marks in it", issue)
        jobs = len({(one.case, place) for one in linked for place in one.places})
        return Action(
            kind=ActionKind.CLOSE,
            cause=cause,
            why="all of its jobs ran and are fine",
            issue=issue.number,
            body=body.text,
            comment=text.render_closing(jobs, run),
        )

    def _show_others(self, fixed: Iterable[Regression]) -> bool:
        """Say whether the jobs of fixed regressions show other regressions now."""
        places: dict[str, set[str]] = defaultdict(set)
        for one in fixed:
            places[one.case].update(one.places)
        return any(not places[one.case].isdisjoint(one.open_places) for one in self.known.values())


def _index_by_cause(issues: Iterable[Issue]) -> dict[str, Issue]:
    """Return the issue of each root cause: an open issue if possible, then the oldest."""
    found: dict[str, Issue] = {}
    for issue in sorted(issues, key=lambda one: (one.closed is not None, one.number)):
        cause = find_cause(issue.body)
        if cause:
            found.setdefault(cause, issue)
    return found


def _do_nothing(cause: str, why: str, issue: Issue | None = None) -> Action:
    number = None if issue is None else issue.number
    return Action(kind=ActionKind.NOTHING, cause=cause, why=why, issue=number)
