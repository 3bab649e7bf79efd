"""The first page: the story of a report, and every case in every cell."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.report.site.addresses import MATRIX
from conformance.report.site.matrix_data import make_matrix_data
from conformance.report.site.page_selection import describe_omitted
from conformance.report.site.rendering import render
from conformance.report.site.search_data import make_search_data
from conformance.report.site.upgrade_page import list_upgrades
from conformance.report.story import make_story
from conformance.report.verdicts import WORST_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.model.outcome import Verdict
    from conformance.report.report import Report

MATRIX_DATA: Final = "data/matrix.js"
SEARCH_DATA: Final = "data/search.js"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The jobs of a family on a track: the worst verdict, and how many there are of each."""

    worst: str
    counts: tuple[tuple[str, int], ...]


def render_matrix_pages(
    report: Report, everything: Report | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield the matrix page, and the data of its scripts and of every page's.

    Args:
        report: What has pages.
        everything: All that is told, where not all of it has.

    Yields:
        Path below the site's root, and content.
    """
    everything = everything or report
    story = make_story(everything)
    if untold := describe_omitted(everything, report):
        story = replace(story, problems=(*story.problems, untold))
    data = {
        "story": story,
        "problems": story.problems,
        "tallies": count_families(everything),
        "cases": tuple(report.cases),
        "upgrades": list_upgrades(report),
    }
    yield MATRIX, render("matrix.html", MATRIX, data)
    yield MATRIX_DATA, render_script("matrix", make_matrix_data(report))
    yield SEARCH_DATA, render_script("search", make_search_data(report, story))


def render_script(name: str, data: Any) -> bytes:
    """Return data as a script, for pages that are opened from a folder may not fetch any.

    Args:
        name: What the data are of the object `conformance`.
        data: Anything JSON can hold. In ASCII without `<` it is the same in every encoding and
            wherever it is put.
    """
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f"var conformance=window.conformance||{{}};conformance.{name}={text};\n".encode("ascii")


def count_families(report: Report) -> list[tuple[str, list[Tally | None]]]:
    """Return each family's jobs on each track, for those whose browser runs no scripts.

    Args:
        report: The runs to report.
    """
    track_of = {cell.id: track.name for track in report.tracks for cell in track.cells}
    found: dict[tuple[str, str], Counter[Verdict]] = {}
    for record in report.records:
        key = record.case.partition("/")[0], track_of.get(record.cell, "")
        found.setdefault(key, Counter())[record.verdict] += 1
    return [
        (family, [_tally(found.get((family, track.name))) for track in report.tracks])
        for family in report.families
    ]


def _tally(counts: Counter[Verdict] | None) -> Tally | None:
    if counts is None:
        return None
    ordered = tuple((str(v), counts[v]) for v in WORST_FIRST if counts[v])
    return Tally(worst=ordered[0][0], counts=ordered)
