"""Excluded and unsupported jobs, grouped by reason."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.model.outcome import Verdict
from conformance.model.run import Exclusion
from conformance.report.text import listed
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.model.record import Record


EVERY: Final = "every case"
"""What is said where a whole cell was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionGroup:
    """Jobs excluded for one reason: their number, cases and cells."""

    reason: str
    pairs: int
    cases: tuple[str, ...]
    cells: tuple[str, ...]


def find_unsupported(records: Iterable[Record]) -> list[Exclusion]:
    """Return the jobs that ended as excluded, for the cell could not express them."""
    return [
        Exclusion(case=record.case, cell=record.cell, reason="; ".join(record.reasons))
        for record in records
        if record.verdict is Verdict.EXCLUDED
    ]


def render_exclusions(exclusions: Iterable[Exclusion]) -> list[str]:
    """Return the exclusions in a few lines, grouped by what is left out and why."""
    groups: dict[tuple[str, str], list[str]] = {}
    for exclusion in exclusions:
        groups.setdefault((exclusion.case, _shorten_reason(exclusion)), []).append(exclusion.cell)
    by_reason: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for (case, reason), cells in groups.items():
        by_reason.setdefault((tuple(cells), reason), []).append(case)
    lines = []
    for (where, reason), cases in by_reason.items():
        what = cases[0] if len(cases) == 1 else plural(len(cases), "case")
        lines.append(f"excluded {what or 'all cases'} on {listed(where)}: {reason}")
    return lines


def group_exclusions(exclusions: Iterable[Exclusion]) -> list[ExclusionGroup]:
    """Return excluded jobs by reason, the most frequent first.

    Args:
        exclusions: Each pair.
    """
    groups: dict[str, list[Exclusion]] = defaultdict(list)
    for exclusion in exclusions:
        groups[_shorten_reason(exclusion)].append(exclusion)
    made = [
        ExclusionGroup(
            reason=reason,
            pairs=len(found),
            cases=tuple(dict.fromkeys(e.case or EVERY for e in found)),
            cells=tuple(dict.fromkeys(e.cell for e in found)),
        )
        for reason, found in groups.items()
    ]
    return sorted(made, key=lambda group: -group.pairs)


def _shorten_reason(exclusion: Exclusion) -> str:
    """Return a reason without what is said of the very cell."""
    return exclusion.reason.partition(", the cell ")[0]
