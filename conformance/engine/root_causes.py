"""Root causes: what is the same about unexpected jobs, of whatever case, cell and run. Pure.

What tells most is asked first: the error; where the program's own IR begins to differ; the fact
that differs; where the optimised HLO begins to; at last what is said of the case. Values differ
otherwise in each case, where an IR begins to differ does not.
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
"""Something that a job shows, its kind first."""
Key = frozenset[Part]
"""What a job may have in common with others: each of it would do."""

_ID: Final = 12
"""Digits of an id."""
_OWN: Final = ("jaxpr", "stablehlo")
"""IRs of the program itself, in the order in which it is lowered."""
_OPTIMISED: Final = "hlo"
"""What the compiler made of it."""
_SAID: Final = "said"
"""The part of a key that tells least: what is said of a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """Unexpected jobs that have the same cause.

    Attributes:
        id: Stays the same from run to run, as long as what the jobs have in common does.
        reason: The first reason of the first job, empty if it has none.
        records: The jobs, by case and cell.
    """

    id: str
    reason: str
    records: tuple[Record, ...]

    @property
    def telling(self) -> bool:
        """Whether it says anything about JAX; a fault of the host does not."""
        return self.records[0].verdict is not Verdict.INFRA


def find_root_causes(
    records: Iterable[Record], evidence: Mapping[str, Evidence] | None = None
) -> tuple[RootCause, ...]:
    """Return what is unexpected, grouped by what is the same about it.

    Args:
        records: Judged records; also those that are as expected, for what they show is no cause.
        evidence: Results of triage, by cause id. Causes with the same first bad point and the same
            culprits become one, under the id of the largest.

    Returns:
        The causes: faults of the host first, for they hide what JAX does, then the largest.
    """
    # Jobs end in any order, and what is said of a cause must not depend on it.
    every = sorted(records, key=_job)
    common = _Common(every)
    asked = [one for one in every if one.unexpected or one.verdict is Verdict.INFRA]
    told = list(zip(asked, _fewest([common.of(record) for record in asked]), strict=True))
    beside = _beside(told)
    groups: dict[Part, list[Record]] = {}
    for record, part in told:
        groups.setdefault(beside.get(id(record), part), []).append(record)
    # The largest first: of causes that are merged, the first gives its id.
    causes = [
        RootCause(
            id=hashlib.sha256("\0".join(part).encode("utf-8", "surrogatepass")).hexdigest()[:_ID],
            reason=_reason(members[0]),
            records=tuple(members),
        )
        for part, members in sorted(groups.items(), key=lambda group: -len(group[1]))
    ]
    return _merge_by_culprit(causes, evidence or {})


def _job(record: Record) -> tuple[str, str]:
    return record.case, record.cell


def _merge_by_culprit(
    causes: Sequence[RootCause], evidence: Mapping[str, Evidence]
) -> tuple[RootCause, ...]:
    """Merge the causes for which triage confirmed the same first bad point and culprits."""
    groups: dict[object, list[RootCause]] = {}
    for cause in causes:
        groups.setdefault(make_culprit_key(cause.id, evidence), []).append(cause)
    merged = [
        replace(same[0], records=tuple(sorted(chain(*(cause.records for cause in same)), key=_job)))
        for same in groups.values()
    ]
    return tuple(sorted(merged, key=lambda cause: (cause.telling, -len(cause.records))))


def make_culprit_key(cause: str, evidence: Mapping[str, Evidence]) -> object:
    """Return a key that root causes share if triage found the same culprits for them.

    Args:
        cause: Id of a root cause.
        evidence: Results of triage, by cause id.
    """
    found = evidence.get(cause)
    # Without a confirmed culprit, two effects of one release may have two causes.
    if found is None or not found.confirmed or not found.culprits:
        return cause
    # A search may find the culprits in any order.
    return (found.last_good, found.first_bad, frozenset(found.culprits))


def _fewest(keys: Sequence[Key]) -> list[Part]:
    """Return for each key one of its parts, so that few different ones do for all of them.

    A program that two causes meet in shows what both do: it is told under the more frequent one.
    """
    of: dict[Part, list[int]] = {}
    for number, key in enumerate(keys):
        for part in key:
            of.setdefault(part, []).append(number)
    left = {part: len(numbers) for part, numbers in of.items()}
    chosen: dict[int, Part] = {}
    waiting = [(-count, part) for part, count in left.items()]
    heapq.heapify(waiting)
    while waiting:
        count, part = heapq.heappop(waiting)
        if -count != left[part]:  # some are told under another one by now
            heapq.heappush(waiting, (-left[part], part))
            continue
        for number in of[part] if count else ():
            if number not in chosen:
                chosen[number] = part
                for other in keys[number]:
                    left[other] -= 1
    return [chosen[number] for number in range(len(keys))]


def _beside(told: Sequence[tuple[Record, Part]]) -> dict[int, Part]:
    """Return under what else jobs are told that run no program of their own, by their identity.

    A probe shows no IR. What it shows is told under the one cause that its family has in the same
    cell, if there is one and no other: it is asked about on its own as soon as that is gone.
    """
    of: dict[tuple[str, str], set[Part]] = {}
    for record, part in told:
        if part[0] in record.ir:
            of.setdefault(_place(record), set()).add(part)
    return {
        id(record): next(iter(of[_place(record)]))
        for record, part in told
        if not record.ir and part[0] == _SAID and len(of.get(_place(record), ())) == 1
    }


def _place(record: Record) -> tuple[str, str]:
    return record.case.partition("/")[0], record.cell


def _reason(record: Record) -> str:
    return record.reasons[0] if record.reasons else ""


class _Common:
    """Tells what unexpected jobs of one root cause have in common.

    Args:
        records: All records.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        # Positive where more of the jobs that begin to differ there are unexpected than are not.
        self._tells: Counter[tuple[str, str]] = Counter()
        for record in records:
            sign = 1 if record.unexpected else -1
            for ir, kept in record.ir.items():
                self._tells.update(dict.fromkeys(((ir, one) for one in kept.begins), sign))

    def of(self, record: Record) -> Key:
        """Return what a job may have in common with the others of its cause."""
        reason = _reason(record).partition(IF_INTENDED)[0]
        said = (record.case.partition("[")[0], normalise_cause(reason))
        if record.verdict is Verdict.INFRA:
            return frozenset({("infra", reason)})
        if record.verdict is Verdict.FLAKY:
            return frozenset({("flaky", *said)})
        if record.error is not None:
            return frozenset({("error", record.error.signature or record.error.type)})
        for ir in _OWN:
            if found := self._begins(record, ir):
                return found
        if reason.startswith(FACT):
            return frozenset({("fact", reason)})
        return self._begins(record, _OPTIMISED) or frozenset({(_SAID, *said)})

    def _begins(self, record: Record, ir: str) -> Key:
        """Return where an IR begins to differ, but for what is as frequent where all is well."""
        kept = record.ir.get(ir)
        begins = kept.begins if kept is not None else ()
        return frozenset((ir, one) for one in begins if self._tells[ir, one] > 0)
