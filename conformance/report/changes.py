"""Changes of releases, grouped: the same change of many cases or tracks is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.engine.transitions import ENDING, TransitionKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.transitions import Transition
    from conformance.model.record import Record
    from conformance.report.report import Report

GRAVEST_FIRST: Final = (TransitionKind.REGRESSED, TransitionKind.CHANGED, TransitionKind.FIXED)
"""Changes that are told, in the order they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseChange:
    """The common part of equal changes between releases.

    Attributes:
        kind: What they are.
        release: The release that changed; the cell's id where it is not known.
        artifacts: What differs, by name.
        endings: How the jobs ended before it and end since, where that differs; the type of error
            twice where the message alone does.
    """

    kind: TransitionKind
    release: str
    artifacts: tuple[str, ...]
    endings: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseChangeGroup:
    """A change, and where it is seen.

    Attributes:
        change: The change.
        cases: Case ids, in order.
        tracks: Names of tracks, in order.
        points: How often it is seen.
    """

    change: ReleaseChange
    cases: tuple[str, ...]
    tracks: tuple[str, ...]
    points: int


def collect_changes(report: Report) -> list[ReleaseChangeGroup]:
    """Return the changes of releases, the gravest first, then the most frequent.

    Args:
        report: The runs to report.
    """
    releases = {cell.id: cell.label for cell in report.cells}
    found: dict[ReleaseChange, list[tuple[str, str]]] = {}
    for case, track, point in report.points():
        if point.kind in GRAVEST_FIRST:
            found.setdefault(_change(point, releases), []).append((case, track))
    made = [
        ReleaseChangeGroup(
            change=change,
            cases=tuple(dict.fromkeys(case for case, _ in seen)),
            tracks=tuple(dict.fromkeys(track for _, track in seen)),
            points=len(seen),
        )
        for change, seen in found.items()
    ]
    return sorted(made, key=lambda group: (GRAVEST_FIRST.index(group.change.kind), -group.points))


def _change(point: Transition, releases: Mapping[str, str]) -> ReleaseChange:
    before, after = point.before.record, point.after.record
    release = releases.get(after.cell, after.cell)
    if ENDING not in point.changed:
        return ReleaseChange(kind=point.kind, release=release, artifacts=point.changed)
    # What else differs follows from how jobs ended, and would only part what belongs together.
    endings = _endings(before, after)
    return ReleaseChange(kind=point.kind, release=release, artifacts=(ENDING,), endings=endings)


def _endings(before: Record, after: Record) -> tuple[str, str]:
    if before.error and after.error and before.error.type == after.error.type:
        return before.error.type, after.error.type
    return _ending(before), _ending(after)


def _ending(record: Record) -> str:
    return str(record.outcome) if record.error is None else record.error.signature
