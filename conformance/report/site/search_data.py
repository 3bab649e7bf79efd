"""Data of all pages: entries to search, numbers in the navigation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from conformance.report.site.addresses import MATRIX, UPGRADE, case_page, href, run_page
from conformance.report.site.matrix_data import find_title
from conformance.report.site.suite_page import make_suite_views
from conformance.report.site.upgrade_page import list_upgrades
from conformance.report.text import flatten, format_moment
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.report.report import Report
    from conformance.report.story import Story


def make_search_data(report: Report, story: Story) -> dict[str, Any]:
    """Return the data of the script of every page.

    Args:
        report: The runs to report.
        story: Its story.
    """
    return {
        "entries": [list(entry) for entry in list_entries(report, story)],
        "counts": {"causes": story.causes, "runs": len(report.runs), "unexpected": story.wrong},
        "problems": list(story.problems),
        "ended": format_moment(story.ended),
        "upgraded": UPGRADE if report.upgraded else "",
        "suite": next((href(view.page) for view in make_suite_views(report)), ""),
    }


def list_entries(report: Report, story: Story) -> Iterator[tuple[str, str, str, str]]:
    """Yield the entries to search: kind, name, a line about it, address from the root.

    Args:
        report: The runs to report.
        story: Its story.
    """
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
    """Return the address of the matrix with a choice made.

    Args:
        choice: E.g. `family="loops"`.
    """
    return f"{MATRIX}#{urlencode({name: flatten(value) for name, value in choice.items()})}"
