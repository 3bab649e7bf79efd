"""Changes since the last nightly run in words, for a terminal and for Markdown."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from conformance.report.text import flatten, join_names
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.model.run_files import CauseSince, PackageChange, Since

LONGEST: Final = 300
"""Characters of one reason."""
NEW: Final = "new"
MOST: Final = 10
"""Root causes of a kind that a terminal lists singly; new ones are always listed."""


def count_changes(since: Since) -> str:
    """Return the number of changes by kind."""
    kinds = group_causes(since)
    order = (NEW, "still there", "gone", "not seen")
    counts = [f"{len(kinds[kind]):,} {kind}" for kind in order if kinds[kind]]
    # A job may have changed in several artifacts, and counts once.
    moved = len({(case, one.place) for one in since.artifacts for case in one.cases})
    jobs = {
        "moved": moved, "added": len(since.added), "removed": len(since.removed),
        "silent": len(since.silent),
    }  # fmt: skip
    counts += [f"{plural(number, 'job')} {kind}" for kind, number in jobs.items() if number]
    if not since.has_changes:
        counts.insert(0, "nothing changed")
    return ", ".join(counts) or "other packages"


def group_causes(since: Since) -> dict[str, tuple[CauseSince, ...]]:
    """Return the root causes by their state since the last nightly run, new causes first."""
    return {
        NEW: since.new,
        "gone": since.gone,
        "not seen": since.unseen,
        "still there": since.still,
    }


def render_since(since: Since, most: int = MOST) -> Iterator[str]:
    """Yield the changes, a line each, new root causes first.

    Args:
        since: The changes.
        most: Root causes of a kind that are listed singly; new ones are always listed.
    """
    yield f"since {flatten(since.run)} of {format_day(since.started)}: {count_changes(since)}"
    for kind, causes in group_causes(since).items():
        for one in causes if kind == NEW else causes[:most]:
            yield f"  {kind}: {describe_cause(one)}{format_age(one) if kind != NEW else ''}"
        if len(causes) > most and kind != NEW:
            yield f"  {kind}: {len(causes) - most:,} more"
    for line in render_other_changes(since):
        yield f"  {line}"


def render_other_changes(since: Since) -> Iterator[str]:
    """Yield the changes of artifacts, jobs and packages."""
    for one in since.artifacts:
        yield f"moved: {one.artifact} of {join_names(one.cases)} on {one.place}"
    for kind, jobs in (
        ("added", since.added), ("removed", since.removed), ("silent", since.silent),
    ):  # fmt: skip
        for place, number in Counter(job.place for job in jobs).items():
            yield f"{kind}: {plural(number, 'job')} on {place}"
    for places, packages in _group_updates(since.packages):
        yield f"installed on {join_names(places)}: {', '.join(packages)}"


def describe_cause(one: CauseSince) -> str:
    """Return a root cause in a line: its verdict, cases, places and reason."""
    cases = list(dict.fromkeys(job.case for job in one.jobs))
    places = list(dict.fromkeys(job.place for job in one.jobs))
    return flatten(
        f"{one.verdict} {join_names(cases)} on {join_names(places)}: {one.reason}", LONGEST
    )


def format_day(moment: str) -> str:
    """Return the day of a time, ISO 8601."""
    return flatten(moment).partition("T")[0] or "an unknown day"


def format_age(one: CauseSince) -> str:
    """Return the day on which a root cause was first seen, and for how many nights it was."""
    day = format_day(one.since)
    return f" (since {day}, {plural(one.nights, 'night')})"


def _group_updates(installed: Iterable[PackageChange]) -> list[tuple[list[str], tuple[str, ...]]]:
    """Return the packages that changed, grouped by places with the same changes."""
    # Places with a common lock change alike, and share a line.
    by_place: dict[str, list[str]] = defaultdict(list)
    for one in installed:
        versions = f"{one.before or 'none'} -> {one.after or 'none'}"
        by_place[one.place].append(f"{one.package} {versions}")
    places: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for place, packages in by_place.items():
        places[tuple(packages)].append(place)
    return [(found, packages) for packages, found in places.items()]
