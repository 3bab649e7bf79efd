"""A scan as text and JSON: what raises, what changes silently, what warns, with its places."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Final

from conformance.model.upstream import find_thread_url
from conformance.report.grouping import group_by
from conformance.scan.hits import HitKind
from conformance.scan.reached import list_transforms
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.scan.hits import Hit
    from conformance.scan.result import FileHit, ReachedUse, ScanResult, ScanRun

TITLES: Final = {
    HitKind.REMOVED: "the name is gone",
    HitKind.SIGNATURE: "the call is a TypeError",
    HitKind.OPTION: "the option is gone",
    HitKind.POSITION: "silent: an argument by position has another meaning",
    HitKind.DEFAULT: "silent: another default",
    HitKind.BEHAVIOUR: "the history has changes of these names",
    HitKind.DEPRECATED: "deprecated",
}
REACHED: Final = {True: "reached", False: "not reached", None: "may be reached"}
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
    by_reach = group_by(result.hits, key=lambda one: one.reached)
    is_ranked = not by_reach.keys() <= {None}
    for reached, title in REACHED.items():
        if reached in by_reach and result.run is not None and is_ranked:
            yield f"# {title} by `{result.run.command}`"
            yield ""
        yield from _render_hits(by_reach.get(reached, ()), every=every)
    by_library = group_by(result.library_hits, key=lambda one: one.library)
    for library, hits in sorted(by_library.items()):
        yield f"# reached through {library or 'other files'}: {plural(len(hits), 'hit')}"
        yield ""
        yield from _render_hits(hits, every=every)
    if result.run is not None:
        if result.run.elsewhere:
            yield "# reached, but not from a line of code"
            yield ""
            for hit in result.run.elsewhere:
                yield from _render_change(hit)
            yield ""
        yield from _render_run(result.run)
    yield summarize_scan(result)


def _render_run(run: ScanRun) -> Iterator[str]:
    """Yield what a command reached, and why it shows less than it should."""
    code = run.code
    if not code.processes:
        yield f"`{run.command}` {run.ended or 'succeeded'}; it imported no jax, so no hit is ranked"
        return
    if run.ended:
        yield f"`{run.command}` {run.ended}"
    names = {use.name for use in run.uses}
    counts = (
        (names, "public name"), (list_transforms(names), "transform"),
        (code.primitives, "primitive"), ({name for name, *_ in code.options}, "option"),
    )  # fmt: skip
    reached = ", ".join(plural(len(found), noun) for found, noun in counts if found)
    yield (
        f"ran in {run.seconds:.1f} s, {plural(code.processes, 'process', 'processes')} with jax "
        f"{', '.join(sorted(code.releases))}; reached {reached or 'nothing'}"
    )
    for reason in sorted(code.losses):
        yield f"its record is incomplete, so other hits may be reached: {reason}"


def _render_hits(found: Sequence[FileHit], *, every: bool) -> Iterator[str]:
    by_kind = group_by(found, key=lambda one: one.hit.kind)
    for kind, title in TITLES.items():
        if kind not in by_kind:
            continue
        yield f"{title}:"
        groups = group_by(by_kind[kind], key=lambda one: (one.hit.release, one.hit.text))
        for places in groups.values():
            yield from _render_group(places, every=every)
        yield ""


def _render_group(places: Sequence[FileHit], *, every: bool) -> Iterator[str]:
    yield from _render_change(places[0].hit)
    shown = places if every else places[:MOST_PLACES]
    more = f" and {len(places) - len(shown)} more" if len(shown) < len(places) else ""
    yield f"    {', '.join(one.place for one in shown)}{more}"


def _render_change(hit: Hit) -> Iterator[str]:
    sound = "" if hit.kind is not HitKind.BEHAVIOUR else "loud, " if hit.is_loud else "silent, "
    yield f"  {hit.text} ({sound}{hit.release})"
    if hit.change is not None:
        if hit.change.advice:
            yield f"    {hit.change.advice}"
        thread = find_thread_url(hit.change.source) or hit.change.source
        yield f"    {hit.change.cases[0]}  {thread}"


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


def render_fixes(result: ScanResult) -> Iterator[str]:
    """Yield the fixes as a unified diff, then the lines of the hits that remain.

    Args:
        result: The scan with its fixes.
    """
    for file, one in result.fixes.items():
        before, after = (
            text.decode(errors="replace").splitlines() for text in (one.before, one.after)
        )
        yield from unified_diff(before, after, str(file), str(file), lineterm="")
    remaining = [one for one in result.hits if result.find_fix(one) is None]
    yield from render_scan(replace(result, hits=remaining))
    yield from _summarize_fixes(result)


def _summarize_fixes(result: ScanResult) -> Iterator[str]:
    """Yield the number of fixes, and the fixes that do not work before the upgrade.

    Args:
        result: The scan with its fixes.
    """
    made = [fix for one in result.fixes.values() for fix in one.fixed.values()]
    hits = sum(result.find_fix(one) is not None for one in result.hits)
    yield (
        f"fixes: {plural(len(made), 'place')} in {plural(len(result.fixes), 'file')}, "
        f"for {hits} of {plural(len(result.hits), 'hit')}"
    )
    for text, places in group_by(made, key=lambda one: one.text).items():
        if not places[0].works(result.old):
            yield (
                f"  `{text}` does not work on {result.old} yet ({plural(len(places), 'place')}): "
                "make the change together with the upgrade"
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
        "hits": [_make_hit_json(result, one) for one in result.hits],
        "library_hits": [
            {"library": one.library, **_make_hit_json(result, one)} for one in result.library_hits
        ],
        "run": None if result.run is None else _make_run_json(result.run),
    }


def _make_run_json(run: ScanRun) -> dict[str, Any]:
    code = run.code
    return {
        "command": run.command,
        "exit": run.exit,
        "ended": run.ended,
        "seconds": run.seconds,
        "processes": code.processes,
        "jax": sorted(code.releases),
        "losses": sorted(code.losses),
        "names": [_make_use_json(use) for use in run.uses],
        "transforms": list_transforms(use.name for use in run.uses),
        "primitives": sorted(code.primitives),
        "options": [
            {"name": name, "file": file, "line": line} for name, file, line in sorted(code.options)
        ],
        "variables": sorted(code.variables),
        "elsewhere": [_make_change_json(hit) for hit in run.elsewhere],
    }


def _make_use_json(use: ReachedUse) -> dict[str, Any]:
    call = use.call
    return {
        "name": use.name, "file": str(use.file), "line": use.line,
        "positions": None if call is None else call.positions,
        "keywords": None if call is None else sorted(call.keywords),
        "literals": None if call is None else dict(sorted(call.literals)),
    }  # fmt: skip


def _make_hit_json(result: ScanResult, place: FileHit) -> dict[str, Any]:
    fix = result.find_fix(place)
    return {
        "file": str(place.file), "cell": place.cell.cell if place.cell is not None else None,
        "line": place.line, "column": place.column, "reached": place.reached,
        **_make_change_json(place.hit),
        "fix": None if fix is None else {
            "id": fix.id, "form": fix.text, "works_before": fix.works(result.old),
        },
    }  # fmt: skip


def _make_change_json(hit: Hit) -> dict[str, Any]:
    change = hit.change
    return {
        "name": hit.name, "kind": hit.kind.value, "change": hit.text, "release": hit.release,
        "loud": hit.is_loud, "case": change.cases[0] if change is not None else None,
        "source": change.source if change is not None else None,
        "advice": change.advice if change is not None else "",
    }  # fmt: skip
