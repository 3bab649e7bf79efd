"""A night read from its run's directory and the store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from conformance.cells.nightly import stable_cell_ids
from conformance.engine.digests import Digest, JobState, make_regression_id
from conformance.engine.root_causes import find_root_causes
from conformance.engine.run_loader import LoadedRun, load_run, read_evidence, read_reproduction
from conformance.errors import UsageError
from conformance.judge.verdict import IF_INTENDED
from conformance.model.outcome import Conformance, Verdict
from conformance.model.run import RunCase, selector_of
from conformance.notify.topic import NotifiedNight, Topic, TopicJob
from conformance.report.text import make_rerun_command
from conformance.store.run_insertion import make_storable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.engine.regression_tracker import Regression
    from conformance.engine.run_directory import RunDirectory
    from conformance.model.record import Record
    from conformance.store.store import Store

_SILENT: Final = frozenset({Verdict.FLAKY, Verdict.INFRA})
"""What never opens an issue: it says nothing for sure about JAX."""


def read_night(
    directory: RunDirectory, digest: Digest, store: Store, regressions: Sequence[Regression]
) -> NotifiedNight:
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
    if (digest.run, digest.started) not in {(run.name, run.started) for run in runs}:
        raise UsageError(
            f"{directory.path}: the store has no such run, expected it there; "
            f"conformance history add {directory.path}"
        )
    run = load_run(directory)
    names = {one.number: one.name for one in runs}
    evidence = read_evidence(directory)
    known = {one.id: one for one in regressions}
    states = digest.jobs
    topics = []
    for cause in find_root_causes(run.records, evidence):
        records = [record for record in cause.records if _tells(record)]
        if not records:
            continue
        first = records[0]
        found = evidence.get(cause.id)
        mine = _regressions(records, states)
        since = min(
            (known[one] for one in mine if one in known),
            key=lambda one: (one.first, one.id),
            default=None,
        )
        topics.append(
            Topic(
                id=cause.id,
                verdict=first.verdict,
                reason=_reason(first),
                jobs=_jobs(records, run),
                regressions=mine,
                first="" if since is None else names.get(since.first, ""),
                good="" if since is None else _last_good(store, since, names),
                command=make_rerun_command(
                    first.case,
                    run.info.cases.get(first.case, RunCase()),
                    selector_of(run.info.cells, first.cell),
                ),
                evidence=found,
                reproduction="" if found is None else read_reproduction(directory, found),
            )
        )
    started = datetime.fromisoformat(run.info.started)
    started = started if started.tzinfo else started.replace(tzinfo=UTC)
    return NotifiedNight(run=run.id, started=started, topics=tuple(topics), runs=names)


def _tells(record: Record) -> bool:
    """Say whether what is unexpected of a job may become an issue.

    What has no golden yet, and no reference that it disagrees with, asks for a review.
    """
    unvouched = record.verdict is Verdict.NEW and record.conformance is not Conformance.DEVIATES
    return record.verdict not in _SILENT and not unvouched


def _regressions(
    records: Sequence[Record], states: Mapping[tuple[str, str], JobState]
) -> tuple[str, ...]:
    """Return the ids that the store has for jobs."""
    shown = ((record.case, states[record.case, record.cell]) for record in records)
    found = (
        make_regression_id(case, str(one.verdict), make_storable(one.cause)) for case, one in shown
    )
    return tuple(dict.fromkeys(found))


def _reason(record: Record) -> str:
    said = next(iter(record.reasons), "").partition(IF_INTENDED)[0]
    return said or (record.error.signature if record.error is not None else "")


def _jobs(records: Sequence[Record], run: LoadedRun) -> tuple[TopicJob, ...]:
    places = stable_cell_ids(dict.fromkeys(record.cell for record in run.records))
    releases = {cell.id: cell.release for cell in run.info.cells}
    return tuple(
        TopicJob(case=one.case, place=places[one.cell], release=releases.get(one.cell, ""))
        for one in sorted(records, key=lambda one: (one.case, one.cell))
    )


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
