"""A case's page: its description, its history on every track, and changes with their evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.cache.blobs import CorruptBlobError
from conformance.engine.cache.differences import make_ir_pair
from conformance.engine.runs.stored_job import load_value
from conformance.engine.runs.transitions import ENDING, FACTS, VALUE, TransitionKind
from conformance.ir.graph import CROSS_LOWERED, IRS
from conformance.model.observation import FALSIFYING
from conformance.model.upstream import find_thread_url
from conformance.model.value import CorruptValueError
from conformance.report.ir_differences import FactRow, compare_facts
from conformance.report.site.addresses import PERFORMANCE, case_page, point_anchor, slug
from conformance.report.site.evidence import (
    Excerpt,
    Row,
    ValuePlot,
    align_sides,
    make_excerpt,
    make_value_plots,
    render_ending,
)
from conformance.report.site.rendering import render
from conformance.report.site.strips import Strip, make_strip
from conformance.report.suites.results import collect_warnings
from conformance.report.text import make_rerun_command
from conformance.report.tracebacks import collect_stacks

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from conformance.engine.cache.differences import CachedDiff, IrPair
    from conformance.engine.runs.stored_job import StoredJob
    from conformance.engine.runs.transitions import Timeline, Transition
    from conformance.model.record import Record
    from conformance.model.run import Exclusion
    from conformance.report.report import Report
    from conformance.report.site.causes_page import CauseView
    from conformance.report.site.upgrade_page import Mention
    from conformance.report.tracebacks import Stack
    from conformance.report.tracks import Track

    Differ = Callable[[IrPair], CachedDiff]

ARTIFACTS: Final = (ENDING, VALUE, FACTS, *IRS, *CROSS_LOWERED)
"""Rows of a history, in their order."""
FACT_ROWS: Final = 12
PATTERNS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class IrChange:
    """How an IR changed.

    Attributes:
        ir: The artifact.
        patterns: The gravest patterns, with an excerpt for each.
        more: Number of further patterns.
        problem: Why the IRs were not compared, empty if they were.
        shown_at: Anchor of an equal change that is shown in full, empty if this one is.
        shown_on: Track and release of that change.
    """

    ir: str
    patterns: tuple[Excerpt, ...] = ()
    more: int = 0
    problem: str = ""
    shown_at: str = ""
    shown_on: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointView:
    """A change between two releases, with its evidence.

    Attributes:
        anchor: Its anchor.
        before: The last release before the change.
        after: The first release after it.
        cells: Ids of their cells.
        kind: Kind of the change.
        changed: Names of the artifacts that differ.
        regrouped: IRs that do the same work, grouped otherwise.
        endings: Outcomes and errors of both jobs, line by line; empty if equal.
        values: Differences of the values, a sentence for each.
        plots: Distances of their elements, a plot for each leaf.
        facts: Facts that gate and differ.
        more_facts: Number of further facts that differ.
        irs: IRs that differ.
        command: Command that compares both cells again.
    """

    anchor: str
    before: str
    after: str
    cells: tuple[str, str]
    kind: TransitionKind
    changed: tuple[str, ...]
    regrouped: tuple[str, ...]
    endings: tuple[Row, ...] = ()
    values: tuple[str, ...] = ()
    plots: tuple[ValuePlot, ...] = ()
    facts: tuple[FactRow, ...] = ()
    more_facts: int = 0
    irs: tuple[IrChange, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTrack:
    """A case's history on one track.

    Attributes:
        name: The track.
        anchor: Its anchor.
        strips: A row for the verdicts, and one for each artifact.
        points: Changes, the newest first.
        jobs: Every job, the newest first, with its release.
        command: Command that reruns the newest job.
        falsifying: Hypothesis examples that fail, each with its releases: releases, then text.
        raised_on: Newest release whose job raised, empty if none did.
        stacks: Exceptions of that job, unless a root cause on the page shows them.
    """

    name: str
    anchor: str
    strips: tuple[Strip, ...]
    points: tuple[PointView, ...]
    jobs: tuple[tuple[str, Record], ...]
    command: str
    falsifying: tuple[tuple[str, str], ...] = ()
    raised_on: str = ""
    stacks: tuple[Stack, ...] = ()


def collect_pairs(report: Report) -> Iterator[IrPair]:
    """Yield the pairs of IRs of all change points, which case pages compare.

    Args:
        report: The runs to report.
    """
    # Known before any page is made, so that other processes compare them meanwhile.
    for _, _, point in report.points():
        yield from (make_ir_pair(point.before, point.after, ir) for ir in _list_irs(point))


def render_case_pages(
    report: Report,
    differ: Differ,
    history: Mapping[str, Any] | None = None,
    upgrades: Mapping[str, Sequence[Mention]] | None = None,
    causes: Mapping[str, Sequence[CauseView]] | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Yield the page of every case.

    Args:
        report: The runs to report.
        differ: Compares two texts of an IR.
        history: Histories over runs, by case id.
        upgrades: Effects of upgrades, by case id.
        causes: Root causes of unexpected jobs, by case id.

    Yields:
        Path below the site's root, and content.
    """
    left_out: dict[str, list[Exclusion]] = {}
    for exclusion in report.exclusions:
        left_out.setdefault(exclusion.case, []).append(exclusion)
    measured = {one.case for one in report.bench.series} if report.bench else set()
    for name, case in report.cases.items():
        page = case_page(name)
        data = {
            "name": name,
            "case": case,
            "upstream": find_thread_url(case.source),
            "tracks": _make_tracks(report, name, differ, (causes or {}).get(name, ())),
            "exclusions": left_out.get(name, []),
            "history": (history or {}).get(name),
            "upgrades": (upgrades or {}).get(name, ()),
            "causes": (causes or {}).get(name, ()),
            "warnings": collect_warnings(report.sides(name), report.cells),
            "performance": PERFORMANCE if name in measured else "",
        }
        yield page, render("case.html", page, data)


def _make_tracks(
    report: Report, name: str, differ: Differ, causes: Sequence[CauseView]
) -> list[CaseTrack]:
    timelines = report.timelines(name)
    shown = {one.record.cell for one in causes}

    def again(*cells: str) -> str:
        return make_rerun_command(name, report.cases[name], *map(report.selector, cells))

    evidence = _EvidenceCollector(differ, {run.info.root for run in report.runs}, again)
    return [
        replace(
            _make_track(again, track, timelines[track.name], evidence),
            **_find_raised(track, timelines[track.name], report, shown),
        )
        for track in report.tracks
        if track.name in timelines
    ]


def _find_raised(
    track: Track, history: Timeline, report: Report, shown: Container[str]
) -> dict[str, Any]:
    """Return the exceptions of the newest job that raised, unless the page shows its root cause.

    Args:
        track: The cells of the page.
        history: The jobs of these cells.
        report: The report.
        shown: Ids of the cells whose root cause the page shows.
    """
    for cell, job in zip(reversed(track.compared_cells), reversed(history.jobs), strict=True):
        # The newest alone: the errors of older releases are shown with the changes.
        if job is not None and (stacks := collect_stacks(job, report.roots)):
            return {} if cell.id in shown else {"raised_on": cell.label, "stacks": stacks}
    return {}


def _make_track(
    again: Callable[..., str], track: Track, history: Timeline, evidence: _EvidenceCollector
) -> CaseTrack:
    releases = track.labels
    by_cell = dict(zip((cell.id for cell in track.compared_cells), releases, strict=True))
    newest_first = reversed(history.points)
    jobs = [
        (release, job.record)
        for release, job in zip(releases, history.jobs, strict=True)
        if job is not None
    ]
    return CaseTrack(
        name=track.name,
        anchor=slug(track.name),
        strips=tuple(make_strip(row, history, track) for row in ("verdict", *_list_rows(history))),
        points=tuple(evidence.collect(point, track.name, by_cell) for point in newest_first),
        jobs=tuple(reversed(jobs)),
        command=again(jobs[-1][1].cell),
        falsifying=_collect_falsifying(zip(releases, history.jobs, strict=True)),
    )


def _collect_falsifying(
    jobs: Iterable[tuple[str, StoredJob | None]],
) -> tuple[tuple[str, str], ...]:
    """Return the distinct examples that fail, the newest first, each with its releases."""
    found: dict[str, list[str]] = {}
    for release, side in jobs:
        # Hypothesis shrinks an example to a minimum, often the same one on several releases.
        if side is not None and FALSIFYING in side.record.artifacts:
            found.setdefault(_read_text(side, FALSIFYING), []).append(release)
    return tuple((", ".join(releases), text) for text, releases in reversed(found.items()))


def _read_text(side: StoredJob, artifact: str) -> str:
    try:
        return side.blobs.get(side.record.artifacts[artifact]).decode("utf-8", "replace")
    except CorruptBlobError as error:
        return str(error)


def _list_rows(history: Timeline) -> list[str]:
    """Return the artifacts that any job of a history has, in their order."""
    # Every job has an ending, even one that failed before its first artifact.
    names = {ENDING}
    for job in history.jobs:
        if job is not None:
            names.update(job.record.ir)
            names.update([VALUE] if VALUE in job.record.artifacts else [])
            names.update([FACTS] if job.record.facts else [])
    return [name for name in ARTIFACTS if name in names]


class _EvidenceCollector:
    """Collects the evidence of the changes of a page; repeated evidence becomes a reference.

    Args:
        differ: Compares two texts of an IR.
        roots: Folders of projects; paths are shown relative to them.
        again: Returns the command that reruns the case in some cells.
    """

    def __init__(self, differ: Differ, roots: Iterable[str], again: Callable[..., str]) -> None:
        self._differ = differ
        self._again = again
        self._roots = tuple(roots)
        self._shown: dict[tuple[object, ...], tuple[str, str]] = {}
        """Anchor and place of each difference that was shown in full, by IR and patterns."""

    def collect(self, point: Transition, track: str, releases: Mapping[str, str]) -> PointView:
        """Return a change with its evidence.

        Args:
            point: The change.
            track: Name of its track.
            releases: Release by cell id.
        """
        before, after = point.before, point.after
        cells = before.record.cell, after.record.cell
        anchor = point_anchor(track, releases[cells[1]])
        gating, others = _compare_facts(point)
        return PointView(
            anchor=anchor,
            before=releases[cells[0]],
            after=releases[cells[1]],
            cells=cells,
            kind=point.kind,
            changed=point.changed,
            regrouped=point.regrouped,
            endings=_compare_endings(point),
            values=_describe_values(point),
            plots=_make_plots(before, after) if VALUE in point.changed else (),
            facts=gating[:FACT_ROWS],
            more_facts=others + max(0, len(gating) - FACT_ROWS),
            irs=tuple(self._compare_ir(point, ir, anchor, track) for ir in _list_irs(point)),
            command=self._again(*cells),
        )

    def _compare_ir(self, point: Transition, ir: str, anchor: str, track: str) -> IrChange:
        diff = self._differ(make_ir_pair(point.before, point.after, ir))
        if diff.problem:
            return IrChange(ir=ir, problem=diff.problem)
        # An edit of a lowering changes many tracks alike: each page shows it once.
        key = (ir, *diff.changes)
        if key in self._shown:
            at, on = self._shown[key]
            return IrChange(ir=ir, shown_at=at, shown_on=on)
        self._shown[key] = (f"{anchor}.{ir}", f"{track} at {anchor.partition('@')[2]}")
        case = point.after.record.case
        shown = diff.changes[:PATTERNS]
        patterns = tuple(make_excerpt(change, case, self._roots) for change in shown)
        return IrChange(ir=ir, patterns=patterns, more=len(diff.changes) - len(patterns))


def _list_irs(point: Transition) -> list[str]:
    return [name for name in point.changed if name in point.before.record.ir]


def _compare_endings(point: Transition) -> tuple[Row, ...]:
    # A fix or regression may have equal endings: the conformance, which is in the first line,
    # differs.
    if ENDING not in point.changed and point.kind in {TransitionKind.SAME, TransitionKind.CHANGED}:
        return ()
    return align_sides(*(render_ending(side.record) for side in (point.before, point.after)))


def _describe_values(point: Transition) -> tuple[str, ...]:
    if VALUE not in point.changed or point.value is None:
        return ()
    # The judge words its comparisons for goldens; here the other side is the release before.
    return tuple(text.replace("golden", "before") for text in point.value.messages)


def _make_plots(before: StoredJob, after: StoredJob) -> tuple[ValuePlot, ...]:
    try:
        return make_value_plots(load_value(before), load_value(after))
    except (CorruptBlobError, CorruptValueError):  # a damaged blob costs the plot, not the page
        return ()


def _compare_facts(point: Transition) -> tuple[tuple[FactRow, ...], int]:
    """Return the facts that gate and differ, and the number of other facts that differ."""
    if FACTS not in point.changed:
        return (), 0
    rows = compare_facts(point.before.record.facts, point.after.record.facts)
    gating = tuple(row for row in rows if row.gates)
    return gating, len(rows) - len(gating)
