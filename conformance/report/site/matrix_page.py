"""The first page: the overview of a report, and every case in every cell."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from conformance.report.overview import make_overview
from conformance.report.site.addresses import (
    ECOSYSTEM,
    FUZZ,
    MATRIX,
    PERFORMANCE,
    UPGRADE,
    case_page,
    href,
    run_page,
)
from conformance.report.site.matrix_data import find_title, make_matrix_data
from conformance.report.site.rendering import render
from conformance.report.site.suite_page import make_suite_views
from conformance.report.site.upgrade_page import list_upgrades
from conformance.report.text import flatten, format_moment
from conformance.report.verdicts import WORST_FIRST
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.model.outcome import Verdict
    from conformance.report.overview import Overview
    from conformance.report.report import Report


MATRIX_DATA: Final = "data/matrix.js"
SEARCH_DATA: Final = "data/search.js"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The jobs of a family on a track: the worst verdict, and the number of jobs by verdict."""

    worst: str
    counts: tuple[tuple[str, int], ...]


def render_matrix_pages(
    report: Report, everything: Report | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield the matrix page, its data, and the data of the search on every page.

    Args:
        report: The runs without the tests that have no page.
        everything: The complete runs, if some tests have no page.

    Yields:
        Path below the site's root, and content.
    """
    everything = everything or report
    story = make_overview(everything)
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
    """Return data as a script that sets an attribute of the object `conformance`.

    Args:
        name: Name of the attribute.
        data: Any data that JSON can hold.
    """
    # A script, because browsers refuse `fetch` on pages that are opened from a folder. ASCII reads
    # the same in every encoding, and without `<` no text can end a script element.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f"var conformance=window.conformance||{{}};conformance.{name}={text};\n".encode("ascii")


def count_families(report: Report) -> list[tuple[str, list[Tally | None]]]:
    """Return each family's jobs on each track, for browsers without scripts.

    Args:
        report: The runs to report.
    """
    track_of = {cell.id: track.name for track in report.tracks for cell in track.cells}
    found: dict[tuple[str, str], Counter[Verdict]] = {}
    for record in report.records:
        key = record.case.partition("/")[0], track_of.get(record.cell, "")
        found.setdefault(key, Counter())[record.verdict] += 1
    return [
        (family, [_make_tally(found.get((family, track.name))) for track in report.tracks])
        for family in report.families
    ]


def _make_tally(counts: Counter[Verdict] | None) -> Tally | None:
    if counts is None:
        return None
    ordered = tuple((str(v), counts[v]) for v in WORST_FIRST if counts[v])
    return Tally(worst=ordered[0][0], counts=ordered)


def make_search_data(report: Report, story: Overview) -> dict[str, Any]:
    """Return the data of the script of every page.

    Args:
        report: The runs to report.
        story: Overview of the report.
    """
    return {
        "entries": [list(entry) for entry in list_entries(report, story)],
        "counts": {"causes": story.causes, "runs": len(report.runs), "unexpected": story.wrong},
        "problems": list(story.problems),
        "ended": format_moment(story.ended),
        "upgraded": UPGRADE if report.upgrade_runs else "",
        "fuzz": FUZZ if report.fuzz else "",
        "ecosystem": ECOSYSTEM if report.ecosystem else "",
        "performance": PERFORMANCE if report.bench else "",
        "suite": next((href(view.page) for view in make_suite_views(report)), ""),
    }


def list_entries(report: Report, story: Overview) -> Iterator[tuple[str, str, str, str]]:
    """Yield the entries to search: kind, name, a line about it, address from the root.

    Args:
        report: The runs to report.
        story: Overview of the report.
    """
    # The search shows the first matches: a family before its many cases.
    for family, cases in report.families.items():
        yield "family", flatten(family), plural(len(cases), "case"), filter_address(family=family)
    for upgrade, page in list_upgrades(report):
        yield "upgrade", flatten(f"{upgrade.from_} to {upgrade.to}"), "", href(page)
    for release in reversed(story.releases):
        yield "release", f"jax {release}", "", filter_address(release=release)
    for name, case in report.cases.items():
        yield "case", flatten(name), find_title(case.doc), href(case_page(name))
    for run in reversed(report.runs):
        yield "run", flatten(run.id), format_moment(run.info.started), href(run_page(run.id))


def filter_address(**choice: str) -> str:
    """Return the address of the matrix with a filter.

    Args:
        choice: Value of each filter, e.g. `family="loops"`.
    """
    return f"{MATRIX}#{urlencode({name: flatten(value) for name, value in choice.items()})}"


def describe_omitted(report: Report, shown: Report) -> str:
    """Return a sentence about tests without a page, empty if all have one.

    Args:
        report: The complete runs.
        shown: The runs without the tests that have no page.
    """
    number = len(report.cases) - len(shown.cases)
    if not number:
        return ""
    return f"{number:,} tests that pass or are skipped everywhere have no page and no row: too many"
