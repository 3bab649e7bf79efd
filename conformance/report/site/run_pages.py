"""A run's page: its cells and host, the time by stage, and exclusions with their reasons."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from conformance.report.site.addresses import run_page
from conformance.report.site.rendering import render
from conformance.report.summary import (
    count_understood,
    count_verdicts,
    find_unsupported,
    group_exclusions,
)
from conformance.report.text import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.engine.runs.loader import LoadedRun
    from conformance.model.record import Record
    from conformance.model.run import RunCell

STAGES: Final = (
    "import",
    "build",
    "trace",
    "lower",
    "cross_lower",
    "compile",
    "execute",
    "other",
)
"""Stages of a job, in order; `other` is the time outside all stages."""
SLOWEST: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """A cell of a run.

    Attributes:
        cell: The cell.
        identity: Identity that its worker reported, as names and values.
        jobs: Number of jobs.
        cached: Number of jobs that were taken from an earlier run.
        seconds: Seconds of its jobs by stage, without cached jobs.
        largest_rss: Peak memory of its largest job, in MiB.
    """

    cell: RunCell
    identity: tuple[tuple[str, str], ...]
    jobs: int
    cached: int
    seconds: dict[str, float]
    largest_rss: int

    @property
    def total(self) -> float:
        """Seconds of all its jobs."""
        return sum(self.seconds.values())


def render_run_pages(
    runs: Sequence[LoadedRun], upgrades: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, bytes]]:
    """Yield the page of every run.

    Args:
        runs: The runs.
        upgrades: Page of each upgrade, by run id.

    Yields:
        Path below the site's root, and content.
    """
    for run in runs:
        page = run_page(run.id)
        # A cached record has the seconds of the run that executed the job.
        ran = [record for record in run.records if not record.cached]
        slowest = sorted(ran, key=lambda record: -record.seconds.get("job", 0.0))[:SLOWEST]
        rows = make_cell_rows(run)
        data = {
            "run": run,
            "upgrade": upgrades.get(run.id, ""),
            "counts": count_verdicts(run.records),
            "seconds": _measure_duration(run.info.started, run.info.finished),
            "rows": rows,
            "stages": STAGES,
            # Bars are drawn as shares of the longest, which is 0 if all jobs were cached.
            "longest": max((row.total for row in rows), default=0.0) or 1.0,
            "slowest": [record for record in slowest if record.seconds.get("job")],
            "cached": sum(record.cached for record in run.records),
            "irs": count_understood(run.records),
            "exclusions": group_exclusions((*run.info.exclusions, *find_unsupported(run.records))),
        }
        yield page, render("run.html", page, data)


def make_cell_rows(run: LoadedRun) -> list[CellRow]:
    """Return a row for each cell of a run, in the order of the plan.

    Args:
        run: The run.
    """
    members: dict[str, list[Record]] = defaultdict(list)
    for record in run.records:
        members[record.cell].append(record)
    return [_make_row(cell, members[cell.id], run) for cell in run.info.cells]


def _make_row(cell: RunCell, records: list[Record], run: LoadedRun) -> CellRow:
    identity = run.info.identities.get(cell.id, {})
    return CellRow(
        cell=cell,
        identity=tuple(
            (name, _flatten_value(value)) for name, value in identity.items() if name != "versions"
        ),
        jobs=len(records),
        cached=sum(record.cached for record in records),
        seconds=sum_stage_seconds(record for record in records if not record.cached),
        largest_rss=max((record.max_rss_bytes for record in records), default=0) // 2**20,
    )


def sum_stage_seconds(records: Iterable[Record]) -> dict[str, float]:
    """Return the seconds of jobs by stage, without stages that took no time.

    Args:
        records: The jobs.
    """
    found: defaultdict[str, float] = defaultdict(float)
    for record in records:
        known = {name: s for name, s in record.seconds.items() if name in STAGES}
        for name, seconds in known.items():
            found[name] += seconds
        # With several processes each stage is that of the slowest: the sum may exceed the job.
        found["other"] += max(0.0, record.seconds.get("job", 0.0) - sum(known.values()))
    return {stage: found[stage] for stage in STAGES if found.get(stage)}


def _flatten_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _measure_duration(started: str, finished: str) -> float | None:
    """Return the seconds between two times, None if one is unknown or the clock was set back."""
    begun, ended = parse_time(started), parse_time(finished)
    if begun is None or ended is None or ended < begun:
        return None
    return (ended - begun).total_seconds()
