"""Comparison of two nights: new, persisting and fixed root causes, and changed artifacts. Pure.

Jobs are matched by place, not by cell: the nightly cell of today takes the place of yesterday's.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cells.nightly import make_stable_cell_ids
from conformance.engine.runs.root_causes import find_root_causes, make_culprit_key
from conformance.ir.graph import CROSS_LOWERED, IRS, kind_of_artifact
from conformance.judge.errors import normalise_cause
from conformance.model.outcome import Outcome, is_conclusive
from conformance.model.run_files import ArtifactChange, CauseSince, JobAt, PackageChange, Since

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.model.record import IrRecord, Record
    from conformance.model.run import RunInfo
    from conformance.model.run_files import Evidence

VALUE: Final = "value"
_EVERY_IR: Final = (*IRS, *CROSS_LOWERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightJob:
    """The result of a job in a night.

    Attributes:
        is_conclusive: Whether the job was observed and judged.
        symptom: Verdict and normalised reason of an unexpected job, see `find_symptom`; empty for
            an expected one.
        cause: Id of the root cause, empty for an expected job.
        case_hash: Hash of the case's content; empty if its artifacts are unknown.
        value: Hash of the value, empty if there is none.
        ir: Fingerprints by IR.
    """

    is_conclusive: bool
    symptom: tuple[str, ...] = ()
    cause: str = ""
    case_hash: str = ""
    value: str = ""
    ir: Mapping[str, IrRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """A night, in the form in which nights are compared.

    Attributes:
        run: Id of the run.
        started: Start of the run, ISO 8601.
        jobs: Results of the jobs, by case and place.
        causes: Open root causes by id, including those whose jobs were not observed that night.
        packages: Version of every package by place; only places with known packages.
    """

    run: str
    started: str
    jobs: Mapping[JobAt, NightJob]
    causes: Mapping[str, CauseSince]
    packages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def make_night(
    run: str,
    info: RunInfo,
    records: Iterable[Record],
    since: Since | None = None,
    evidence: Mapping[str, Evidence] | None = None,
) -> Night:
    """Return a night from the run of its jobs.

    Args:
        run: Id of the run.
        info: Content of `run.json`.
        records: Records of the run.
        since: Comparison with the night before, which has the age of root causes.
        evidence: Results of triage by cause id: root causes with the same culprit are merged.
    """
    every = list(records)
    places = make_stable_cell_ids(cell.id for cell in info.cells)

    def locate_job(record: Record) -> JobAt:
        return JobAt(case=record.case, place=places.get(record.cell, record.cell))

    # A fault of the host would be new every night.
    causes = [cause for cause in find_root_causes(every, evidence) if cause.is_about_jax]
    found = {
        cause.id: CauseSince(
            id=cause.id,
            verdict=str(cause.records[0].verdict),
            reason=cause.reason,
            jobs=tuple(map(locate_job, cause.records)),
            run=run,
            since=info.started,
        )
        for cause in causes
    }
    cause_by_job = {job: one.id for one in found.values() for job in one.jobs}
    jobs = {locate_job(record): record for record in every}
    return Night(
        run=run,
        started=info.started,
        jobs={
            job: _make_night_job(record, cause_by_job.get(job, "")) for job, record in jobs.items()
        },
        causes=_restore_age(found, since),
        packages={places[cell.id]: cell.versions for cell in info.cells if cell.lock},
    )


def _restore_age(found: Mapping[str, CauseSince], since: Since | None) -> Mapping[str, CauseSince]:
    """Return root causes with their age, and those that were not observed."""
    if since is None:
        return found
    aged = {}
    for name, cause in found.items():
        # Triage may have merged causes meanwhile: a cause is as old as the oldest of its parts.
        jobs = set(cause.jobs)
        known = [old for old in (*since.new, *since.still) if old.id == name or jobs & {*old.jobs}]
        aged[name] = _inherit_age(cause, known)
    # A cause whose jobs failed to run stays open, or it would be new once they run again.
    return {**{cause.id: cause for cause in since.unseen}, **aged}


def _make_night_job(record: Record, cause: str) -> NightJob:
    return NightJob(
        is_conclusive=is_conclusive(record.verdict, record.outcome),
        symptom=find_symptom(record) if record.unexpected else (),
        cause=cause,
        case_hash=record.case_hash,
        value=record.artifacts.get(VALUE, "") if record.outcome is Outcome.OK else "",
        ir=record.ir,
    )


def find_symptom(record: Record) -> tuple[str, str]:
    """Return verdict and normalised reason of an unexpected job, the same from run to run."""
    # Without numbers: a reason contains values that differ in each run.
    signature = "" if record.error is None else record.error.signature
    reason = record.reasons[0] if record.reasons else ""
    return str(record.verdict), normalise_cause(reason or signature)


def compare_nights(before: Night, after: Night) -> Since:
    """Return the changes from one night to another.

    Args:
        before: The earlier night.
        after: The later night.
    """
    # Not by id alone: a cause keeps its identity when triage merges it, or when it is split.
    related = {
        name: set(_find_related(cause, before, after)) for name, cause in after.causes.items()
    }
    known = set().union(*related.values())
    new: list[CauseSince] = []
    still: list[CauseSince] = []
    for name, cause in after.causes.items():
        older = [before.causes[other] for other in related[name]]
        (still if older else new).append(_inherit_age(cause, older, more=1))
    missing = [cause for name, cause in before.causes.items() if name not in known]
    unseen = [cause for cause in missing if _may_persist(cause, after)]
    return Since(
        run=before.run,
        started=before.started,
        new=tuple(new),
        still=tuple(still),
        gone=tuple(cause for cause in missing if cause not in unseen),
        unseen=tuple(unseen),
        added=tuple(job for job in after.jobs if job not in before.jobs),
        removed=tuple(job for job in before.jobs if job not in after.jobs),
        silent=tuple(
            job
            for job, now in after.jobs.items()
            if not now.is_conclusive and job in before.jobs and before.jobs[job].is_conclusive
        ),
        artifacts=tuple(_find_changed_artifacts(before, after)),
        packages=tuple(_compare_packages(before, after)),
    )


def _find_related(cause: CauseSince, before: Night, after: Night) -> Iterator[str]:
    """Yield the earlier root causes that are the same: by id, or by the symptom of a job.

    Ids differ if a night was read from a store, or if a cause was split.
    """
    if cause.id in before.causes:
        yield cause.id
    for job in cause.jobs:
        then, now = before.jobs.get(job), after.jobs.get(job)
        if then is None or now is None or not now.symptom:
            continue
        if then.symptom == now.symptom and then.cause in before.causes:
            yield then.cause


def _inherit_age(cause: CauseSince, older: Iterable[CauseSince], more: int = 0) -> CauseSince:
    """Return a root cause with the age of the oldest of others, plus some nights."""
    # Of causes that began in the same run, the number of nights decides.
    first = min(older, key=lambda other: (other.since, -other.nights), default=None)
    if first is None:
        return cause
    return msgspec.structs.replace(
        cause, run=first.run, since=first.since, nights=first.nights + more
    )


def merge_by_culprit(since: Since, evidence: Mapping[str, Evidence]) -> Since:
    """Return changes in which root causes with the same culprit are merged.

    A run is compared with the night before when it ends; triage finds culprits later.

    Args:
        since: Changes from the night before.
        evidence: Results of triage, by cause id.
    """
    return msgspec.structs.replace(
        since, new=_merge(since.new, evidence), still=_merge(since.still, evidence)
    )


def _merge(
    causes: Iterable[CauseSince], evidence: Mapping[str, Evidence]
) -> tuple[CauseSince, ...]:
    groups: dict[object, list[CauseSince]] = defaultdict(list)
    for cause in causes:
        groups[make_culprit_key(cause.id, evidence)].append(cause)
    return tuple(
        _inherit_age(
            # As in reports, the largest cause gives its id and its reason.
            msgspec.structs.replace(
                max(same, key=lambda cause: len(cause.jobs)),
                jobs=tuple(job for cause in same for job in cause.jobs),
            ),
            same,
        )
        for same in groups.values()
    )


def _may_persist(cause: CauseSince, after: Night) -> bool:
    """Return whether a missing root cause may persist: a job of it was not observed."""
    return any(job in after.jobs and not after.jobs[job].is_conclusive for job in cause.jobs)


def _find_changed_artifacts(before: Night, after: Night) -> Iterator[ArtifactChange]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for job, now in after.jobs.items():
        then = before.jobs.get(job)
        if then is None or not (_is_expected(then) and _is_expected(now)):
            continue
        # An edited case is expected to give other artifacts.
        if then.case_hash and then.case_hash == now.case_hash:
            for artifact in _find_differing(then, now):
                found[artifact, job.place].append(job.case)
    order = (VALUE, *_EVERY_IR)
    for artifact, place in sorted(found, key=lambda key: (order.index(key[0]), key[1])):
        yield ArtifactChange(artifact=artifact, place=place, cases=tuple(found[artifact, place]))


def _is_expected(job: NightJob) -> bool:
    return job.is_conclusive and not job.symptom


def _find_differing(then: NightJob, now: NightJob) -> Iterator[str]:
    if then.value and now.value and then.value != now.value:
        yield VALUE
    other = [ir for ir in _EVERY_IR if _differs_in_meaning(then.ir.get(ir), now.ir.get(ir))]
    # The IR for another platform mostly changes together with that of the cell itself.
    yield from (ir for ir in other if ir in IRS or kind_of_artifact(ir) not in other)


def _differs_in_meaning(then: IrRecord | None, now: IrRecord | None) -> bool:
    """Return whether the canonical form of an IR differs; IRs that were not understood do not."""
    if then is None or now is None or not (then.exact and now.exact):
        return False
    return then.version == now.version and then.canonical != now.canonical


def _compare_packages(before: Night, after: Night) -> Iterator[PackageChange]:
    for place, now in after.packages.items():
        then = before.packages.get(place)
        # A place without packages was not provided that night: its packages did not change.
        if then is None or then == now:
            continue
        for name in sorted(then.keys() | now.keys()):
            versions = then.get(name, ""), now.get(name, "")
            if versions[0] != versions[1]:
                yield PackageChange(
                    place=place, package=name, before=versions[0], after=versions[1]
                )
