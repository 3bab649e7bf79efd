"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from conformance.report.text import one_line


def moment(text: str) -> str:
    """Return a time to the minute, e.g. `2026-11-21 20:17 UTC`; what is none stays as it is.

    Args:
        text: ISO 8601; without a zone it is taken as UTC.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return one_line(text, 40)
    known = found if found.tzinfo else found.replace(tzinfo=UTC)
    return f"{known.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
