"""Rows of a history: equal releases are one segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.model.outcome import Outcome, Verdict
from conformance.report.site.strips import make_strip
from tests.builders import f32
from tests.report.runs import CELLS, Directory

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.report.report import Report
    from conformance.report.site.strips import Strip


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


def test_where_nothing_was_seen_there_is_a_gap(tmp_path: Path) -> None:
    """A release that could not run the case, and one that has no job of it."""
    made = Directory(tmp_path).job("f/a", CELLS[0], f32(1)).job("f/b", CELLS[1], f32(1))
    made.job("f/a", CELLS[2], outcome=Outcome.UNSUPPORTED, verdict=Verdict.EXCLUDED)
    report = made.report()
    assert [s.state for s in strip(report, "verdict").segments] == ["match", "", "excluded"]
    assert [s.state for s in strip(report, "value").segments] == ["same", ""]
