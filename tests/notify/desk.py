"""Nights of a made-up project, told to a tracker in memory; people act in between."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.runs.digests import make_digest
from conformance.notify.actions import ActionResult, execute
from conformance.notify.decisions import NotifyPolicy, decide, find_linked_issues
from conformance.notify.night import read_night
from conformance.notify.tracker import CloseReason, Issue
from conformance.store.database import parse_address
from conformance.store.run_insertion import make_entry
from conformance.store.store import Store
from tests.engine.written_runs import write

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from conformance.engine.runs.directory import RunDirectory
    from conformance.engine.runs.regression_tracker import Regression
    from conformance.model.record import Record
    from conformance.notify.actions import Action

START = datetime(2026, 5, 1, 3, tzinfo=UTC)
POLICY = NotifyPolicy(repository="owner/repo")


@dataclass
class Desk:
    """A tracker in memory.

    Attributes:
        kept: Its issues.
        titles: Their titles.
        comments: Their comments.
        now: The time.
        writes: How often something was changed.
        before_write: Called before each change.
    """

    kept: dict[int, Issue] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)
    comments: dict[int, list[str]] = field(default_factory=dict)
    now: datetime = START
    writes: int = 0
    before_write: Callable[[], None] = lambda: None

    def issues(self, numbers: Collection[int]) -> list[Issue]:
        """Return all issues."""
        return list(self.kept.values())

    def open(self, title: str, body: str) -> int:
        """Open an issue."""
        self._write()
        number = len(self.kept) + 1
        self.kept[number] = Issue(number=number, body=body)
        self.titles[number], self.comments[number] = title, []
        return number

    def edit(self, number: int, body: str) -> None:
        """Replace a text."""
        self.change(number, body=body)

    def close(self, number: int, body: str) -> None:
        """Close an issue."""
        self.change(number, body=body, closed=CloseReason.COMPLETED, closed_at=self.now)

    def reopen(self, number: int, body: str) -> None:
        """Open an issue again."""
        self.change(number, body=body, closed=None, closed_at=None)

    def comment(self, number: int, text: str) -> None:
        """Add a comment."""
        self._write()
        self.comments[number].append(text)

    def change(self, number: int, **fields: Any) -> None:
        """Change an issue, as people do, too."""
        self._write()
        self.kept[number] = replace(self.kept[number], **fields)

    def _write(self) -> None:
        self.before_write()
        self.writes += 1

    def is_open(self, number: int) -> bool:
        """Say whether an issue is open."""
        return self.kept[number].closed is None


@dataclass
class Nights:
    """A store to which nights are added, each told to a desk.

    Attributes:
        folder: Where runs are written.
        desk: The tracker.
        policy: How nights are told.
    """

    folder: Path
    desk: Desk = field(default_factory=Desk)
    policy: NotifyPolicy = POLICY
    number: int = 0
    store: Store = field(init=False)
    newest: RunDirectory = field(init=False)

    def __post_init__(self) -> None:
        self.store = Store(parse_address(str(self.folder / "history.db")), pytest.fail)

    def add(self, *records: Record, **info: Any) -> None:
        """Add a night, three o'clock to four; it is told at six."""
        self.number += 1
        began = START + timedelta(days=self.number)
        self.desk.now = began + timedelta(hours=3)
        said = {
            "started": began.isoformat(), "finished": (began + timedelta(hours=1)).isoformat()
        }  # fmt: skip
        self.newest = write(self.folder / f"night-{self.number}", *records, **said, **info)
        self.store.add(make_entry(self.newest, make_digest(self.newest)))

    @property
    def regressions(self) -> Sequence[Regression]:
        """What the store has."""
        return self.store.load_regressions()[0]

    def decided(self) -> list[Action]:
        """Return what is to be done."""
        known = self.regressions
        night = read_night(self.newest, make_digest(self.newest), self.store, known)
        return decide(
            night, known, self.desk.issues(find_linked_issues(known, self.policy)), self.policy
        )

    def notify(self) -> list[ActionResult]:
        """Do it."""

        def link(regressions: Sequence[str], number: int) -> None:
            self.store.link_all(regressions, self.policy.reference(number))

        return list(execute(self.decided(), self.desk, link))

    def night(self, *records: Record, **info: Any) -> list[str]:
        """Add a night, tell it, and return the kinds of what was done."""
        self.add(*records, **info)
        return [str(done.action.kind) for done in self.notify() if done.action.acts]

    def people(self) -> datetime:
        """Return the time at which people come: before the next night."""
        return self.desk.now + timedelta(hours=3)
