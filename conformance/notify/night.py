"""A night read from its run's directory and the store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from conformance.cells.places import places_of
from conformance.engine.causes import RootCause, root_causes
from conformance.engine.digests import Digest, State, regression_id
from conformance.engine.loading import LoadedRun, load
from conformance.engine.rundir import CorruptRunError
from conformance.errors import UsageError
from conformance.files import said_by
from conformance.judge.verdict import IF_INTENDED
from conformance.model.evidence import EVIDENCE, Evidence
from conformance.model.outcome import Conformance, Verdict
from conformance.notify.topic import Job, Night, Topic
from conformance.report.commands import rerun
from conformance.store.adding import storable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.rundir import RunDirectory
    from conformance.model.record import Record
    from conformance.store.querying import StoredRun
    from conformance.store.standing import Regression
    from conformance.store.store import Store

_SILENT: Final = frozenset({Verdict.FLAKY, Verdict.INFRA})
"""What never opens an issue: it says nothing for sure about JAX."""
_MOST_FILE: Final = 200_000
"""Characters that are read of a reproduction."""


def read_night(
    directory: RunDirectory, digest: Digest, store: Store, regressions: Sequence[Regression]
) -> Night:
    """Return a night.

    Args:
        directory: Of its run.
        digest: What is known of the run's jobs.
        store: The store, which must have the run.
        regressions: Every regression of the store.

    Raises:
        UsageError: If the store has no such run.
        CorruptRunError: If the run or what was found out about it cannot be read.
    """
    runs = store.runs()
    if not any(_same(run, digest) for run in runs):
        raise UsageError(
            f"{directory.path}: the store has no such run, expected it there; "
            f"conformance history add {directory.path}"
        )
    run = load(directory)
    names = {one.number: one.name for one in runs}
    evidence = _evidence(directory)
    known = {one.id: one for one in regressions}
    telling = root_causes(record for record in run.records if _tells(record))
    states = _states(digest)
    topics = []
    for cause in telling:
        found = evidence.get(cause.id)
        mine = _regressions(cause, states)
        since = min((known[one] for one in mine if one in known), key=_first, default=None)
        topics.append(
            Topic(
                id=cause.id,
                verdict=cause.records[0].verdict,
                reason=_reason(cause),
                jobs=_jobs(cause, run),
                regressions=mine,
                first="" if since is None else names.get(since.first, ""),
                good="" if since is None else _last_good(store, since, names),
                command=rerun(cause.records[0].case, cause.records[0].cell),
                evidence=found,
                reproduction="" if found is None else _reproduction(directory, found),
            )
        )
    started = datetime.fromisoformat(run.info.started)
    started = started if started.tzinfo else started.replace(tzinfo=UTC)
    return Night(run=run.id, started=started, topics=tuple(topics), runs=names)


def _same(run: StoredRun, digest: Digest) -> bool:
    return (run.name, run.started) == (digest.run, digest.started)


def _tells(record: Record) -> bool:
    """Say whether what is unexpected of a job may become an issue.

    What has no golden yet, and no reference that it disagrees with, asks for a review.
    """
    unvouched = record.verdict is Verdict.NEW and record.conformance is not Conformance.DEVIATES
    return record.verdict not in _SILENT and not unvouched


def _states(digest: Digest) -> dict[tuple[str, str], State]:
    table = digest.table
    return {
        (digest.cases[row], digest.cells[column]): digest.states[table[row, column] - 1]
        for row, column in np.argwhere(table).tolist()
    }


def _regressions(cause: RootCause, states: Mapping[tuple[str, str], State]) -> tuple[str, ...]:
    """Return the ids that the store has for the jobs of a root cause."""
    found = {}
    for record in cause.records:
        state = states[record.case, record.cell]
        cause_text = storable(state.cause)
        found[regression_id(record.case, str(state.verdict), cause_text)] = None
    return tuple(found)


def _reason(cause: RootCause) -> str:
    error = cause.records[0].error
    said = cause.reason.partition(IF_INTENDED)[0]
    return said or (error.signature if error is not None else "")


def _jobs(cause: RootCause, run: LoadedRun) -> tuple[Job, ...]:
    places = places_of(dict.fromkeys(record.cell for record in run.records))
    releases = {cell.id: cell.release for cell in run.info.cells}
    return tuple(
        Job(case=one.case, place=places[one.cell], release=releases.get(one.cell, ""))
        for one in sorted(cause.records, key=lambda one: (one.case, one.cell))
    )


def _first(regression: Regression) -> tuple[int, str]:
    return regression.first, regression.id


def _last_good(store: Store, regression: Regression, names: Mapping[int, str]) -> str:
    """Return the last run before a regression in which its jobs were as expected."""
    spans = store.case(regression.case)
    fine = [
        min(span.last, regression.first - 1)
        for place in regression.places
        for span in spans.get(place, ())
        if span.state is not None and span.first < regression.first and not span.state.unexpected
    ]
    return names.get(max(fine, default=0), "")


def _evidence(directory: RunDirectory) -> dict[str, Evidence]:
    """Return what was found out, by root cause; nothing of a run that nobody looked into."""
    path = directory.path / EVIDENCE
    try:
        found: Iterable[Evidence] = msgspec.json.decode(path.read_bytes(), type=list[Evidence])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CorruptRunError(f"{path}: cannot be read: {said_by(error)}") from None
    except ValueError as error:  # JSON or its encoding
        raise CorruptRunError(
            f"{path}: expected what was found out: {str(error).lower()}; "
            f"conformance triage {directory.path} makes it anew"
        ) from None
    return {one.cause: one for one in found}


def _reproduction(directory: RunDirectory, found: Evidence) -> str:
    """Return a reproduction, empty if it is not there; only what lies in the run is read."""
    if not found.repro:
        return ""
    path: Path = (directory.path / found.repro).resolve()
    if not path.is_relative_to(directory.path.resolve()):
        return ""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_FILE)
    except OSError:
        return ""
