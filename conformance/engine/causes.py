"""Root causes: what is the same about unexpected jobs, of whatever case, cell and run. Pure."""

from __future__ import annotations

import hashlib
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

_ID: Final = 12
"""Digits of an id."""


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
        records: Judged records.

    Returns:
        The causes; faults of the host are among them.
    """
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        if unexpected(record) or record.verdict is Verdict.INFRA:
            groups.setdefault(_common(record), []).append(record)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(
        RootCause(id=_id(common), reason=_reason(members[0]), records=tuple(members))
        for common, members in ordered
    )


def _reason(record: Record) -> str:
    return record.reasons[0] if record.reasons else ""


def _id(common: tuple[str, ...]) -> str:
    text = "\0".join(common).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:_ID]


def _common(record: Record) -> tuple[str, ...]:
    """Return what unexpected jobs of one root cause have in common.

    The same error, and the same fact that differs, are one cause in whatever case. What else is
    said, of values above all, is one for the parametrisations of a case, whatever its numbers.
    """
    reason = _reason(record).partition(IF_INTENDED)[0]
    verdict = str(record.verdict)
    if record.verdict is Verdict.INFRA or reason.startswith(FACT):
        return verdict, reason
    if record.error is not None:
        return verdict, record.error.signature or record.error.type
    return verdict, record.case.partition("[")[0], cause_of(reason)
