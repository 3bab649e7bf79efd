"""The root causes of a nightly run, from its directory and their history in the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from conformance.cells.nightly import make_stable_cell_ids
from conformance.engine.runs.digests import Digest, JobState, make_regression_id
from conformance.engine.runs.loader import LoadedRun, load_run, read_evidence, read_reproduction
from conformance.engine.runs.root_causes import find_root_causes
from conformance.errors import UsageError
from conformance.judge.verdict import IF_INTENDED
from conformance.model.outcome import Conformance, Verdict
from conformance.model.run import RunCase, selector_of
from conformance.report.text import flatten, make_rerun_command
from conformance.store.run_insertion import make_storable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.engine.runs.directory import RunDirectory
    from conformance.engine.runs.regression_tracker import Regression
    from conformance.model.record import Record
    from conformance.model.run_files import Evidence
    from conformance.store.store import Store


MOST_TITLE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicJob:
    """A job that shows a root cause.

    Attributes:
        case: Id of the case.
        place: Stable id of the cell, the same every night.
        release: Release of jax in the cell, empty if it is unknown.
    """

    case: str
    place: str
    release: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A root cause of a night.

    Attributes:
        id: Id of the root cause.
        verdict: Verdict on its jobs.
        reason: Reason of the first job.
        jobs: The jobs.
        regressions: Ids of the regressions in the store.
        first: The run that showed it first, empty if it is unknown.
        good: The last run before it in which its jobs were as expected, empty for none.
        command: Command that reruns one of the jobs.
        evidence: Findings about it, if any.
        reproduction: Text of its reproduction, empty for none.
    """

    id: str
    verdict: Verdict
    reason: str
    jobs: tuple[TopicJob, ...]
    regressions: tuple[str, ...]
    first: str = ""
    good: str = ""
    command: str = ""
    evidence: Evidence | None = None
    reproduction: str = ""

    @property
    def title(self) -> str:
        """Title of its issue; without numbers of jobs, because these change from night to night."""
        functions = {job.case.partition("[")[0] for job in self.jobs}
        subject = f"{functions.pop()} " if len(functions) == 1 else ""
        return flatten(f"{subject}{self.verdict}: {self.reason}", MOST_TITLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifiedNight:
    """A run for which issues are decided.

    Attributes:
        run: Id of the run.
        started: Time when it began.
        topics: Its root causes, the largest first; nothing flaky, no fault of the host.
        runs: Id of every run of the store, by number.
    """

    run: str
    started: datetime
    topics: tuple[Topic, ...] = ()
    runs: Mapping[int, str] = field(default_factory=dict)


_SILENT: Final = frozenset({Verdict.FLAKY, Verdict.INFRA})
"""Verdicts that never open an issue: they say nothing reliable about JAX."""


def read_night(
    directory: RunDirectory, digest: Digest, store: Store, regressions: Sequence[Regression]
) -> NotifiedNight:
    """Return the root causes of a nightly run.

    Args:
        directory: Directory of the run.
        digest: Digest of the run.
        store: The store, which must have the run.
        regressions: Every regression of the store.

    Raises:
        UsageError: If the store has no such run.
        CorruptRunError: If the run or its evidence cannot be read.
    """
    runs = store.load_runs()
    # By time too: an id is the name of a directory, which may be used again.
    if (digest.run, digest.started) not in {(run.name, run.started) for run in runs}:
        raise UsageError(
            f"{directory.path}: is not in the store, expected a run of its history; "
            f"conformance history add {directory.path}"
        )
    run = load_run(directory)
    # The store numbers runs in the order of their addition, which is the order of nights.
    names = {one.number: one.name for one in runs}
    evidence = read_evidence(directory)
    known = {one.id: one for one in regressions}
    states = digest.jobs
    topics = []
    for cause in find_root_causes(run.records, evidence):
        records = [record for record in cause.records if _may_open_issue(record)]
        if not records:
            continue
        first = records[0]
        found = evidence.get(cause.id)
        own = _list_regressions(records, states)
        since = min(
            (known[one] for one in own if one in known),
            key=lambda one: (one.first, one.id),
            default=None,
        )
        topics.append(
            Topic(
                id=cause.id,
                verdict=first.verdict,
                reason=_find_reason(first),
                jobs=_list_jobs(records, run),
                regressions=own,
                first="" if since is None else names.get(since.first, ""),
                good="" if since is None else _find_last_good(store, since, names),
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
    # Compared with GitHub's times, which have a zone.
    started = started if started.tzinfo else started.replace(tzinfo=UTC)
    return NotifiedNight(run=run.id, started=started, topics=tuple(topics), runs=names)


def _may_open_issue(record: Record) -> bool:
    """Say whether an unexpected job may become an issue.

    A job without a golden that does not contradict its reference needs a review instead.
    """
    # Opening an issue for every new case would bury the regressions.
    unvouched = record.verdict is Verdict.NEW and record.conformance is not Conformance.DEVIATES
    return record.verdict not in _SILENT and not unvouched


def _list_regressions(
    records: Sequence[Record], states: Mapping[tuple[str, str], JobState]
) -> tuple[str, ...]:
    """Return the ids of jobs' regressions in the store."""
    shown = ((record.case, states[record.case, record.cell]) for record in records)
    found = (
        # The store replaces text that a database refuses, so its ids are of the replaced text.
        make_regression_id(case, str(one.verdict), make_storable(one.cause))
        for case, one in shown
    )
    return tuple(dict.fromkeys(found))


def _find_reason(record: Record) -> str:
    reason = next(iter(record.reasons), "").partition(IF_INTENDED)[0]
    return reason or (record.error.signature if record.error is not None else "")


def _list_jobs(records: Sequence[Record], run: LoadedRun) -> tuple[TopicJob, ...]:
    places = make_stable_cell_ids(dict.fromkeys(record.cell for record in run.records))
    releases = {cell.id: cell.release for cell in run.info.cells}
    return tuple(
        TopicJob(case=one.case, place=places[one.cell], release=releases.get(one.cell, ""))
        for one in sorted(records, key=lambda one: (one.case, one.cell))
    )


def _find_last_good(store: Store, regression: Regression, names: Mapping[int, str]) -> str:
    """Return the last run before a regression in which its jobs were as expected, if any."""
    spans = store.load_spans(regression.case)
    fine = [
        # A span may last beyond the regression if another place of the case showed it.
        min(span.last, regression.first - 1)
        for place in regression.places
        for span in spans.get(place, ())
        if span.state is not None and span.first < regression.first and not span.state.unexpected
    ]
    return names.get(max(fine, default=0), "")
