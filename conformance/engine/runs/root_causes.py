"""Root causes: groups of unexpected jobs with something in common. Pure.

Evidence is tried in order of significance: the error; the place where the program's own IR begins
to differ; the fact that differs; the place where the optimised HLO begins to differ; the reason of
the case. Values are no evidence: they differ in another way in each case.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from conformance.judge.errors import normalise_cause
from conformance.judge.ir import FACT
from conformance.judge.verdict import IF_INTENDED
from conformance.model.outcome import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.model.run_files import Evidence

Part = tuple[str, ...]
"""A piece of evidence, its kind first."""
Key = frozenset[Part]
"""Evidence of a job, of which each piece could assign it to a cause."""

_ID: Final = 12
"""Digits of an id."""
_OWN: Final = ("jaxpr", "stablehlo")
"""IRs of the program itself, in the order of lowering."""
_OPTIMISED: Final = "hlo"
"""IR of the compiled program."""
# Hashed into ids, which notifications and the store keep: the word must not change.
_REASON: Final = "said"
"""Kind of the least significant evidence: the reason of a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """Unexpected jobs that have the same cause.

    Attributes:
        id: Stable from run to run, as long as the common evidence is the same.
        reason: The first reason of the first job, empty if it has none.
        records: Records of the jobs, by case and cell.
    """

    id: str
    reason: str
    records: tuple[Record, ...]

    @property
    def is_about_jax(self) -> bool:
        """Whether it is about the behaviour of JAX, and no fault of the host."""
        return self.records[0].verdict is not Verdict.INFRA


def find_root_causes(
    records: Iterable[Record], evidence: Mapping[str, Evidence] | None = None
) -> tuple[RootCause, ...]:
    """Return the root causes of unexpected records.

    Args:
        records: Judged records. Evidence that expected records show as well is no cause.
        evidence: Results of triage, by cause id. Causes with the same first bad point and the same
            culprits become one, under the id of the largest.

    Returns:
        The causes: faults of the host first, because they hide the behaviour of JAX, then the
        largest.
    """
    # Jobs end in any order: the first reason of a cause must not depend on it.
    every = sorted(records, key=_get_job_id)
    evidence_of = _EvidenceFinder(every)
    unexpected = [r for r in every if r.unexpected or r.verdict is Verdict.INFRA]
    assigned = list(
        zip(
            unexpected,
            _choose_fewest([evidence_of.find(record) for record in unexpected]),
            strict=True,
        )
    )
    moved = _assign_probes(assigned)
    groups: dict[Part, list[Record]] = {}
    for record, part in assigned:
        groups.setdefault(moved.get(id(record), part), []).append(record)
    # The largest first: of causes that are merged, the first gives its id.
    causes = [
        RootCause(
            id=hashlib.sha256("\0".join(part).encode("utf-8", "surrogatepass")).hexdigest()[:_ID],
            reason=_get_reason(members[0]),
            records=tuple(members),
        )
        for part, members in sorted(groups.items(), key=lambda group: -len(group[1]))
    ]
    return _merge_by_culprit(causes, evidence or {})


def _get_job_id(record: Record) -> tuple[str, str]:
    return record.case, record.cell


def _merge_by_culprit(
    causes: Sequence[RootCause], evidence: Mapping[str, Evidence]
) -> tuple[RootCause, ...]:
    """Merge the causes for which triage confirmed the same first bad point and culprits."""
    groups: dict[object, list[RootCause]] = {}
    for cause in causes:
        groups.setdefault(make_culprit_key(cause.id, evidence), []).append(cause)
    merged = [
        replace(
            same[0],
            records=tuple(sorted(chain(*(cause.records for cause in same)), key=_get_job_id)),
        )
        for same in groups.values()
    ]
    return tuple(sorted(merged, key=lambda cause: (cause.is_about_jax, -len(cause.records))))


def make_culprit_key(cause: str, evidence: Mapping[str, Evidence]) -> object:
    """Return a key that is equal for root causes with the same culprits.

    Args:
        cause: Id of a root cause.
        evidence: Results of triage, by cause id.
    """
    found = evidence.get(cause)
    # Without a confirmed culprit, two effects of one release may have two causes.
    if found is None or not found.confirmed or not found.culprits:
        return cause
    # A search finds culprits in any order.
    commits = frozenset(commit.hash for commit in found.commits)
    return (found.last_good, found.first_bad, frozenset(found.culprits), commits)


def _choose_fewest(keys: Sequence[Key]) -> list[Part]:
    """Choose a part of each key such that few different parts are used: a greedy set cover.

    A program with the evidence of two causes is assigned to the more frequent one.
    """
    numbers_of: dict[Part, list[int]] = {}
    for number, key in enumerate(keys):
        for part in key:
            numbers_of.setdefault(part, []).append(number)
    unassigned = {part: len(numbers) for part, numbers in numbers_of.items()}
    chosen: dict[int, Part] = {}
    # A heap with outdated counts instead of a search for the maximum in each step, which is
    # quadratic in the number of parts. Equal counts are ordered by part: the result is stable.
    heap = [(-count, part) for part, count in unassigned.items()]
    heapq.heapify(heap)
    while heap:
        count, part = heapq.heappop(heap)
        if -count != unassigned[part]:  # outdated: some of its jobs were assigned meanwhile
            heapq.heappush(heap, (-unassigned[part], part))
            continue
        for number in numbers_of[part] if count else ():
            if number not in chosen:
                chosen[number] = part
                for other in keys[number]:
                    unassigned[other] -= 1
    return [chosen[number] for number in range(len(keys))]


def _assign_probes(assigned: Sequence[tuple[Record, Part]]) -> dict[int, Part]:
    """Return another assignment of jobs without a program, by identity of the record.

    A probe has no IR. It is assigned to the cause that its family has in the same cell, if there is
    exactly one: if the probe has another cause, that shows once the first is fixed.
    """
    parts: dict[tuple[str, str], set[Part]] = {}
    for record, part in assigned:
        if part[0] in record.ir:
            parts.setdefault(_locate(record), set()).add(part)
    return {
        id(record): next(iter(parts[_locate(record)]))
        for record, part in assigned
        if not record.ir and part[0] == _REASON and len(parts.get(_locate(record), ())) == 1
    }


def _locate(record: Record) -> tuple[str, str]:
    return record.case.partition("/")[0], record.cell


def _get_reason(record: Record) -> str:
    return record.reasons[0] if record.reasons else ""


class _EvidenceFinder:
    """Finds the evidence of unexpected jobs.

    Args:
        records: All records.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        # Positive if most jobs that begin to differ in a place are unexpected.
        self._weights: Counter[tuple[str, str]] = Counter()
        for record in records:
            sign = 1 if record.unexpected else -1
            for ir, ir_record in record.ir.items():
                places = ((ir, place) for place in ir_record.begins)
                self._weights.update(dict.fromkeys(places, sign))

    def find(self, record: Record) -> Key:
        """Return the evidence of a job, the most significant kind that it has."""
        reason = _get_reason(record).partition(IF_INTENDED)[0]
        subject = (record.case.partition("[")[0], normalise_cause(reason))
        # Without a case: a host that is down fails many cases for one reason.
        if record.verdict is Verdict.INFRA:
            return frozenset({("infra", reason)})
        if record.verdict is Verdict.FLAKY:
            return frozenset({("flaky", *subject)})
        if record.error is not None:
            return frozenset({("error", record.error.signature or record.error.type)})
        # The earliest IR that differs: later ones differ because of it.
        for ir in _OWN:
            if found := self._find_beginnings(record, ir):
                return found
        if reason.startswith(FACT):
            return frozenset({("fact", reason)})
        return self._find_beginnings(record, _OPTIMISED) or frozenset({(_REASON, *subject)})

    def _find_beginnings(self, record: Record, ir: str) -> Key:
        """Return where an IR begins to differ, without places of mostly expected jobs."""
        kept = record.ir.get(ir)
        begins = kept.begins if kept is not None else ()
        return frozenset((ir, place) for place in begins if self._weights[ir, place] > 0)
