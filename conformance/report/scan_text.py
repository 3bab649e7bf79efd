"""A scan as text: what raises, what changes silently, what warns, each with its places."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from conformance.model.upstream import find_thread_url
from conformance.report.grouping import group_by
from conformance.scan.hits import HitKind
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.scan.result import FileHit, ScanResult

TITLES: Final = {
    HitKind.REMOVED: "the name is gone",
    HitKind.SIGNATURE: "the call is a TypeError",
    HitKind.OPTION: "the option is gone",
    HitKind.POSITION: "silent: an argument by position has another meaning",
    HitKind.DEFAULT: "silent: another default",
    HitKind.BEHAVIOUR: "the history has changes of these names",
    HitKind.DEPRECATED: "deprecated",
}
MOST_PLACES: Final = 5
"""Places of a hit that are named without `--verbose`."""


def render_scan(result: ScanResult, *, every: bool = False) -> Iterator[str]:
    """Yield the lines of a scan.

    Args:
        result: The scan.
        every: Whether all places are named.
    """
    for file, problem in result.unreadable.items():
        yield f"{file}: {problem}"
    by_kind = group_by(result.hits, key=lambda one: one.hit.kind)
    for kind, title in TITLES.items():
        if kind not in by_kind:
            continue
        yield f"{title}:"
        groups = group_by(by_kind[kind], key=lambda one: (one.hit.release, one.hit.text))
        for places in groups.values():
            yield from _render_group(places, every=every)
        yield ""
    yield summarize_scan(result)


def _render_group(places: Sequence[FileHit], *, every: bool) -> Iterator[str]:
    hit = places[0].hit
    sound = "" if hit.kind is not HitKind.BEHAVIOUR else "loud, " if hit.is_loud else "silent, "
    yield f"  {hit.text} ({sound}{hit.release})"
    if hit.change is not None:
        if hit.change.advice:
            yield f"    {hit.change.advice}"
        thread = find_thread_url(hit.change.source) or hit.change.source
        yield f"    {hit.change.cases[0]}  {thread}"
    shown = places if every else places[:MOST_PLACES]
    more = f" and {len(places) - len(shown)} more" if len(shown) < len(places) else ""
    yield f"    {', '.join(one.place for one in shown)}{more}"


def summarize_scan(result: ScanResult) -> str:
    """Return the number of hits of each kind in a line.

    Args:
        result: The scan.
    """
    counts = Counter(one.hit.kind for one in result.hits)
    found = ", ".join(f"{counts[kind]} {kind}" for kind in HitKind if counts[kind])
    return (
        f"{result.old} -> {result.new}: {plural(result.files, 'file')}, "
        f"{plural(result.lines, 'line')}, {plural(result.uses, 'use')} of jax; {found or 'no hits'}"
    )


def make_scan_json(result: ScanResult) -> dict[str, Any]:
    """Return a scan as JSON data.

    Args:
        result: The scan.
    """
    return {
        "from": result.old,
        "to": result.new,
        "files": result.files,
        "lines": result.lines,
        "unreadable": [
            {"file": str(file), "problem": problem} for file, problem in result.unreadable.items()
        ],
        "hits": [_make_hit_json(one) for one in result.hits],
    }


def _make_hit_json(place: FileHit) -> dict[str, Any]:
    hit, change = place.hit, place.hit.change
    return {
        "file": str(place.file), "cell": place.cell.cell if place.cell is not None else None,
        "line": place.line, "column": place.column, "name": hit.name,
        "kind": hit.kind.value, "change": hit.text, "release": hit.release, "loud": hit.is_loud,
        "case": change.cases[0] if change is not None else None,
        "source": change.source if change is not None else None,
        "advice": change.advice if change is not None else "",
    }  # fmt: skip
