"""Changes of time and memory of an upgrade, as text and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.report.markup import to_code, to_table
from conformance.report.text import sanitize
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.report.upgrade.result import UpgradeResult
    from conformance.triage.upgrade.costs import CostChange

TITLES = {True: "takes more time or memory", False: "takes less time or memory"}


def summarize_costs(upgraded: UpgradeResult) -> str:
    """Return how many cases take more or less, in a sentence.

    Args:
        upgraded: An upgrade whose time and memory were compared.
    """
    worse = sum(one.is_worse for one in upgraded.costs)
    better = len(upgraded.costs) - worse
    return (
        f"time and memory: of {plural(upgraded.measured, upgraded.noun)}, {worse} "
        f"{'takes' if worse == 1 else 'take'} more and {better} "
        f"{'takes' if better == 1 else 'take'} less"
    )


def render_costs(upgraded: UpgradeResult) -> Iterator[str]:
    """Yield the changes of time and memory, in lines; nothing if they were not compared.

    Args:
        upgraded: The upgrade.
    """
    if not upgraded.measured:
        return
    yield ""
    yield summarize_costs(upgraded)
    for change in _sort(upgraded.costs):
        yield f"  {change.case} {TITLES[change.is_worse]} {_describe_release(change)}"
        yield from (f"    {one}" for one in change.differences)
        if change.layer:
            yield f"    layer: {change.layer}"
        yield from (f"    commit {one.hash[:12]} {one.title}" for one in change.commits)
        if change.problem:
            yield f"    {sanitize(change.problem)}"


def render_costs_markdown(upgraded: UpgradeResult) -> list[str]:
    """Return a section with the changes of time and memory; empty if they were not compared.

    Args:
        upgraded: The upgrade.
    """
    if not upgraded.measured:
        return []
    rows = [["case", "since", "difference", "layer", "commit"]]
    for change in _sort(upgraded.costs):
        commits = " or ".join(to_code(one.hash[:12]) for one in change.commits)
        rows.append(
            [to_code(change.case), _describe_release(change).removeprefix("since "),
             "; ".join(change.differences), change.layer, commits]
        )  # fmt: skip
    table = [to_table(rows), ""] if len(rows) > 1 else []
    return ["## Time and memory", "", f"{summarize_costs(upgraded).capitalize()}.", "", *table]


def _sort(costs: Sequence[CostChange]) -> list[CostChange]:
    return sorted(costs, key=lambda one: not one.is_worse)


def _describe_release(change: CostChange) -> str:
    return f"since {change.changed_in}" if change.changed_in else "since an unknown release"
