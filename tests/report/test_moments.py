"""Times as runs tell them, and as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from conformance.report.moments import moment, time_of


def test_times_are_utc() -> None:
    """What is no time, or none that UTC has, is None."""
    assert time_of("2026-05-01T02:00:00+02:00") == datetime(2026, 5, 1, tzinfo=UTC)
    assert time_of("") is time_of("0001-01-01T00:00:00+14:00") is None


def test_a_moment_is_told_to_the_minute() -> None:
    """In UTC; what is no time stays as it is, made fit to be shown."""
    assert moment("2026-05-01T02:30:59+02:00") == "2026-05-01 00:30 UTC"
    assert moment("2026-05-01T02:30:59") == "2026-05-01 02:30 UTC"
    assert moment("yesterday\x1b") == "yesterday␛"
