"""Root causes: what is the same about unexpected jobs, of whatever case, cell and run. Pure.

What tells most is asked first: the error; where the program's own IR begins to differ; the fact
that differs; where the optimised HLO begins to; at last what is said of the case. Values differ
otherwise in each case, where an IR begins to differ does not.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.engine.runner import unexpected
from conformance.judge.errors import cause_of
from conformance.judge.ir import FACT
from conformance.judge.verdict import IF_INTENDED
from conformance.model.outcome import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.model.record import Record

Key = frozenset[tuple[str, ...]]

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
        records: The jobs.
    """

    id: str
    reason: str
    records: tuple[Record, ...]

    @property
    def telling(self) -> bool:
        """Whether it says anything about JAX; a fault of the host does not."""
        return self.records[0].verdict is not Verdict.INFRA


def root_causes(records: Iterable[Record]) -> tuple[RootCause, ...]:
    """Return what is unexpected, grouped by what is the same about it, largest group first.

    Args:
        records: Judged records; also those that are as expected, for what they show is no cause.

    Returns:
        The causes; faults of the host are among them.
    """
    every = list(records)
    common = _Common(every)
    keys = {
        id(record): common.of(record)
        for record in every
        if unexpected(record) or record.verdict is Verdict.INFRA
    }
    stands = _smallest(keys.values())
    told = [(record, stands[keys[id(record)]]) for record in every if id(record) in keys]
    beside = _beside(told)
    groups: dict[Key, list[Record]] = {}
    for record, key in told:
        groups.setdefault(beside.get(id(record), key), []).append(record)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(
        RootCause(id=_id(key), reason=_reason(members[0]), records=tuple(members))
        for key, members in ordered
    )


def _smallest(keys: Iterable[Key]) -> dict[Key, Key]:
    """Return for each key the most frequent of the smallest ones that are within it.

    A program that two causes meet in shows what both do: it is told under one of them.
    """
    count = Counter(keys)
    smallest = [key for key in count if not any(other < key for other in count)]
    return {
        key: max((one for one in smallest if one <= key), key=lambda one: count[one])
        for key in count
    }


def _beside(told: Iterable[tuple[Record, Key]]) -> dict[int, Key]:
    """Return under what else jobs are told that run no program of their own, by their identity.

    A probe shows no IR. What it shows is told under the one cause that its family has in the same
    cell, if there is one and no other: it is asked about on its own as soon as that is gone.
    """
    told = list(told)
    of: dict[tuple[str, str], set[Key]] = {}
    for record, key in told:
        if any(part[0] in record.ir for part in key):
            of.setdefault(_place(record), set()).add(key)
    return {
        id(record): next(iter(of[_place(record)]))
        for record, key in told
        if not record.ir and any(part[0] == _SAID for part in key)
        and len(of.get(_place(record), ())) == 1
    }  # fmt: skip


def _place(record: Record) -> tuple[str, str]:
    return record.case.partition("/")[0], record.cell


def _reason(record: Record) -> str:
    return record.reasons[0] if record.reasons else ""


def _id(key: Key) -> str:
    text = "\n".join("\0".join(part) for part in sorted(key)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:_ID]


class _Common:
    """Tells what unexpected jobs of one root cause have in common.

    Args:
        records: All records.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        # Positive where more of the jobs that begin to differ there are unexpected than are not.
        self._tells: Counter[tuple[str, str]] = Counter()
        for record in records:
            sign = 1 if unexpected(record) else -1
            for ir, kept in record.ir.items():
                self._tells.update(dict.fromkeys(((ir, one) for one in kept.begins), sign))

    def of(self, record: Record) -> Key:
        """Return what a job has in common with the others of its cause, part by part."""
        reason = _reason(record).partition(IF_INTENDED)[0]
        said = (record.case.partition("[")[0], cause_of(reason))
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
