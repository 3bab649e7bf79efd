"""The history of runs: added, queried, linked to issues and pruned."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, func, insert, select

from conformance.errors import UsageError
from conformance.files import disk_error
from conformance.store import run_insertion, schema
from conformance.store.backup import back_up, find_damage, restore
from conformance.store.database import WAIT, Database
from conformance.store.retention import RemovedRuns, prune
from conformance.store.snapshot import StoreSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime

    from sqlalchemy import Connection

    from conformance.engine.runs.digests import Digest, JobState
    from conformance.engine.runs.regression_tracker import Regression, RegressionEvent
    from conformance.store.database import Address
    from conformance.store.run_insertion import StoreEntry
    from conformance.store.snapshot import CaseSpan, StoredRun

_ISSUE: Final = re.compile(r"[\w.-]+/[\w.-]+#\d+")


class Store:
    """The history of runs.

    Args:
        address: Address of the store, which is created if it does not exist.
        inform: Receives a line about a repair.
        wait: Seconds to wait for another process that writes.

    Raises:
        ConformanceError: If it cannot be used.
    """

    def __init__(self, address: Address, inform: Callable[[str], None], wait: float = WAIT) -> None:
        self._database = Database(address, wait)
        self._file, self._wait = address.file, wait
        if self._file is not None:
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise disk_error(self._file, error) from None
            with self._translate_file_errors():
                # Checked without a lock first: almost every store is intact. `restore` checks
                # again.
                repair = find_damage(self._file, wait) and restore(self._file, wait)
            if repair:
                inform(repair)
        self._database.migrate()

    def add(self, *entries: StoreEntry) -> list[int | None]:
        """Add runs to the end of the history.

        Args:
            entries: Runs to add, in order.

        Returns:
            The number of each run, None if the store already has it.

        Raises:
            ConformanceError: If the store cannot be written; it is then unchanged.
        """
        with self._open_writer() as connection:
            return [run_insertion.insert_run(connection, entry) for entry in entries]

    def load_runs(self) -> list[StoredRun]:
        """Return the runs, in the order they were added."""
        with self._open_snapshot() as snapshot:
            return snapshot.runs

    def load_spans(self, case: str) -> dict[str, list[CaseSpan]]:
        """Return the states of a case in every run, by place; empty if it never ran."""
        with self._open_snapshot() as snapshot:
            return snapshot.make_spans(case)

    def load_states(self, run: int) -> dict[tuple[str, str], JobState]:
        """Return the state of every job of a run, by case and place."""
        with self._open_snapshot() as snapshot:
            return snapshot.find_states(run)

    def load_digests(self) -> list[Digest]:
        """Return the digest of every run, in the order they were added."""
        with self._open_snapshot() as snapshot:
            return list(snapshot.make_digests())

    def load_regressions(self) -> tuple[list[Regression], list[RegressionEvent]]:
        """Return every regression, the open ones first, and their events by run."""
        with self._open_snapshot() as snapshot:
            tracker = snapshot.track_regressions()
            return tracker.list_regressions(snapshot.links), tracker.events

    def link(self, regression: str, issue: str) -> Regression:
        """Link an issue to a regression, in place of an earlier link.

        Args:
            regression: Id of the regression, or its beginning.
            issue: `owner/repository#number`; empty to link none.

        Returns:
            The regression with the link.

        Raises:
            UsageError: If the issue is malformed, or the id is ambiguous or unknown.
            ConformanceError: If the store cannot be written.
        """
        _check_issue(issue)
        with self._open_writer() as connection:
            tracker = StoreSnapshot(connection).track_regressions()
            candidates = (known.id for known in tracker.list_regressions())
            found = [candidate for candidate in candidates if candidate.startswith(regression)]
            if len(found) != 1:
                where = self._database.address.name
                raise UsageError(
                    f"{regression!r} matches {len(found)} regressions of {where}, "
                    "expected 1; conformance history regressions shows their ids"
                )
            _link(connection, found, issue)
            # A new snapshot: a snapshot caches the links that it has read.
            linked = tracker.list_regressions(StoreSnapshot(connection).links)
            return next(known for known in linked if known.id == found[0])

    def link_all(self, regressions: Collection[str], issue: str) -> None:
        """Link an issue to several regressions at once, in place of earlier links.

        Args:
            regressions: Full ids of the regressions.
            issue: `owner/repository#number`.

        Raises:
            UsageError: If the issue is malformed.
            ConformanceError: If the store cannot be written.
        """
        _check_issue(issue)
        with self._open_writer() as connection:
            _link(connection, regressions, issue)

    @contextlib.contextmanager
    def lock_actions(self, inform: Callable[[str], None]) -> Iterator[None]:
        """Hold the exclusive right to act on the content: two processes would open two issues.

        Args:
            inform: Receives one line if another process holds it.

        Raises:
            ConformanceError: If another process keeps it too long.
        """
        with self._database.lock_actions(inform):
            yield

    def prune(self, before: datetime) -> RemovedRuns:
        """Remove runs that began before a time, up to the first that did not; the newest stays.

        The states of jobs before the first remaining run are kept.

        Args:
            before: The time, with its zone.

        Raises:
            ConformanceError: If the store cannot be written; it is then unchanged.
        """
        with self._open_writer() as connection:
            return prune(connection, before)

    @contextlib.contextmanager
    def _open_snapshot(self) -> Iterator[StoreSnapshot]:
        with self._database.open_reader() as connection:
            yield StoreSnapshot(connection)

    @contextlib.contextmanager
    def _open_writer(self) -> Iterator[Connection]:
        """Yield a connection that writes; the backup is made after the commit."""
        with self._database.open_writer() as connection:
            yield connection
        if self._file is not None:
            with self._translate_file_errors():
                # After the commit: SQLite copies committed pages only.
                back_up(self._file, self._wait)

    @contextlib.contextmanager
    def _translate_file_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._database.make_file_error(error) from None


def _check_issue(issue: str) -> None:
    if issue and not _ISSUE.fullmatch(issue):
        raise UsageError(f"issue {issue!r}: expected owner/repository#number")


def _link(connection: Connection, regressions: Collection[str], issue: str) -> None:
    """Link an issue to regressions, as of the newest run; an empty issue removes the links."""
    links = schema.links
    # Deleted and inserted: an upsert is spelled differently for SQLite and PostgreSQL.
    for regression in regressions:
        connection.execute(delete(links).where(links.c.regression == regression))
    if issue:
        newest = connection.execute(select(func.max(schema.runs.c.seq))).scalar_one()
        rows = [{"regression": known, "issue": issue, "run": newest} for known in regressions]
        connection.execute(insert(links), rows)
