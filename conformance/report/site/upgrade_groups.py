"""Groups of changes of an upgrade: their evidence, and the results of each case on the way."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.runs.stored_job import StoredJob
from conformance.engine.runs.transitions import ENDING, VALUE
from conformance.report.site.addresses import case_page, href, point_anchor, slug
from conformance.report.site.evidence import TextRun, align_sides, render_error
from conformance.report.site.strips import make_minor_ticks, make_upgrade_strip
from conformance.report.text import flatten
from conformance.report.tracebacks import collect_stacks
from conformance.triage.upgrade.effect import COST_METRICS, Effect, describe_outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.model.record import Record
    from conformance.report.report import Report
    from conformance.report.site.evidence import Row
    from conformance.report.site.strips import MinorTick, UpgradeSegment
    from conformance.report.tracebacks import Stack
    from conformance.report.upgrade.file import ChangeGroup, UpgradeChange, UpgradeFile

AT_ONCE: Final = 5
"""Lines of a message, and cases, that are shown unless more are asked for."""
PLAIN: Final = frozenset({ENDING, VALUE})
"""Artifacts that need no name, because their text identifies them."""
SHORT: Final = {
    Effect.BROKEN: "broken",
    Effect.WRONG: "silently wrong",
    Effect.VALUE: "other value",
    Effect.FACTS: "other facts",
    Effect.LARGER: "more work or memory",
    Effect.ENDING: "other error",
    Effect.FIXED: "fixed",
    Effect.UNCHANGED: "unchanged",
}
"""Effects in a word or two, for use next to a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """A case of a group.

    Attributes:
        case: Case id.
        address: Address of the change on the case's page, from the site's root; empty without a
            page.
        strip: Results on each release.
        before: Older side of the change, if it differs from that of the group.
        after: Newer side of the change, if it differs from that of the group.
        also: Other changes of the case on the way.
    """

    case: str
    address: str
    strip: tuple[UpgradeSegment, ...]
    before: str = ""
    after: str = ""
    also: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformRows:
    """The cases of a group on one platform.

    Attributes:
        platform: The platform.
        ticks: The minor versions along it.
        members: The cases that are shown at once.
        more: The others.
    """

    platform: str
    ticks: tuple[MinorTick, ...]
    members: tuple[MemberView, ...]
    more: tuple[MemberView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeGroupView:
    """Cases that one release changed in the same way.

    Attributes:
        anchor: Its anchor.
        effect: Effect of the upgrade on them.
        kind: Effect of the change itself in a word or two, if it is another.
        since: Release of the change, in words.
        before: Last release before the change.
        after: First release after it.
        what: Name of the artifact that is shown, empty if it needs none.
        rows: Both sides of the change, line by line.
        more: Further lines.
        count: Number of cases; a case on several platforms counts once.
        platforms: The cases, by platform.
        change: The change of the first case.
        stacks: Exceptions of the job that raised; empty unless the ending changed.
        raised_on: Release of that job.
    """

    anchor: str
    effect: Effect
    kind: str
    since: str
    before: str
    after: str
    what: str
    rows: tuple[Row, ...]
    more: tuple[Row, ...]
    count: int
    platforms: tuple[PlatformRows, ...]
    change: UpgradeChange
    stacks: tuple[Stack, ...] = ()
    raised_on: str = ""


def make_groups(report: Report, run: str) -> Iterator[UpgradeGroupView]:
    """Yield the groups of an upgrade, in its order.

    Args:
        report: The runs to report.
        run: Run id of the upgrade.
    """
    collector = _GroupCollector(report, run)
    yield from map(collector.group, collector.upgrade.groups, list_anchors(collector.upgrade))


def list_anchors(upgrade: UpgradeFile) -> list[str]:
    """Return the anchor of each group of an upgrade, in its order: `broken-1`, `broken-2`, ...

    Args:
        upgrade: The upgrade.
    """
    numbers: dict[Effect, int] = defaultdict(int)
    anchors = []
    for cause in upgrade.groups:
        numbers[cause.kind] += 1
        anchors.append(f"{cause.kind}-{numbers[cause.kind]}")
    return anchors


class _GroupCollector:
    """Collects the groups of an upgrade with their evidence.

    Args:
        report: The runs to report.
        run: Run id of the upgrade.
    """

    def __init__(self, report: Report, run: str) -> None:
        self.upgrade = report.upgrades[run]
        self._report = report
        self._axes = {axis.platform: axis.points for axis in self.upgrade.axes}
        self._jobs: dict[str, dict[str, Record]] = defaultdict(dict)
        self._run = next(one for one in report.runs if one.id == run)
        for record in self._run.records:
            self._jobs[record.case][record.cell] = record
        self._changes: dict[tuple[str, str], list[UpgradeChange]] = defaultdict(list)
        for change in self.upgrade.transitions:
            self._changes[change.case, change.platform].append(change)

    @cached_property
    def _places(self) -> dict[str, tuple[str, str]]:
        """Name of the track and label of each cell, as case pages have them."""
        return {
            cell.id: (track.name, cell.label)
            for track in self._report.tracks
            for cell in track.cells
        }

    @cached_property
    def _releases(self) -> dict[str, str]:
        return {cell.id: cell.release for cell in self._report.cells}

    def group(self, cause: ChangeGroup, anchor: str) -> UpgradeGroupView:
        """Return a group with its evidence.

        Args:
            cause: The group in the file of the upgrade.
            anchor: Its anchor.
        """
        changes = [self.upgrade.transitions[place] for place in cause.transitions]
        first = changes[0]
        rows = self._compare_sides(first)
        name = first.artifact.replace("_", " ")
        return UpgradeGroupView(
            anchor=anchor,
            effect=cause.kind,
            kind="" if first.kind is cause.kind else SHORT[first.kind],
            since=self._describe_release(first, cause),
            before=first.last,
            after=first.changed_in,
            what="" if first.artifact in PLAIN else COST_METRICS.get(first.artifact, name),
            rows=rows[:AT_ONCE],
            more=rows[AT_ONCE:],
            count=len({change.case for change in changes}),
            platforms=tuple(self._make_platforms(changes)),
            change=first,
            **self._find_raised(first),
        )

    def _find_raised(self, change: UpgradeChange) -> dict[str, Any]:
        """Return the exceptions of the newer job that raised, if the ending changed."""
        sides = zip(reversed(change.cells), (change.changed_in, change.last), strict=True)
        for cell, release in sides if change.artifact == ENDING else ():
            job = self._jobs[change.case].get(cell)
            if job is not None and job.error is not None:
                stacks = collect_stacks(StoredJob(job, self._run.blobs), self._report.roots)
                return {"stacks": stacks, "raised_on": release}
        return {}

    def _describe_release(self, change: UpgradeChange, cause: ChangeGroup) -> str:
        labels = [point.label for point in self._axes.get(change.platform, ())]
        # Releases in between could not be tried: any of them may have made the change.
        ends = change.last, change.changed_in
        if ends not in pairwise(labels):
            return f"after {change.last}, by {change.changed_in}"
        return f"{'in' if cause.kind is Effect.UNCHANGED else 'since'} {change.changed_in}"

    def _compare_sides(self, change: UpgradeChange) -> tuple[Row, ...]:
        """Return both sides of a change, line by line."""
        before, after = change.cells
        return _align_rows(
            self._describe_side(change, before, change.before),
            self._describe_side(change, after, change.after),
        )

    def _describe_side(self, change: UpgradeChange, cell: str, summary: str) -> tuple[str, ...]:
        """Return the text of one side: the whole message of an ending, otherwise its summary."""
        # The file of an upgrade has messages in a line; the whole message is in the run's record.
        job = self._jobs[change.case].get(cell)
        if change.artifact != ENDING or job is None:
            return (_format_side(change, summary),)
        return render_error(job) or (describe_outcome(job),)

    def _make_platforms(self, changes: list[UpgradeChange]) -> Iterator[PlatformRows]:
        first = changes[0]
        for platform, points in self._axes.items():
            found = [change for change in changes if change.platform == platform]
            if not found:
                continue
            members = tuple(self._make_member(change, first) for change in found)
            yield PlatformRows(
                platform=platform,
                ticks=make_minor_ticks(points, self._releases),
                members=members[:AT_ONCE],
                more=members[AT_ONCE:],
            )

    def _make_member(self, change: UpgradeChange, first: UpgradeChange) -> MemberView:
        changes = self._changes[change.case, change.platform]
        points, jobs = self._axes[change.platform], self._jobs[change.case]
        return MemberView(
            case=change.case,
            address=self._find_address(change),
            strip=make_upgrade_strip(points, jobs, changes),
            before=_format_side(change, change.before) if change.before != first.before else "",
            after=_format_side(change, change.after) if change.after != first.after else "",
            also=_describe_others(changes, change),
        )

    def _find_address(self, change: UpgradeChange) -> str:
        """Return the address of a change on its case's page, or of the track or the page."""
        # The run may have been copied in part: an upgrade then has cases without a page.
        if change.case not in self._report.cases:
            return ""
        track, label = self._places.get(change.cells[1], ("", ""))
        history = self._report.timelines(change.case).get(track)
        if history is None:
            return href(case_page(change.case))
        # Without an anchor for the change, the link leads to the track.
        has_point = any(point.after.record.cell == change.cells[1] for point in history.points)
        return href(
            case_page(change.case), point_anchor(track, label) if has_point else slug(track)
        )


def _format_side(change: UpgradeChange, summary: str) -> str:
    """Return the summary of one side, with readable large numbers."""
    return (
        f"{int(summary):,}" if change.artifact in COST_METRICS and summary.isdecimal() else summary
    )


def _align_rows(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[Row, ...]:
    """Return the lines of both sides, with marks only if any two lines have words in common."""
    # Marks on every word of two unrelated texts would distinguish nothing.
    rows = align_sides(before, after)
    if any(one is not None and other is not None for one, other in rows):
        return rows
    return tuple(
        (_make_plain(one), _make_plain(other)) for one, other in zip_longest(before, after)
    )


def _make_plain(line: str | None) -> tuple[TextRun, ...] | None:
    return None if line is None else (TextRun(text=flatten(line), differs=False),)


def _describe_others(changes: Iterable[UpgradeChange], decisive: UpgradeChange) -> str:
    """Return the other changes of a case on the way, by effect."""
    found: dict[Effect, list[str]] = {}
    for change in changes:
        if change is not decisive:
            found.setdefault(change.kind, []).append(flatten(change.changed_in))
    return "; ".join(f"{SHORT[effect]} in {', '.join(labels)}" for effect, labels in found.items())
