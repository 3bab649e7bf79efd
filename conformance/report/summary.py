"""Records in numbers: counts, and groups of what is unexpected."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.ir.graph import kind_of_artifact
from conformance.model.case import Policy
from conformance.model.outcome import Verdict
from conformance.model.record import IrStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.model.record import Record
    from conformance.model.run import RunCase


def counts(records: Iterable[Record]) -> dict[str, int]:
    """Return how many records have each verdict, in the order of the verdicts."""
    found = Counter(record.verdict for record in records)
    return {str(verdict): found[verdict] for verdict in Verdict if found[verdict]}


@dataclass(frozen=True, slots=True, kw_only=True)
class IrGroup:
    """Jobs whose IR of one kind differs from its golden in the same way.

    Attributes:
        ir: The artifact, e.g. `stablehlo` or `stablehlo-tpu`.
        policy: What such a change does to a run.
        changes: How it differs, one line for each pattern.
        records: The jobs.
    """

    ir: str
    policy: Policy
    changes: tuple[str, ...]
    records: list[Record]


def group_irs(cases: Mapping[str, RunCase], records: Iterable[Record]) -> list[IrGroup]:
    """Return the IRs that changed, grouped by how, what warns first, then the largest group.

    What is lowered for another platform and changed as the cell's own StableHLO did is left out.

    Args:
        cases: The cases by id, for their policies.
        records: Judged records.
    """
    groups: dict[tuple[str, Policy, tuple[str, ...]], list[Record]] = {}
    for record in records:
        for ir, kept in record.ir.items():
            policy = cases[record.case].policy_of(ir)
            if kept.status is IrStatus.CHANGED and not _repeats(record, ir, policy, cases):
                groups.setdefault((ir, policy, kept.changes), []).append(record)
    made = [
        IrGroup(ir=ir, policy=policy, changes=changes, records=members)
        for (ir, policy, changes), members in groups.items()
    ]
    order = list(Policy)
    return sorted(made, key=lambda group: (order.index(group.policy), -len(group.records)))


def _repeats(record: Record, ir: str, policy: Policy, cases: Mapping[str, RunCase]) -> bool:
    """Say whether what changed in a cross-lowered StableHLO is told of the cell's own already."""
    own = kind_of_artifact(ir)
    if own == ir or own not in record.ir:
        return False
    told = record.ir[own]
    same = told.status is IrStatus.CHANGED and told.changes == record.ir[ir].changes
    return same and cases[record.case].policy_of(own) is policy


def count_understood(records: Iterable[Record]) -> tuple[int, int]:
    """Return how many IRs were looked at, and how many of them were understood to the last word."""
    kept = [ir for record in records for ir in record.ir.values()]
    return len(kept), sum(not ir.not_understood for ir in kept)
