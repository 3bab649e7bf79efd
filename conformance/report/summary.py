"""Summaries of records: counts, groups of changed IRs and of exclusions, and notes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.ir.graph import kind_of_artifact
from conformance.model.case import Policy
from conformance.model.outcome import Verdict
from conformance.model.record import IrStatus
from conformance.model.run import Exclusion
from conformance.report.grouping import group_by
from conformance.report.text import LISTED, join_names, name_or_count, sanitize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.model.record import Record
    from conformance.model.run import RunCase, RunCell
    from conformance.report.report import Report

EVERY: Final = "every case"
"""Name of the cases of an exclusion that excludes a whole cell."""


def count_verdicts(records: Iterable[Record]) -> dict[str, int]:
    """Return how many records have each verdict, in the order of the verdicts."""
    counts = Counter(record.verdict for record in records)
    return {str(verdict): counts[verdict] for verdict in Verdict if counts[verdict]}


def count_understood(records: Iterable[Record]) -> tuple[int, int]:
    """Return the number of IRs, and of those in which every word was understood."""
    irs = [ir for record in records for ir in record.ir.values()]
    return len(irs), sum(not ir.not_understood for ir in irs)


@dataclass(frozen=True, slots=True, kw_only=True)
class IrGroup:
    """Jobs whose IR of one kind differs from its golden in the same way.

    Attributes:
        ir: The artifact, e.g. `stablehlo` or `stablehlo-tpu`.
        policy: The effect of such a change on a run.
        changes: How it differs, one line for each pattern.
        records: The jobs.
    """

    ir: str
    policy: Policy
    changes: tuple[str, ...]
    records: list[Record]


def group_irs(cases: Mapping[str, RunCase], records: Iterable[Record]) -> list[IrGroup]:
    """Return the IRs that changed, grouped by their changes: by policy, the largest group first.

    A cross-lowered StableHLO that changed like the cell's own is left out.

    Args:
        cases: The cases by id, for their policies.
        records: Judged records.
    """
    groups: dict[tuple[str, Policy, tuple[str, ...]], list[Record]] = {}
    for record in records:
        for ir, result in record.ir.items():
            policy = cases[record.case].policy_of(ir)
            if result.status is IrStatus.CHANGED and not _repeats_own(record, ir, policy, cases):
                groups.setdefault((ir, policy, result.changes), []).append(record)
    # Policies are declared in the order of their severity: gate, warn, inform.
    order = list(Policy)
    made = [
        IrGroup(ir=ir, policy=policy, changes=changes, records=members)
        for (ir, policy, changes), members in groups.items()
    ]
    return sorted(made, key=lambda group: (order.index(group.policy), -len(group.records)))


def _repeats_own(record: Record, ir: str, policy: Policy, cases: Mapping[str, RunCase]) -> bool:
    """Return whether a cross-lowered StableHLO changed as the cell's own StableHLO did."""
    own = kind_of_artifact(ir)
    if own == ir or own not in record.ir:
        return False
    status = record.ir[own]
    same = status.status is IrStatus.CHANGED and status.changes == record.ir[ir].changes
    # If the cell's own change only informs, the same change that warns must still be shown.
    return same and cases[record.case].policy_of(own) is policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionGroup:
    """Jobs excluded for one reason: their number, cases and cells."""

    reason: str
    pairs: int
    cases: tuple[str, ...]
    cells: tuple[str, ...]


def find_unsupported(records: Iterable[Record]) -> list[Exclusion]:
    """Return the jobs that were excluded at run time because their cell cannot express them."""
    return [
        Exclusion(case=record.case, cell=record.cell, reason="; ".join(record.reasons))
        for record in records
        if record.verdict is Verdict.EXCLUDED
    ]


def group_exclusions(exclusions: Iterable[Exclusion]) -> list[ExclusionGroup]:
    """Return excluded jobs by reason, the most frequent first.

    Args:
        exclusions: An exclusion for each pair of case and cell.
    """
    groups = [
        ExclusionGroup(
            reason=reason,
            pairs=len(members),
            cases=tuple(dict.fromkeys(member.case or EVERY for member in members)),
            cells=tuple(dict.fromkeys(member.cell for member in members)),
        )
        for reason, members in group_by(exclusions, key=_shorten_reason).items()
    ]
    return sorted(groups, key=lambda group: -group.pairs)


def render_exclusions(exclusions: Iterable[Exclusion]) -> list[str]:
    """Return a line for each reason and set of cells, with the excluded cases."""
    by_case = group_by(
        exclusions, key=lambda exclusion: (exclusion.case, _shorten_reason(exclusion))
    )
    places = [
        (tuple(member.cell for member in members), reason, case)
        for (case, reason), members in by_case.items()
    ]
    return [
        f"excluded {name_or_count([case for *_, case in members], 'case') or 'all cases'} "
        f"on {join_names(cells)}: {reason}"
        for (cells, reason), members in group_by(places, key=lambda place: place[:2]).items()
    ]


def _shorten_reason(exclusion: Exclusion) -> str:
    """Return a reason without its last part, which names the cell, so that cells share a line."""
    # The plan writes e.g. `applies to jax>=0.6, the cell has 0.5.3`.
    return exclusion.reason.partition(", the cell ")[0]


def collect_notes(records: Iterable[Record]) -> list[str]:
    """Return the notes of jobs, a line each, the longest jobs first.

    Args:
        records: Jobs of any runs.
    """
    # Most notes are about jobs near their timeout, so the longest jobs are the important ones.
    noted = sorted(
        (record for record in records if record.notes),
        key=lambda record: -record.seconds.get("job", 0.0),
    )
    return [sanitize(f"{job.case} on {job.cell} {note}") for job in noted for note in job.notes]


def render_notes(records: Iterable[Record]) -> list[str]:
    """Return the first notes of jobs, with how many more there are.

    Args:
        records: Jobs of any runs.
    """
    lines = [f"note: {line}" for line in collect_notes(records)]
    more = len(lines) - LISTED
    return [*lines[:LISTED], f"note: and {more} more like these"] if more > 0 else lines


def collect_cell_notes(cells: Iterable[RunCell]) -> list[str]:
    """Return the notes of cells, a line each.

    Args:
        cells: Cells of any runs.
    """
    return [sanitize(f"{cell.id}: {cell.note}") for cell in cells if cell.note]


def render_exit(report: Report) -> list[str]:
    """Return a line with the exit status of a run and its reason, if the run has a reason.

    Args:
        report: The report.
    """
    reason = report.exit_reason
    return [f"exit status {report.runs[0].info.exit}: {reason}"] if reason else []
