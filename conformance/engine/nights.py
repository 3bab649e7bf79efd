"""Two nights beside each other: what is new, what is still there, what is gone. Pure.

Nights are told apart by places, not by cells: the nightly of today stands where yesterday's did.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cells.nightly import stable_cell_ids
from conformance.engine.root_causes import find_root_causes, make_culprit_key
from conformance.ir.graph import CROSS_LOWERED, IRS, kind_of_artifact
from conformance.judge.errors import normalise_cause
from conformance.model.outcome import Outcome, is_telling
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
    """What a night showed of a job.

    Attributes:
        telling: Whether it says anything about JAX.
        shows: Of what is unexpected the verdict, and the reason in the form in which it is the same
            from run to run; empty of what is not.
        cause: Id of its root cause, empty of what is not unexpected.
        case_hash: Hash of the case's content; empty where nothing is known of what it made.
        value: Hash of its value, empty where there is none.
        ir: Its IRs.
    """

    telling: bool
    shows: tuple[str, ...] = ()
    cause: str = ""
    case_hash: str = ""
    value: str = ""
    ir: Mapping[str, IrRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """A night, as another one is compared with it.

    Attributes:
        run: Id of its run.
        started: When that began, ISO 8601.
        jobs: Its jobs.
        causes: The root causes that are open, by id; also such whose jobs said nothing that night.
        packages: Version of every package by place; of places of which nothing is known, none.
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
    """Return a night.

    Args:
        run: Id of its run.
        info: What is known of the run.
        records: Its jobs.
        since: What changed in it since the night before: root causes are as old as that says.
        evidence: Results of triage by cause id: root causes with the same culprit are one.
    """
    every = list(records)
    places = stable_cell_ids(cell.id for cell in info.cells)

    def job_of(record: Record) -> JobAt:
        return JobAt(case=record.case, place=places.get(record.cell, record.cell))

    causes = [cause for cause in find_root_causes(every, evidence) if cause.telling]
    found = {
        cause.id: CauseSince(
            id=cause.id,
            verdict=str(cause.records[0].verdict),
            reason=cause.reason,
            jobs=tuple(map(job_of, cause.records)),
            run=run,
            since=info.started,
        )
        for cause in causes
    }
    cause_by_job = {job: one.id for one in found.values() for job in one.jobs}
    jobs = {job_of(record): record for record in every}
    return Night(
        run=run,
        started=info.started,
        jobs={job: _shown(record, cause_by_job.get(job, "")) for job, record in jobs.items()},
        causes=_with_their_age(found, since),
        packages={places[cell.id]: cell.versions for cell in info.cells if cell.lock},
    )


def _with_their_age(
    found: Mapping[str, CauseSince], since: Since | None
) -> Mapping[str, CauseSince]:
    """Return root causes with since when they are there, and those that were not seen."""
    if since is None:
        return found
    aged = {}
    for name, one in found.items():
        # Triage may have merged since then: a root cause is as old as the oldest of its parts.
        jobs = set(one.jobs)
        known = [old for old in (*since.new, *since.still) if old.id == name or jobs & {*old.jobs}]
        aged[name] = _as_old_as(one, known)
    return {**{one.id: one for one in since.unseen}, **aged}


def _shown(record: Record, cause: str) -> NightJob:
    return NightJob(
        telling=is_telling(record.verdict, record.outcome),
        shows=find_symptom(record) if record.unexpected else (),
        cause=cause,
        case_hash=record.case_hash,
        value=record.artifacts.get(VALUE, "") if record.outcome is Outcome.OK else "",
        ir=record.ir,
    )


def find_symptom(record: Record) -> tuple[str, str]:
    """Return what an unexpected job shows: its verdict, and why, the same from run to run."""
    signature = "" if record.error is None else record.error.signature
    reason = record.reasons[0] if record.reasons else ""
    return str(record.verdict), normalise_cause(reason or signature)


def compare_nights(before: Night, after: Night) -> Since:
    """Return what changed from one night to another.

    Args:
        before: The one.
        after: The other.
    """
    related = {name: set(_related(one, before, after)) for name, one in after.causes.items()}
    known = set().union(*related.values())
    new: list[CauseSince] = []
    still: list[CauseSince] = []
    for name, one in after.causes.items():
        older = [before.causes[other] for other in related[name]]
        (still if older else new).append(_as_old_as(one, older, more=1))
    missing = [one for name, one in before.causes.items() if name not in known]
    unseen = [one for one in missing if _is_unseen(one, after)]
    return Since(
        run=before.run,
        started=before.started,
        new=tuple(new),
        still=tuple(still),
        gone=tuple(one for one in missing if one not in unseen),
        unseen=tuple(unseen),
        added=tuple(job for job in after.jobs if job not in before.jobs),
        removed=tuple(job for job in before.jobs if job not in after.jobs),
        silent=tuple(
            job
            for job, now in after.jobs.items()
            if not now.telling and job in before.jobs and before.jobs[job].telling
        ),
        moved=tuple(_moved(before, after)),
        installed=tuple(_installed(before, after)),
    )


def _related(one: CauseSince, before: Night, after: Night) -> Iterator[str]:
    """Yield the root causes of before that are the same: by their id, or as a job shows the same.

    Ids are not the same where a night is known from a store, or what is one cause was refined.
    """
    if one.id in before.causes:
        yield one.id
    for job in one.jobs:
        then, now = before.jobs.get(job), after.jobs.get(job)
        if then is None or now is None or not now.shows:
            continue
        if then.shows == now.shows and then.cause in before.causes:
            yield then.cause


def _as_old_as(one: CauseSince, older: Iterable[CauseSince], more: int = 0) -> CauseSince:
    """Return a root cause as old as the oldest of others, and as many more nights old."""
    first = min(older, key=lambda other: (other.since, -other.nights), default=None)
    if first is None:
        return one
    return msgspec.structs.replace(
        one, run=first.run, since=first.since, nights=first.nights + more
    )


def merge_by_culprit(since: Since, evidence: Mapping[str, Evidence]) -> Since:
    """Return what changed, with root causes that triage found to have the same culprit as one.

    A run is compared with the night before when it ends, and triage comes later.

    Args:
        since: What changed.
        evidence: Results of triage, by cause id.
    """
    return msgspec.structs.replace(
        since, new=_merged(since.new, evidence), still=_merged(since.still, evidence)
    )


def _merged(
    causes: Iterable[CauseSince], evidence: Mapping[str, Evidence]
) -> tuple[CauseSince, ...]:
    groups: dict[object, list[CauseSince]] = defaultdict(list)
    for one in causes:
        groups[make_culprit_key(one.id, evidence)].append(one)
    return tuple(
        _as_old_as(
            msgspec.structs.replace(
                max(same, key=lambda one: len(one.jobs)),
                jobs=tuple(job for one in same for job in one.jobs),
            ),
            same,
        )
        for same in groups.values()
    )


def _is_unseen(one: CauseSince, after: Night) -> bool:
    """Say whether a root cause may still be there: a job of it was not asked, or did not answer."""
    return any(job in after.jobs and not after.jobs[job].telling for job in one.jobs)


def _moved(before: Night, after: Night) -> Iterator[ArtifactChange]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for job, now in after.jobs.items():
        then = before.jobs.get(job)
        if then is None or not (_is_as_it_should(then) and _is_as_it_should(now)):
            continue
        if then.case_hash and then.case_hash == now.case_hash:
            for artifact in _differing(then, now):
                found[artifact, job.place].append(job.case)
    order = (VALUE, *_EVERY_IR)
    for artifact, place in sorted(found, key=lambda key: (order.index(key[0]), key[1])):
        yield ArtifactChange(artifact=artifact, place=place, cases=tuple(found[artifact, place]))


def _is_as_it_should(job: NightJob) -> bool:
    return job.telling and not job.shows


def _differing(then: NightJob, now: NightJob) -> Iterator[str]:
    if then.value and now.value and then.value != now.value:
        yield VALUE
    other = [ir for ir in _EVERY_IR if _does_other_work(then.ir.get(ir), now.ir.get(ir))]
    # What is lowered for another platform mostly says what the cell's own IR does.
    yield from (ir for ir in other if ir in IRS or kind_of_artifact(ir) not in other)


def _does_other_work(then: IrRecord | None, now: IrRecord | None) -> bool:
    """Say whether an IR differs in more than how its work is put; what is not understood is not."""
    if then is None or now is None or not (then.structure and now.structure):
        return False
    return then.version == now.version and then.neutral != now.neutral


def _installed(before: Night, after: Night) -> Iterator[PackageChange]:
    for place, now in after.packages.items():
        then = before.packages.get(place)
        if then is None or then == now:
            continue
        for name in sorted(then.keys() | now.keys()):
            versions = then.get(name, ""), now.get(name, "")
            if versions[0] != versions[1]:
                yield PackageChange(
                    place=place, package=name, before=versions[0], after=versions[1]
                )
