"""Rows of a history: equal releases are one segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from conformance.report.site.strips import (
    NOT_TRIED,
    make_minor_ticks,
    make_strip,
    make_upgrade_strip,
)
from conformance.report.upgrade.file import UpgradeChange, UpgradePoint
from conformance.triage.upgrade.effect import Effect
from tests.builders import f32
from tests.report.runs import CELLS, Directory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.report.report import Report
    from conformance.report.site.strips import Strip, UpgradeSegment


def strip(report: Report, row: str) -> Strip:
    """Return a row of the only case on the only track."""
    (track,) = report.tracks
    return make_strip(row, report.timelines("f/a")[track.name], track)


def test_equal_releases_are_one_segment(tmp_path: Path) -> None:
    """It says from where to where, and how many they are."""
    made = Directory(tmp_path)
    for cell in CELLS:
        made.job("f/a", cell, f32(1))
    (segment,) = strip(made.report(), "verdict").segments
    assert (segment.first, segment.last, segment.length) == ("0.5.3", "0.8.3", 3)
    assert (segment.state, segment.anchor) == ("match", "")


def test_a_change_begins_a_segment(tmp_path: Path) -> None:
    """Though the verdict is the same on both sides: each matches its own golden."""
    made = Directory(tmp_path).job("f/a", CELLS[0], f32(1)).job("f/a", CELLS[1], f32(2))
    report = made.job("f/a", CELLS[2], f32(2)).report()
    for row in ("verdict", "value"):
        before, after = strip(report, row).segments
        assert (before.length, after.length) == (1, 2)
        assert (before.anchor, after.anchor) == ("", "cpu8@0.6.2")
    assert [s.length for s in strip(report, "ending").segments] == [3]
    assert [s.state for s in strip(report, "value").segments] == ["same", "other"]


def test_releases_without_a_job_are_a_gap(tmp_path: Path) -> None:
    """A release that could not run the case, and one that has no job of it."""
    made = Directory(tmp_path).job("f/a", CELLS[0], f32(1)).job("f/b", CELLS[1], f32(1))
    made.job("f/a", CELLS[2], outcome=Outcome.UNSUPPORTED, verdict=Verdict.EXCLUDED)
    report = made.report()
    assert [s.state for s in strip(report, "verdict").segments] == ["match", "", "excluded"]
    assert [s.state for s in strip(report, "value").segments] == ["same", ""]


POINTS = tuple(
    UpgradePoint(label=release, cell=f"jax{release}")
    for release in ("0.5.3", "0.6.0", "0.6.1", "0.6.2")
)


def record(outcome: Outcome = Outcome.OK, **more: Any) -> Record:
    """Return a job."""
    fields: dict[str, Any] = {
        "case": "f/a", "cell": "c", "case_hash": "", "cell_hash": "", "stage": Stage.EXECUTE,
        "conformance": Conformance.CONFORMS, "verdict": Verdict.MATCH,
    }  # fmt: skip
    return Record(**{**fields, "outcome": outcome, **more})


def change(release: str, kind: Effect = Effect.BROKEN) -> UpgradeChange:
    """Return a change in a release."""
    return UpgradeChange(
        case="f/a", platform="cpu8", kind=kind, artifact="ending", last="", changed_in=release,
        cells=("a", "b"), before="ok", after="ok",
    )  # fmt: skip


def along(seen: Sequence[Record | None], *changes: UpgradeChange) -> tuple[UpgradeSegment, ...]:
    """Return a strip of the jobs on each release, None where it was not tried."""
    cells = zip(POINTS, seen, strict=True)
    return make_upgrade_strip(POINTS, {p.cell: job for p, job in cells if job is not None}, changes)


def test_neighbours_that_show_the_same_are_one() -> None:
    """A change begins a part of its own; what was not tried is blank and says so."""
    error = ErrorInfo(type="ValueError", message="bad shape")
    raised = record(Outcome.RAISED, conformance=Conformance.DEVIATES, error=error)
    parts = along([record(), record(), None, raised], change("0.6.2"))
    assert [(p.range, p.fill, p.summary, p.effect) for p in parts] == [
        ("0.5.3 to 0.6.0", "ok conforms", "ok, conforms", None),
        ("0.6.1", "", NOT_TRIED, None),
        ("0.6.2", "raised deviates", "raised ValueError, deviates", Effect.BROKEN),
    ]


def test_neighbours_of_equal_fill_alternate() -> None:
    """A value that changes, and changes back, is seen though both jobs ended well."""
    parts = along([record()] * 4, change("0.6.0", Effect.VALUE), change("0.6.2", Effect.VALUE))
    assert [(part.length, part.alternate) for part in parts] == [(1, False), (2, True), (1, False)]


@pytest.mark.parametrize(
    ("outcome", "fill", "said"),
    [
        (Outcome.TIMED_OUT, "died", "timed out, unknown"),
        (Outcome.CRASHED, "died", "crashed, unknown"),
        (Outcome.INFRA, "infra", "infra"),
        (Outcome.UNSUPPORTED, "none", "unsupported"),
    ],
)
def test_fill_of_jobs_that_did_not_end_well(outcome: Outcome, fill: str, said: str) -> None:
    """What says nothing about JAX is not filled in as if it did."""
    (first, *_) = along([record(outcome, conformance=Conformance.UNKNOWN), None, None, None])
    assert (first.fill, first.summary) == (fill, said)


@given(
    st.lists(st.sampled_from([None, *Outcome]), min_size=4, max_size=4),
    st.sets(st.integers(0, 3)),
)
def test_segments_cover_every_release_in_order(
    outcomes: list[Outcome | None], places: set[int]
) -> None:
    """Whatever was tried, the parts cover the axis, and neighbours differ or are a change."""
    parts = along(
        [None if outcome is None else record(outcome) for outcome in outcomes],
        *(change(POINTS[place].label) for place in sorted(places)),
    )
    filled = [part.fill for part in parts for _ in range(part.length)]
    assert [fill == "" for fill in filled] == [outcome is None for outcome in outcomes]
    assert parts[0].first == "0.5.3"
    assert parts[-1].last == "0.6.2"


def test_minor_versions_along_the_axis() -> None:
    """By the release of the cell; an end that is a lock is not called by its name there."""
    points = (UpgradePoint(label="old.txt (jax 0.5.3)", cell="lock"), *POINTS)
    assert [(t.label, t.length) for t in make_minor_ticks(points, {"lock": "0.5.3"})] == [
        ("0.5", 2), ("0.6", 3),
    ]  # fmt: skip
    assert make_minor_ticks(points, {})[0].label == "old.txt (jax 0.5.3)"
