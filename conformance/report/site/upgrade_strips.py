"""The axis of an upgrade, drawn: what each release that was tried showed, and which were not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.model.outcome import Outcome
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.model.record import Record
    from conformance.report.upgrade_file import UpgradeChange, UpgradePoint
    from conformance.triage.upgrade.effect import Effect

DIED: Final = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY})
NOT_TRIED: Final = "not tried"
WORD: Final = 60
"""Characters of the name of an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Neighbouring releases that show the same, or were not tried.

    Attributes:
        first: The oldest.
        last: The newest.
        length: How many there are.
        fill: What they are filled in with, as the style sheet has it; empty if not tried.
        said: What they show, in words.
        begins: What the change does that it begins with; None where there is none.
        turned: Whether an odd number of changes came before: what changes, and is filled in
            alike, is told apart by that.
    """

    first: str
    last: str
    length: int
    fill: str
    said: str
    begins: Effect | None = None
    turned: bool = False

    @property
    def range(self) -> str:
        """The releases, as they are told."""
        return self.first if self.length == 1 else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class Tick:
    """Neighbouring releases of one minor version."""

    label: str
    length: int


def make_ticks(points: Sequence[UpgradePoint], releases: Mapping[str, str]) -> tuple[Tick, ...]:
    """Return the minor versions along an axis.

    Args:
        points: The places of the axis.
        releases: Release of jax by cell id, as far as is known.
    """
    minors = [_find_minor(releases.get(point.cell, "") or point.label) for point in points]
    return tuple(Tick(label, len([*same])) for label, same in groupby(minors))


def _find_minor(release: str) -> str:
    try:
        version = Version(release)
    except ValueError:
        return flatten(release)
    return f"{version.major}.{version.minor}"


def make_strip(
    points: Sequence[UpgradePoint], seen: Mapping[str, Record], changes: Sequence[UpgradeChange]
) -> tuple[Part, ...]:
    """Return what a case did along an axis.

    Args:
        points: The places of the axis.
        seen: Its jobs, by cell id.
        changes: Its changes.
    """
    begins = {change.changed_in: change.kind for change in changes}
    turns = list(accumulate(point.label in begins for point in points))
    shown = [_describe_job(seen.get(point.cell)) for point in points]
    parts = []
    for _, places in groupby(range(len(points)), lambda n: (shown[n], turns[n] if shown[n] else 0)):
        first, *more = places
        found = shown[first]
        fill, said = found or ("", NOT_TRIED)
        parts.append(
            Part(
                first=flatten(points[first].label),
                last=flatten(points[more[-1] if more else first].label),
                length=1 + len(more),
                fill=fill,
                said=said,
                begins=begins.get(points[first].label) if found else None,
                turned=bool(found) and turns[first] % 2 == 1,
            )
        )
    return tuple(parts)


def _describe_job(record: Record | None) -> tuple[str, str] | None:
    """Return what a job is filled in with, and what is said of it; None where there is none."""
    if record is None:
        return None
    outcome, conformance = record.outcome, record.conformance
    error = "" if record.error is None else flatten(record.error.type, WORD)
    said = str(outcome).replace("_", " ") + (f" {error}" if error else "")
    if not outcome.observed:
        return ("infra" if outcome is Outcome.INFRA else "none"), said
    fill = "died" if outcome in DIED else f"{outcome} {conformance}"
    return fill, f"{said}, {conformance}"
