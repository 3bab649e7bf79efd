"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from conformance.report.text import one_line


def moment(text: str) -> str:
    """Return a time to the minute, e.g. `2026-11-21 20:17 UTC`; what is none stays as it is.

    Args:
        text: ISO 8601; without a zone it is taken as UTC.
    """
    found = time_of(text)
    return one_line(text, 40) if found is None else f"{found:%Y-%m-%d %H:%M} UTC"


def time_of(text: str) -> datetime | None:
    """Return a time in UTC, None for a text that is none.

    Args:
        text: ISO 8601; without a zone it is UTC.
    """
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
