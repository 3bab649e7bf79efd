"""The store of runs that `conformance history` and `conformance notify` use.

It imports the database, which takes long: no other command does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.app.context import HISTORY_STORE, default_jobs
from conformance.app.notes import print_note
from conformance.engine.digests import DigestStore
from conformance.engine.run_directory import latest_run
from conformance.engine.run_loader import find_runs
from conformance.errors import NothingSelectedError, UsageError
from conformance.store.address import parse_address
from conformance.store.entries import StoreEntry, make_entry
from conformance.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.store.snapshot import CaseSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedRuns:
    """The result of adding runs to a store.

    Attributes:
        numbers: Number of each run in the store by its id, None where the store had it before.
        problems: Runs that cannot be added, one sentence each.
    """

    numbers: Sequence[tuple[str, int | None]]
    problems: Sequence[str]


def open_store(context: ProjectContext, store: str | None) -> Store:
    """Return the store that `--store` names, by default that of the project.

    Args:
        context: The project.
        store: Path or URL.

    Raises:
        UsageError: If a URL is not understood.
    """
    return Store(parse_address(store or str(context.project.root / HISTORY_STORE)), print_note)


def add_runs(context: ProjectContext, store: str | None, folders: Sequence[Path]) -> AddedRuns:
    """Add runs that ended to a store.

    Args:
        context: The project.
        store: See `open_store`.
        folders: Run directories, and folders of them; the newest run if it is empty.

    Raises:
        NothingSelectedError: If no run can be added.
    """
    runs = [run for folder in folders for run in find_runs(folder)]
    runs = runs if folders else [latest_run(context.project.root)]
    digests, problems = DigestStore(context.cache / "digests", default_jobs()).get_all(runs)
    entries: list[StoreEntry] = []
    for directory, digest in digests.items():
        try:
            entries.append(make_entry(directory, digest))
        except UsageError as error:
            problems.append(str(error))
    if not entries:
        raise NothingSelectedError("\n".join(problems))
    numbers = open_store(context, store).add(*entries)
    ids = [entry.digest.run for entry in entries]
    return AddedRuns(numbers=list(zip(ids, numbers, strict=True)), problems=problems)


def find_spans(store: Store, case: str) -> Mapping[str, Sequence[CaseSpan]]:
    """Return the results of a case in all runs of a store, by place.

    Args:
        store: The store.
        case: Id of the case.

    Raises:
        NothingSelectedError: If no run has the case.
    """
    spans = store.case(case)
    if not spans:
        raise NothingSelectedError(
            f"no run that was added has case {case}; conformance list shows what there is"
        )
    return spans
